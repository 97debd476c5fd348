/**
 * Sizes of pooled blocks: powers of two from 256 bytes to 1 MiB, then four sizes for each doubling
 * up to 1 TiB. Above 1 MiB a block is at most 25 % larger than what was asked for.
 *
 * Units: bytes. Threads: plain arithmetic.
 */
#ifndef GPU_SIZE_CLASS_H
#define GPU_SIZE_CLASS_H

#include <stddef.h>

#include "base/error.h"

enum { SIZE_CLASS_COUNT = 93 };

/**
 * The smallest class that holds `bytes`, which must not be 0. Errors: ERR_TOO_LARGE beyond 1 TiB.
 */
MUST_CHECK enum err size_class_find(size_t bytes, size_t *ret_index, struct error *err);

size_t size_class_bytes(size_t index);

#endif
