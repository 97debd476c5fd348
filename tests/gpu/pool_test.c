/* Proves: size classes; pools that all threads share; budgets; exact accounts of memory; buffers
 * of no bytes; null handles from the driver; copies that stay in their pinned block; clearing
 * frees what is cached; want of host memory; exact counters. */
#include "gpu/pool.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/magazines.h"
#include "gpu/pinned.h"
#include "gpu/pool_rig.h"
#include "gpu/scarce_memory.h"
#include "gpu/size_class.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

static int magazines_left = INT_MAX; /* that can still be had */

struct magazines *__real_magazines_create(void);
struct magazines *__wrap_magazines_create(void);

struct magazines *__wrap_magazines_create(void) {
    if (magazines_left == 0) return NULL;
    return __real_magazines_create();
}

static uint64_t driver_bytes(void) {
    struct cpu_driver_counters counts = cpu_driver_counters();
    return counts.device_bytes_live + counts.pinned_bytes_live;
}

static uint64_t calls(enum cpu_entry entry) {
    return cpu_driver_counters().calls[entry];
}

static struct pool_usage usage(void) {
    struct pool_usage ret;
    OK(pool_usage_sum(&(struct pool_books){&counters, 1}, 1, &ret, &err));
    return ret;
}

/* The books of the pool, of the budget and of the driver tell the same story. */
static void assert_books(uint64_t live_bytes, uint64_t cached_bytes) {
    struct pool_usage now = usage();
    assert_int_equal(live_bytes, now.live_bytes);
    assert_int_equal(cached_bytes, now.cached_bytes);
    assert_int_equal(live_bytes + cached_bytes, now.allocated_bytes - now.freed_bytes);
    assert_int_equal(live_bytes + cached_bytes, budget_charged(&budget));
    assert_int_equal(live_bytes + cached_bytes, driver_bytes());
}

static void close_pool(void) {
    pool_destroy(pool, &counters);
    assert_books(0, 0);
    device_close(&device);
}

static void a_released_block_serves_the_next_of_its_class(enum pool_kind kind) {
    open_pool(kind, NULL);
    struct pool_block first = acquire(1000);
    assert_int_equal(KIB, first.bytes);
    assert_books(KIB, 0);
    uint64_t address = first.address;
    release(&first);
    assert_books(0, KIB);
    struct pool_block second = acquire(513);
    assert_int_equal(address, second.address);
    assert_books(KIB, 0);
    assert_int_equal(1, usage().hits);
    assert_int_equal(1, usage().misses);
    struct pool_block other = acquire(2 * KIB);
    assert_int_not_equal(address, other.address);
    assert_int_equal(2, usage().misses);
    release(&second);
    release(&other);
    assert_books(0, 3 * KIB);
    close_pool();
}

TEST(a_released_device_block_serves_the_next_of_its_class) {
    a_released_block_serves_the_next_of_its_class(POOL_DEVICE);
    assert_int_equal(0, calls(CPU_host_alloc));
}

TEST(a_released_pinned_block_serves_the_next_of_its_class) {
    a_released_block_serves_the_next_of_its_class(POOL_PINNED);
    assert_int_equal(0, calls(CPU_memory_alloc));
}

TEST(a_pool_that_was_filled_asks_the_driver_for_no_more) {
    open_pool(POOL_PINNED, NULL);
    OK(pool_fill(pool, &counters, KIB, 3, &err));
    assert_books(0, 3 * KIB);
    struct pool_block blocks[3];
    for (int i = 0; i < 3; i++) blocks[i] = acquire(KIB);
    assert_int_equal(3, calls(CPU_host_alloc));
    for (int i = 0; i < 3; i++) release(&blocks[i]);
    close_pool();
}

TEST(a_pool_that_cannot_be_filled_keeps_nothing_in_use) {
    open_pool(POOL_DEVICE, NULL);
    assert_int_equal(ERR_DEVICE_MEMORY, pool_fill(pool, &counters, BUDGET_BYTES / 4, 5, &err));
    assert_int_equal(0, usage().live_bytes);
    close_pool();
}

