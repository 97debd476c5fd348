/** A pool on a device of the CPU driver, for tests of pools. */
#ifndef TESTS_GPU_POOL_RIG_H
#define TESTS_GPU_POOL_RIG_H

#include <string.h>

#include "gpu/cpu_device.h"
#include "gpu/pool.h"

enum { BUDGET_BYTES = 4 << 20 };

static struct device device;
static struct budget budget;
static struct pool *pool;
static struct pool_counters counters;
static struct error err;

#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) != ERR_OK) fail_msg("%s", err.message);                                         \
    } while (0)

/** `faults` as in cpu_device_open(). */
static inline void open_pool(enum pool_kind kind, const char *faults) {
    enum err full_code = kind == POOL_DEVICE ? ERR_DEVICE_MEMORY : ERR_NO_MEMORY;
    cpu_device_open(&device, faults);
    budget_init(&budget, "test pool", full_code, BUDGET_BYTES);
    memset(&counters, 0, sizeof counters);
    OK(pool_create(&device, kind, &budget, &pool, &err));
}

static inline struct pool_block acquire(size_t bytes) {
    struct pool_block block;
    OK(pool_acquire(pool, &counters, bytes, &block, &err));
    return block;
}

static inline void release(struct pool_block *block) {
    OK(pool_release(pool, &counters, block, &err));
    assert_int_equal(0, block->address);
    assert_int_equal(0, block->bytes);
}

#endif
