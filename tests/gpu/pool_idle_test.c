/* Proves: what idle threads keep. */
#include <pthread.h>

#include "gpu/magazines.h"
#include "gpu/pool_rig.h"

#define KIB ((size_t)1 << 10)

/* Takes as many blocks as it may keep, and returns them. */
static void *acquire_and_release_all(void *context) {
    struct error mine;
    const size_t bytes = *(const size_t *)context;
    struct pool_block blocks[MAGAZINE_PLACES];
    bool is_done = device_bind(&device, &mine) == ERR_OK;
    for (size_t i = 0; i < MAGAZINE_PLACES && is_done; i++)
        is_done = pool_acquire(pool, &counters, bytes, &blocks[i], &mine) == ERR_OK;
    for (size_t i = 0; i < MAGAZINE_PLACES && is_done; i++)
        is_done = pool_release(pool, &counters, &blocks[i], &mine) == ERR_OK;
    return is_done ? context : NULL;
}

/* What a thread that has ended keeps near itself, nobody else does. */
static void leave_blocks_with_a_thread_that_ends(size_t bytes) {
    pthread_t thread;
    void *done;
    assert_int_equal(0, pthread_create(&thread, NULL, acquire_and_release_all, &bytes));
    pthread_join(thread, &done);
    assert_non_null(done);
}

static void assert_cached(uint64_t bytes) {
    struct pool_usage usage;
    OK(pool_usage_sum(&(struct pool_books){&counters, 1}, 1, &usage, &err));
    assert_int_equal(bytes, usage.cached_bytes);
    assert_int_equal(usage.live_bytes + bytes, budget_charged(&budget));
}

static void close_pool(void) {
    pool_destroy(pool, &counters);
    assert_cached(0);
    device_close(&device);
}

TEST(what_an_idle_thread_keeps_serves_others_before_the_driver_is_asked) {
    open_pool(POOL_DEVICE, NULL);
    leave_blocks_with_a_thread_that_ends(KIB);
    assert_cached(MAGAZINE_PLACES * KIB);
    uint64_t allocations = cpu_driver_counters().calls[CPU_memory_alloc];
    struct pool_block blocks[MAGAZINE_PLACES];
    for (size_t i = 0; i < MAGAZINE_PLACES; i++) blocks[i] = acquire(KIB);
    assert_int_equal(allocations, cpu_driver_counters().calls[CPU_memory_alloc]);
    assert_cached(0);
    for (size_t i = 0; i < MAGAZINE_PLACES; i++) release(&blocks[i]);
    close_pool();
}

TEST(what_idle_threads_keep_makes_room_for_others) {
    open_pool(POOL_DEVICE, NULL);
    leave_blocks_with_a_thread_that_ends(64 * KIB);
    leave_blocks_with_a_thread_that_ends(32 * KIB);
    assert_cached(MAGAZINE_PLACES * 96 * KIB);
    struct pool_block block = acquire(BUDGET_BYTES); /* fits only without them */
    assert_cached(0);
    release(&block);
    close_pool();
}

TEST(clear_finds_what_idle_threads_keep) {
    open_pool(POOL_PINNED, NULL);
    leave_blocks_with_a_thread_that_ends(256);
    uint64_t freed_bytes;
    OK(pool_clear(pool, &counters, &freed_bytes, &err));
    assert_int_equal(MAGAZINE_PLACES * 256, freed_bytes);
    assert_cached(0);
    close_pool();
}

RUN_TESTS(D(what_an_idle_thread_keeps_serves_others_before_the_driver_is_asked),
    D(what_idle_threads_keep_makes_room_for_others), D(clear_finds_what_idle_threads_keep))
