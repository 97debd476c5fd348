/* Pools that wipe: no block is handed out, or kept, with anybody's bytes in it. */
#include <string.h>

#include "gpu/pool_rig.h"

enum { KIB = 1 << 10 };

static void open_wiping(enum pool_kind kind, const char *faults) {
    open_pool(kind, faults);
    OK(pool_start_wiping(pool, &err));
}

static void close_pool(void) {
    pool_destroy(pool, &counters);
    assert_int_equal(budget_charged(&budget), 0);
    device_close(&device);
}

static bool is_zero(const uint8_t *data, size_t bytes) {
    return data[0] == 0 && memcmp(data, data + 1, bytes - 1) == 0;
}

/* The CPU driver's memory is in reach of the host, and comes with a pattern in it. */
static void a_pool_that_wipes_hands_out_zeroes(enum pool_kind kind) {
    open_wiping(kind, NULL);
    struct pool_block block = acquire(1000);
    uint8_t *data = (uint8_t *)(uintptr_t)block.address;
    assert_true(is_zero(data, block.bytes));
    memset(data, 0x5e, block.bytes);
    release(&block);
    assert_true(is_zero(data, KIB)); /* while nobody has it, too */
    struct pool_block second = acquire(513);
    assert_int_equal(second.address, (uintptr_t)data);
    assert_true(is_zero(data, second.bytes));
    release(&second);
    close_pool();
}

TEST(a_device_pool_that_wipes_hands_out_zeroes) {
    a_pool_that_wipes_hands_out_zeroes(POOL_DEVICE);
}

TEST(a_pinned_pool_that_wipes_hands_out_zeroes) {
    a_pool_that_wipes_hands_out_zeroes(POOL_PINNED);
}

TEST(a_new_block_that_cannot_be_wiped_is_not_handed_out) {
    open_wiping(POOL_DEVICE, "cuMemsetD8Async:invalid_value@1");
    struct pool_block block;
    assert_int_equal(pool_acquire(pool, &counters, KIB, &block, &err), ERR_DRIVER);
    assert_int_equal(budget_charged(&budget), 0);
    close_pool();
}

TEST(a_block_that_cannot_be_wiped_is_not_kept) {
    open_wiping(POOL_DEVICE, "cuMemsetD8Async:invalid_value@2");
    struct pool_block block = acquire(KIB);
    release(&block);
    assert_int_equal(budget_charged(&budget), 0);
    close_pool();
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        D(a_device_pool_that_wipes_hands_out_zeroes),
        D(a_pinned_pool_that_wipes_hands_out_zeroes),
        D(a_new_block_that_cannot_be_wiped_is_not_handed_out),
        D(a_block_that_cannot_be_wiped_is_not_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
