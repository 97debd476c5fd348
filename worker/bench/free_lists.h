/**
 * The baseline for pools: a free list behind a mutex for each size, without a budget and without
 * counters. gpu-worker bench pools compares the pools with it.
 *
 * Units: bytes. Lifetime: free_lists_create() to free_lists_destroy(), which frees what is in the
 * lists. Threads: any that is bound to the device.
 */
#ifndef BENCH_FREE_LISTS_H
#define BENCH_FREE_LISTS_H

#include "gpu/pool.h"

struct free_lists;

/** Creates lists for `count` sizes. `device` must outlive them. */
MUST_CHECK enum err free_lists_create(const struct device *device, enum pool_kind kind,
    const size_t *sizes, size_t count, struct free_lists **ret, struct error *err);
void free_lists_destroy(struct free_lists *lists); /* NULL is fine */

/** Takes a block of the size with that index; from the driver if the list is empty. */
MUST_CHECK enum err free_lists_take(
    struct free_lists *lists, size_t index, struct pool_block *ret, struct error *err);

/** Returns a block; it is freed if the list is full. */
void free_lists_return(struct free_lists *lists, size_t index, struct pool_block *block);

#endif