TEST(the_whole_of_a_pinned_block_can_be_written_and_not_a_byte_more) {
    open_pool(POOL_PINNED, NULL);
    struct pool_block block = acquire(300);
    struct pinned_block pinned = pool_block_pinned(&block);
    static const uint8_t payload[513];
    OK(pinned_write(&pinned, 0, slice_of(payload, 512), &err));
    assert_int_equal(ERR_INTERNAL, pinned_write(&pinned, 0, slice_of(payload, 513), &err));
    release(&block);
    close_pool();
    assert_int_equal(0, cpu_driver_counters().guards_broken);
}

TEST(zero_bytes_take_nothing) {
    open_pool(POOL_DEVICE, NULL);
    struct pool_block block = {.address = 1, .bytes = 1};
    OK(pool_acquire(pool, &counters, 0, &block, &err));
    assert_int_equal(0, block.address);
    assert_int_equal(0, block.bytes);
    OK(pool_release(pool, &counters, &block, &err));
    assert_int_equal(0, usage().hits + usage().misses);
    assert_int_equal(0, calls(CPU_memory_alloc) + calls(CPU_memory_free));
    close_pool();
}

TEST(a_size_beyond_the_classes_takes_nothing) {
    open_pool(POOL_DEVICE, NULL);
    struct pool_block block;
    assert_int_equal(ERR_TOO_LARGE, pool_acquire(pool, &counters, SIZE_MAX, &block, &err));
    assert_non_null(strstr(err.fix, "split the job"));
    assert_int_equal(0, block.address);
    assert_books(0, 0);
    close_pool();
}

TEST(a_block_beyond_the_budget_is_refused_before_the_driver_is_called) {
    open_pool(POOL_DEVICE, NULL);
    struct pool_block cached = acquire(MIB), block;
    release(&cached);
    assert_int_equal(
        ERR_DEVICE_MEMORY, pool_acquire(pool, &counters, BUDGET_BYTES + 1, &block, &err));
    assert_int_equal(1, calls(CPU_memory_alloc));
    assert_books(0, MIB); /* nothing is freed for what can never fit */
    close_pool();
}

TEST(live_blocks_that_fill_the_budget_refuse_the_next) {
    open_pool(POOL_PINNED, NULL);
    struct pool_block half = acquire(BUDGET_BYTES / 2), other = acquire(BUDGET_BYTES / 2), block;
    assert_int_equal(ERR_NO_MEMORY, pool_acquire(pool, &counters, 1, &block, &err));
    assert_non_null(strstr(err.message, "4194304 of 4194304 bytes"));
    assert_books(BUDGET_BYTES, 0);
    release(&half);
    half = acquire(BUDGET_BYTES / 2);
    release(&half);
    release(&other);
    close_pool();
}

TEST(cached_blocks_of_other_classes_make_room_within_the_budget) {
    open_pool(POOL_DEVICE, NULL);
    struct pool_block small = acquire(MIB), large = acquire(3 * MIB);
    release(&small);
    release(&large);
    assert_books(0, BUDGET_BYTES);
    struct pool_block block = acquire(2 * MIB);
    assert_books(2 * MIB, MIB); /* the largest went first, and was enough */
    release(&block);
    close_pool();
}

TEST(cached_blocks_make_room_when_the_driver_has_none) {
    open_pool(POOL_DEVICE, "cuMemAlloc:out_of_memory@3;cuMemAlloc:out_of_memory@4");
    struct pool_block first = acquire(MIB), second = acquire(MIB);
    release(&first);
    release(&second);
    struct pool_block block = acquire(256 * KIB);
    assert_books(256 * KIB, 0);
    release(&block);
    close_pool();
}

TEST(a_full_cache_lets_the_driver_have_the_rest) {
    /* of a class: what a ring holds at most, and what one thread keeps near */
    enum { CACHED = 1024 + MAGAZINE_PLACES, COUNT = CACHED + 6 };
    open_pool(POOL_DEVICE, NULL);
    struct pool_block *blocks = calloc(COUNT, sizeof blocks[0]);
    for (size_t i = 0; i < COUNT; i++) blocks[i] = acquire(512);
    for (size_t i = 0; i < COUNT; i++) release(&blocks[i]);
    assert_books(0, CACHED * 512);
    assert_int_equal((COUNT - CACHED) * 512, usage().freed_bytes);
    free(blocks);
    close_pool();
}

