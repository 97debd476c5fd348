/**
 * The folder that state files stand in, and the worker's own name beside them.
 * Threads: any; several processes may start at the same time.
 */
#ifndef STATE_FOLDER_H
#define STATE_FOLDER_H

#include <stdint.h>

#include "base/error.h"

enum { STATE_INSTANCE_SIZE = 17 }; /* with the terminating NUL */

/** Makes the folder (0700) and those above it where they are missing. ERR_IO. */
MUST_CHECK enum err state_folder_make(const char *path, struct error *err);

/**
 * The worker's name, kept in the folder's file `instance`: 16 hexadecimal digits, drawn at random
 * by whoever asks first. What is not such a name is replaced. ERR_IO.
 */
MUST_CHECK enum err state_folder_instance(
    const char *folder, char ret[static STATE_INSTANCE_SIZE], struct error *err);

/** FOLDER/gpu<device>.state, to be freed; NULL when memory is short. */
char *state_folder_file(const char *folder, uint32_t device);

#endif
