/** Whole files, read in one step. Threads: any. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include "base/error.h"

/**
 * Reads all of `path` ("-" is standard input) into a new block that the caller frees. One NUL, not
 * counted in *size, follows the bytes. Errors: ERR_IO with errno in `native`; ERR_TOO_LARGE, if
 * there are more than `bytes_max`.
 */
MUST_CHECK enum err file_read(
    const char *path, size_t bytes_max, char **ret, size_t *size, struct error *err);

#endif