TEST(what_comes_back_while_the_budget_is_exceeded_is_really_freed) {
    open_pool(POOL_DEVICE, NULL);
    struct pool_block a = acquire(MIB), b = acquire(MIB), c = acquire(MIB);
    budget_set_limit(&budget, 2 * MIB);
    release(&a);
    assert_books(2 * MIB, 0);
    release(&b);
    release(&c);
    assert_books(0, 2 * MIB);
    close_pool();
}

TEST(all_blocks_of_a_batch_are_taken_or_none) {
    open_pool(POOL_DEVICE, NULL);
    static const size_t fits[] = {100, 0, MIB, 2 * MIB}, too_much[] = {MIB, 0, 2 * MIB, 2 * MIB};
    struct pool_block blocks[4];
    assert_int_equal(
        ERR_DEVICE_MEMORY, pool_acquire_all(pool, &counters, too_much, 4, blocks, &err));
    for (size_t i = 0; i < 4; i++) assert_int_equal(0, blocks[i].address);
    assert_int_equal(0, usage().live_bytes);
    OK(pool_acquire_all(pool, &counters, fits, 4, blocks, &err));
    assert_int_equal(3 * MIB + 256, usage().live_bytes);
    for (size_t i = 0; i < 4; i++) assert_true((blocks[i].address != 0) == (fits[i] != 0));
    for (size_t i = 0; i < 4; i++) release(&blocks[i]);
    assert_int_equal(0, usage().live_bytes);
    close_pool();
}

TEST(clear_frees_what_is_cached_and_leaves_what_is_in_use) {
    open_pool(POOL_DEVICE, NULL);
    struct pool_block live = acquire(4 * KIB), a = acquire(KIB), b = acquire(MIB);
    release(&a);
    release(&b);
    uint64_t freed_bytes;
    OK(pool_clear(pool, &counters, &freed_bytes, &err));
    assert_int_equal(MIB + KIB, freed_bytes);
    assert_books(4 * KIB, 0);
    OK(pool_clear(pool, &counters, &freed_bytes, &err));
    assert_int_equal(0, freed_bytes);
    release(&live);
    close_pool();
}

TEST(destruction_frees_what_is_cached_and_leaves_live_bytes_at_what_is_in_use) {
    open_pool(POOL_PINNED, NULL);
    struct pool_block live = acquire(4 * KIB), cached = acquire(MIB);
    release(&cached);
    pool_destroy(pool, &counters);
    assert_books(4 * KIB, 0);
    struct pinned_block rest = pool_block_pinned(&live);
    pinned_block_free(&device, &rest);
    device_close(&device);
}

TEST(a_failed_allocation_leaves_the_books_as_they_were) {
    open_pool(POOL_DEVICE, "cuMemAlloc:invalid_value@2");
    struct pool_block first = acquire(KIB), block;
    assert_int_equal(ERR_DRIVER, pool_acquire(pool, &counters, MIB, &block, &err));
    assert_int_equal(0, block.address);
    assert_books(KIB, 0);
    block = acquire(MIB);
    release(&block);
    release(&first);
    close_pool();
}

TEST(a_batch_whose_second_allocation_fails_keeps_nothing_live) {
    open_pool(POOL_PINNED, "cuMemHostAlloc:out_of_memory@2;cuMemHostAlloc:out_of_memory@3");
    static const size_t sizes[] = {KIB, MIB};
    struct pool_block blocks[2];
    assert_int_equal(ERR_NO_MEMORY, pool_acquire_all(pool, &counters, sizes, 2, blocks, &err));
    assert_books(0, KIB);
    close_pool();
}

TEST(a_null_block_reported_as_success_is_an_error_and_charges_nothing) {
    open_pool(POOL_DEVICE, "cuMemAlloc:null@1");
    struct pool_block block;
    assert_int_equal(ERR_DRIVER, pool_acquire(pool, &counters, KIB, &block, &err));
    assert_books(0, 0);
    close_pool();
    open_pool(POOL_PINNED, "cuMemHostAlloc:null@1");
    assert_int_equal(ERR_DRIVER, pool_acquire(pool, &counters, KIB, &block, &err));
    assert_books(0, 0);
    close_pool();
}

