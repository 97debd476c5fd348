/**
 * A cache of free memory blocks over gpu/memory.h, one for device memory and one for pinned memory,
 * shared by all threads and lock-free: a size class is a ring of free blocks, and small classes
 * have a few places for each thread before it (gpu/magazines.h).
 *
 * All memory that the driver handed out, in use or cached, is charged to a budget. How much is in
 * use and how much is cached follows from counters that each thread keeps for itself, so that a hit
 * and its release touch at most one ring and nothing else that is shared. If the budget or the
 * driver has no room, an acquire frees cached blocks (large ones first) until there is room or
 * nothing is cached any more.
 *
 * A pool may wipe: then every block that it hands out is zero, whether this process used it before
 * or an earlier one. Blocks are wiped when the driver allocates them and when they are released,
 * with a wait for the device.
 *
 * Units: bytes. Lifetime: a block may be released by another thread than the one that acquired it,
 * after the work that uses it is fenced. If the fence failed it is not released at all: the memory
 * may still be in use, and the process is about to end. Threads: any that is bound to the device,
 * each with counters of its own. Errors: ERR_DEVICE_MEMORY or ERR_NO_MEMORY (pinned) when what is
 * in use leaves no room, ERR_TOO_LARGE beyond the largest size class, ERR_INTERNAL when a counter
 * would overflow. After an error nothing is taken.
 */
#ifndef GPU_POOL_H
#define GPU_POOL_H

#include "gpu/budget.h"
#include "gpu/memory.h"

enum pool_kind { POOL_DEVICE, POOL_PINNED };

struct pool;

struct pool_block {
    uint64_t address; /* a device or host pointer, depending on the pool's kind; 0: no block */
    size_t bytes;     /* usable bytes: the size of the class */
};

/* X(counter): sums of one thread that only grow; live and cached bytes are differences of them. */
#define POOL_COUNTER_LIST(X)                                                                       \
    X(hits)                                                                                        \
    X(misses)                                                                                      \
    X(acquired_bytes)                                                                              \
    X(released_bytes)                                                                              \
    X(kept_bytes)      /* put into the cache */                                                    \
    X(taken_bytes)     /* taken out of the cache, or did not fit into it */                        \
    X(allocated_bytes) /* by the driver */                                                         \
    X(freed_bytes)     /* by the driver */

/** One thread's counters. Zero them before use; only that thread writes them. */
struct pool_counters {
#define X(counter) atomic_uint_fast64_t counter;
    POOL_COUNTER_LIST(X)
#undef X
    uint8_t padding[64]; /* keeps the next thread's counters in another cache line */
};

struct pool_usage {
#define X(counter) uint64_t counter;
    POOL_COUNTER_LIST(X)
#undef X
    uint64_t live_bytes; /* in use */
    uint64_t cached_bytes;
};

/**
 * `budget` must outlive the pool. Its limit at this time decides how many blocks the ring of each
 * class may hold, 1024 at most. Errors: ERR_NO_MEMORY, if the rings cannot be allocated.
 */
MUST_CHECK enum err pool_create(const struct device *device, enum pool_kind kind,
    struct budget *budget, struct pool **ret, struct error *err);

/** Frees every cached block; blocks in use stay charged to the budget. NULL is fine. */
void pool_destroy(struct pool *pool, struct pool_counters *counters);

/** Makes the pool wipe. Call it before the first block is acquired. */
MUST_CHECK enum err pool_start_wiping(struct pool *pool, struct error *err);
bool pool_wipes(const struct pool *pool);

/** Zero bytes take no block. The contents are undefined, unless the pool wipes. */
MUST_CHECK enum err pool_acquire(struct pool *pool, struct pool_counters *counters, size_t bytes,
    struct pool_block *ret, struct error *err);

/** Acquires all `count` blocks, or none. */
MUST_CHECK enum err pool_acquire_all(struct pool *pool, struct pool_counters *counters,
    const size_t *sizes, size_t count, struct pool_block *ret, struct error *err);

/**
 * Gives the block back and clears `block`; an empty block is fine. It is cached, or freed if the
 * cache is full, if the budget is exceeded (its limit was lowered) or if it cannot be wiped.
 */
MUST_CHECK enum err pool_release(
    struct pool *pool, struct pool_counters *counters, struct pool_block *block, struct error *err);

/** As pool_release(), for a block that was taken and not given back: all else is a bug of ours. */
void pool_give_back(struct pool *pool, struct pool_counters *counters, struct pool_block *block);

/** Takes `count` blocks from the driver, as far as they are not cached, and caches them. */
MUST_CHECK enum err pool_fill(struct pool *pool, struct pool_counters *counters, size_t bytes,
    size_t count, struct error *err);

/** How many more bytes the driver may hand out, by the budget and the size of the device. */
uint64_t pool_room_bytes(const struct pool *pool);

/** Frees every cached block, and returns how many bytes that were. */
MUST_CHECK enum err pool_clear(struct pool *pool, struct pool_counters *counters,
    uint64_t *ret_freed_bytes, struct error *err);

/** The counters of some threads. */
struct pool_books {
    const struct pool_counters *counters;
    size_t count;
};

/**
 * The sum over all threads of `count` groups of counters. Exact while none of the threads is inside
 * a call; otherwise live and cached bytes may be too large by what is just moving, but never too
 * small. Errors: ERR_INTERNAL with counter and values, if more was released than acquired, or if a
 * sum would overflow.
 */
MUST_CHECK enum err pool_usage_sum(
    const struct pool_books *books, size_t count, struct pool_usage *ret, struct error *err);

static inline CUdeviceptr pool_block_device(const struct pool_block *block) {
    return (CUdeviceptr)block->address;
}

/** A view for pinned_write(). The block still has to be released to the pool. */
static inline struct pinned_block pool_block_pinned(const struct pool_block *block) {
    return (struct pinned_block){
        .data = (uint8_t *)(uintptr_t)block->address, .bytes = block->bytes};
}

#endif
