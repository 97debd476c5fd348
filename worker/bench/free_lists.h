/**
 * Free lists behind mutexes, one for each size: what a programmer would write who needs blocks
 * again and again. What the pools reach is measured against it (gpu-worker bench pools). No budget,
 * no books.
 *
 * Units: bytes. Lifetime: free_lists_create() to free_lists_destroy(), which frees what is in the
 * lists. Threads: any that is bound to the device.
 */
#ifndef BENCH_FREE_LISTS_H
#define BENCH_FREE_LISTS_H

#include "gpu/pool.h"

struct free_lists;

/** Of `count` sizes. `device` outlives it. */
MUST_CHECK enum err free_lists_create(const struct device *device, enum pool_kind kind,
    const size_t *sizes, size_t count, struct free_lists **ret, struct error *err);
void free_lists_destroy(struct free_lists *lists); /* NULL is fine */

/** A block of the size with that index; from the driver, where the list is empty. */
MUST_CHECK enum err free_lists_take(
    struct free_lists *lists, size_t index, struct pool_block *ret, struct error *err);

/** Freed where the list is full. */
void free_lists_return(struct free_lists *lists, size_t index, struct pool_block *block);

#endif
