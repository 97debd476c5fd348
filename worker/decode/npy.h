/**
 * Writes outputs of a result into files that NumPy loads. BF16, which NumPy does not have, is
 * written as UINT16. Threads: one at a time.
 */
#ifndef DECODE_NPY_H
#define DECODE_NPY_H

#include "base/error.h"
#include "base/slice.h"

/**
 * Each of `files` is "NAME=FILE", or "FILE" for the only output. Errors: ERR_CONFIG, if there is no
 * such output, or it is in the blob store; ERR_IO; ERR_BAD_MESSAGE, ERR_NO_MEMORY.
 */
MUST_CHECK enum err npy_write(
    struct slice result, const char *const *files, size_t count, struct error *err);

#endif