TEST(books_that_would_wrap_are_an_error_and_no_allocation) {
    open_pool(POOL_DEVICE, NULL);
    struct pool_block block;
    atomic_store(&counters.acquired_bytes, UINT64_MAX - 100);
    assert_int_equal(ERR_INTERNAL, pool_acquire(pool, &counters, KIB, &block, &err));
    assert_string_equal("pool counter acquired_bytes is 18446744073709551515, and adding 1024 "
                        "would wrap it",
        err.message);
    assert_int_equal(0, driver_bytes());
    assert_int_equal(0, budget_charged(&budget));

    atomic_store(&counters.acquired_bytes, 0);
    block = acquire(KIB);
    atomic_store(&counters.kept_bytes, UINT64_MAX);
    assert_int_equal(ERR_INTERNAL, pool_release(pool, &counters, &block, &err));
    assert_non_null(strstr(err.message, "kept_bytes"));
    assert_int_equal(KIB, block.bytes); /* still the caller's */
    atomic_store(&counters.kept_bytes, 0);
    release(&block);

    uint64_t freed_bytes;
    atomic_store(&counters.freed_bytes, UINT64_MAX);
    assert_int_equal(ERR_INTERNAL, pool_clear(pool, &counters, &freed_bytes, &err));
    atomic_store(&counters.freed_bytes, 0);
    assert_books(0, KIB);
    close_pool();
}

TEST(a_free_that_the_budget_does_not_know_is_an_error) {
    open_pool(POOL_DEVICE, NULL);
    struct pool_block block = acquire(KIB);
    release(&block);
    OK(budget_refund(&budget, KIB, &err));
    uint64_t freed_bytes;
    assert_int_equal(ERR_INTERNAL, pool_clear(pool, &counters, &freed_bytes, &err));
    assert_non_null(strstr(err.message, "charged_bytes is 0, and a refund of 1024"));
    assert_int_equal(0, driver_bytes());
    close_pool();
}

TEST(sums_that_cannot_be_are_errors_that_name_the_values) {
    struct pool_counters threads[2];
    struct pool_usage sums;
    memset(threads, 0, sizeof threads);
    atomic_store(&threads[0].acquired_bytes, 100);
    atomic_store(&threads[1].released_bytes, 101);
    assert_int_equal(
        ERR_INTERNAL, pool_usage_sum(&(struct pool_books){threads, 2}, 1, &sums, &err));
    assert_string_equal(
        "pool counter live_bytes: 100 bytes came in, and 101 went out of them", err.message);

    atomic_store(&threads[1].released_bytes, 100);
    atomic_store(&threads[0].kept_bytes, 5);
    atomic_store(&threads[1].taken_bytes, 6);
    assert_int_equal(
        ERR_INTERNAL, pool_usage_sum(&(struct pool_books){threads, 2}, 1, &sums, &err));
    assert_string_equal(
        "pool counter cached_bytes: 5 bytes came in, and 6 went out of them", err.message);

    atomic_store(&threads[1].kept_bytes, UINT64_MAX);
    assert_int_equal(
        ERR_INTERNAL, pool_usage_sum(&(struct pool_books){threads, 2}, 1, &sums, &err));
    assert_non_null(strstr(err.message, "kept_bytes is 5, and adding 18446744073709551615"));
}

TEST(a_budget_of_nothing_refuses_everything) {
    cpu_device_open(&device, NULL);
    budget_init(&budget, "test pool", ERR_DEVICE_MEMORY, 0);
    memset(&counters, 0, sizeof counters);
    OK(pool_create(&device, POOL_DEVICE, &budget, &pool, &err));
    struct pool_block block;
    assert_int_equal(ERR_DEVICE_MEMORY, pool_acquire(pool, &counters, 1, &block, &err));
    close_pool();
}

TEST(magazines_that_cannot_be_had_are_a_typed_error_and_leak_nothing) {
    cpu_device_open(&device, NULL);
    budget_init(&budget, "test pool", ERR_DEVICE_MEMORY, BUDGET_BYTES);
    pool = NULL;
    magazines_left = 0;
    enum err code = pool_create(&device, POOL_DEVICE, &budget, &pool, &err);
    magazines_left = INT_MAX;
    assert_int_equal(ERR_NO_MEMORY, code);
    assert_null(pool);
    device_close(&device);
}

