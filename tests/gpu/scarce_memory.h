/** Host memory that runs out, for rings: linked with --wrap=ring_create. Threads: one. */
#ifndef TESTS_GPU_SCARCE_MEMORY_H
#define TESTS_GPU_SCARCE_MEMORY_H

#include <limits.h>

#include "base/ring.h"

static int rings_left = INT_MAX; /* that can still be had */

struct ring *__real_ring_create(size_t capacity_min);
struct ring *__wrap_ring_create(size_t capacity_min);

struct ring *__wrap_ring_create(size_t capacity_min) {
    if (rings_left == 0) return NULL;
    rings_left--;
    return __real_ring_create(capacity_min);
}

#endif
