/** Folders for files that live no longer than a process. Threads: any. */
#ifndef BASE_TEMPORARY_H
#define BASE_TEMPORARY_H

#include "base/error.h"

enum { TEMPORARY_PATH_SIZE = 256 };

/**
 * Makes a new folder in TMPDIR, or in /tmp, that only this user may enter: NAME-xxxxxx. The caller
 * removes it. Errors: ERR_IO.
 */
MUST_CHECK enum err temporary_folder_make(
    const char *name, char ret[static TEMPORARY_PATH_SIZE], struct error *err);

#endif