TEST(rings_that_cannot_be_had_are_a_typed_error_and_leak_nothing) {
    cpu_device_open(&device, NULL);
    budget_init(&budget, "test pool", ERR_DEVICE_MEMORY, BUDGET_BYTES);
    pool = NULL;
    for (int i = 0; i < SIZE_CLASS_COUNT; i++) {
        rings_left = i;
        enum err code = pool_create(&device, POOL_DEVICE, &budget, &pool, &err);
        rings_left = INT_MAX;
        assert_int_equal(ERR_NO_MEMORY, code);
        assert_string_equal("no memory for the rings of the test pool", err.message);
        assert_null(pool);
    }
    device_close(&device);
}

enum { THREADS = 16, SHARED = 32, ROUNDS = 2000, SIZES = 6, TRAFFIC_BUDGET_BYTES = 512 << 10 };

/*
 * Threads take blocks, mark them as theirs, and leave them in shared places where any thread takes
 * them away to release them. A block that two have at once shows a foreign mark.
 */
struct traffic {
    struct pool_counters counters[THREADS + 1]; /* one more for the end */
    struct {
        _Atomic(struct pool_block *) block;
    } places[SHARED];
    atomic_uint next_thread, refusals, failures, foreign_marks;
};

static uint32_t next_random(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static void mark(struct traffic *traffic, const struct pool_block *block, uint64_t mine) {
    volatile uint64_t *memory = (volatile uint64_t *)(uintptr_t)block->address;
    *memory = mine;
    for (int i = 0; i < 20; i++)
        if (*memory != mine) atomic_fetch_add(&traffic->foreign_marks, 1);
}

static void swap_blocks(struct traffic *traffic, size_t me, uint32_t *random) {
    static const size_t sizes[SIZES] = {200, 500, 2 * KIB, 10 * KIB, 30 * KIB, 60 * KIB};
    struct error mine;
    struct pool_block *block = malloc(sizeof *block);
    enum err code = pool_acquire(
        pool, &traffic->counters[me], sizes[next_random(random) % SIZES], block, &mine);
    if (code != ERR_OK) {
        atomic_fetch_add(code == ERR_NO_MEMORY ? &traffic->refusals : &traffic->failures, 1);
        free(block);
        block = NULL;
    } else {
        mark(traffic, block, (uint64_t)next_random(random) << 32 | me);
    }
    struct pool_block *other =
        atomic_exchange(&traffic->places[next_random(random) % SHARED].block, block);
    if (other == NULL) return;
    mark(traffic, other, (uint64_t)next_random(random) << 32 | me);
    if (pool_release(pool, &traffic->counters[me], other, &mine) != ERR_OK)
        atomic_fetch_add(&traffic->failures, 1);
    free(other);
}

static void *run_traffic(void *context) {
    struct traffic *traffic = context;
    size_t me = atomic_fetch_add(&traffic->next_thread, 1);
    uint32_t random = (uint32_t)me + 1;
    struct error mine;
    struct pool_usage now;
    if (device_bind(&device, &mine) != ERR_OK) atomic_fetch_add(&traffic->failures, 1);
    for (int i = 0; i < ROUNDS; i++) {
        swap_blocks(traffic, me, &random);
        if (budget_charged(&budget) > TRAFFIC_BUDGET_BYTES) atomic_fetch_add(&traffic->failures, 1);
        uint64_t freed_bytes;
        if (i % 1000 == 999 && pool_clear(pool, &traffic->counters[me], &freed_bytes, &mine))
            atomic_fetch_add(&traffic->failures, 1);
        /* Read while all run: sums may be late, but never impossible. */
        if (i % 50 == 0 && pool_usage_sum(&(struct pool_books){traffic->counters, THREADS}, 1, &now,
                               &mine) != ERR_OK)
            atomic_fetch_add(&traffic->failures, 1);
    }
    return NULL;
}

static void blocks_survive_traffic(const char *faults) {
    open_pool(POOL_PINNED, faults);
    budget_set_limit(&budget, TRAFFIC_BUDGET_BYTES); /* less than the threads would take */
    struct traffic *traffic = calloc(1, sizeof *traffic);
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(0, pthread_create(&threads[i], NULL, run_traffic, traffic));
    for (size_t i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    assert_int_equal(0, atomic_load(&traffic->foreign_marks));
    if (faults == NULL) assert_int_equal(0, atomic_load(&traffic->failures));

    struct pool_usage now;
    uint64_t live_bytes = 0;
    for (size_t i = 0; i < SHARED; i++) {
        struct pool_block *block = atomic_load(&traffic->places[i].block);
        if (block != NULL) live_bytes += block->bytes;
    }
    OK(pool_usage_sum(&(struct pool_books){traffic->counters, THREADS}, 1, &now, &err));
    assert_int_equal(live_bytes, now.live_bytes);
    assert_true(now.hits > 0);
    assert_true(atomic_load(&traffic->refusals) > 0);
    for (size_t i = 0; i < SHARED; i++) {
        struct pool_block *block = atomic_load(&traffic->places[i].block);
        if (block != NULL) OK(pool_release(pool, &traffic->counters[THREADS], block, &err));
        free(block);
    }
    OK(pool_usage_sum(&(struct pool_books){traffic->counters, THREADS + 1}, 1, &now, &err));
    assert_int_equal(0, now.live_bytes);
    assert_int_equal(now.cached_bytes, budget_charged(&budget));
    assert_int_equal(now.cached_bytes, now.allocated_bytes - now.freed_bytes);
    uint64_t freed_bytes;
    OK(pool_clear(pool, &traffic->counters[THREADS], &freed_bytes, &err));
    assert_int_equal(now.cached_bytes, freed_bytes);
    free(traffic);
    close_pool();
    cpu_driver_check_memory();
    assert_int_equal(0, cpu_driver_counters().writes_after_free);
    assert_int_equal(0, cpu_driver_counters().guards_broken);
}

TEST(many_threads_share_blocks_one_owner_at_a_time_and_the_books_are_exact) {
    blocks_survive_traffic(NULL);
}

TEST(a_driver_that_fails_at_random_leaks_nothing_under_traffic) {
    blocks_survive_traffic("seed=7;cuMemHostAlloc:invalid_value@p0.2;cuMemHostAlloc:null@p0.1");
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        D(a_released_device_block_serves_the_next_of_its_class),
        D(a_released_pinned_block_serves_the_next_of_its_class),
        D(a_pool_that_was_filled_asks_the_driver_for_no_more),
        D(a_pool_that_cannot_be_filled_keeps_nothing_in_use),
        D(the_whole_of_a_pinned_block_can_be_written_and_not_a_byte_more),
        D(zero_bytes_take_nothing),
        D(a_size_beyond_the_classes_takes_nothing),
        D(a_block_beyond_the_budget_is_refused_before_the_driver_is_called),
        D(live_blocks_that_fill_the_budget_refuse_the_next),
        D(cached_blocks_of_other_classes_make_room_within_the_budget),
        D(cached_blocks_make_room_when_the_driver_has_none),
        D(a_full_cache_lets_the_driver_have_the_rest),
        D(what_comes_back_while_the_budget_is_exceeded_is_really_freed),
        D(all_blocks_of_a_batch_are_taken_or_none),
        D(clear_frees_what_is_cached_and_leaves_what_is_in_use),
        D(destruction_frees_what_is_cached_and_leaves_live_bytes_at_what_is_in_use),
        D(a_failed_allocation_leaves_the_books_as_they_were),
        D(a_batch_whose_second_allocation_fails_keeps_nothing_live),
        D(a_null_block_reported_as_success_is_an_error_and_charges_nothing),
        D(books_that_would_wrap_are_an_error_and_no_allocation),
        D(a_free_that_the_budget_does_not_know_is_an_error),
        D(sums_that_cannot_be_are_errors_that_name_the_values),
        D(a_budget_of_nothing_refuses_everything),
        D(magazines_that_cannot_be_had_are_a_typed_error_and_leak_nothing),
        D(rings_that_cannot_be_had_are_a_typed_error_and_leak_nothing),
        D(many_threads_share_blocks_one_owner_at_a_time_and_the_books_are_exact),
        D(a_driver_that_fails_at_random_leaks_nothing_under_traffic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
