/**
 * The folder of the state files, which also holds the worker's own name. Threads: any; several
 * processes may start at the same time.
 */
#ifndef STATE_FOLDER_H
#define STATE_FOLDER_H

#include <stdint.h>

#include "base/error.h"

enum { STATE_INSTANCE_SIZE = 17 }; /* with the terminating NUL */

/** Makes the folder (0700) and missing parent folders. Errors: ERR_CONFIG, ERR_NO_MEMORY. */
MUST_CHECK enum err state_folder_make(const char *path, struct error *err);

/**
 * The worker's name, kept in the folder's file `instance`: 16 hexadecimal digits, drawn at random
 * by the first process that asks. A file with anything else in it is replaced. Errors: ERR_CONFIG,
 * ERR_NO_MEMORY.
 */
MUST_CHECK enum err state_folder_instance(
    const char *folder, char ret[static STATE_INSTANCE_SIZE], struct error *err);

/** FOLDER/gpu<device>.state. The caller frees it. NULL: out of memory. */
char *state_folder_file(const char *folder, uint32_t device);

#endif
