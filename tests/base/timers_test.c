#include "base/timers.h"

#include <stdlib.h>

#include "testing.h"

enum { COUNT = 500 };

static int items[COUNT];

static int set_up(void **state) {
    *state = timers_create(COUNT);
    return *state != NULL ? 0 : -1;
}

static int tear_down(void **state) {
    timers_destroy(*state);
    return 0;
}

/* A thousand different orders, the same in every run. */
static uint64_t scrambled(uint64_t i) {
    return (i * 7919 + 13) % 1009;
}

static bool is_odd(void *context, const void *item) {
    return ((const int *)item - items) % 2 == 1;
}

static bool is_any(void *context, const void *item) {
    return true;
}

TEST(items_come_in_the_order_of_their_time) {
    struct timers *timers = *state;
    for (size_t i = 0; i < COUNT; i++) timers_add(timers, scrambled(i), &items[i]);
    uint64_t last = 0;
    for (size_t i = 0; i < COUNT; i++) {
        int *item = timers_take_due(timers, UINT64_MAX - 1);
        uint64_t due = scrambled((uint64_t)(item - items));
        assert_true(due >= last);
        last = due;
    }
    assert_null(timers_take_due(timers, UINT64_MAX));
}

TEST(nothing_comes_before_its_time) {
    struct timers *timers = *state;
    assert_true(timers_next_ns(timers) == UINT64_MAX);
    timers_add(timers, 20, &items[0]);
    timers_add(timers, 10, &items[1]);
    assert_int_equal(timers_next_ns(timers), 10);
    assert_null(timers_take_due(timers, 9));
    assert_ptr_equal(timers_take_due(timers, 10), &items[1]);
    assert_null(timers_take_due(timers, 19));
    assert_ptr_equal(timers_take_due(timers, 20), &items[0]);
}

TEST(those_that_are_picked_out_leave_the_others_in_order) {
    struct timers *timers = *state;
    for (size_t i = 0; i < COUNT; i++) timers_add(timers, scrambled(i), &items[i]);
    for (size_t i = 0; i < COUNT / 2; i++) {
        int *item = timers_take_any(timers, is_odd, NULL);
        assert_int_equal((item - items) % 2, 1);
    }
    assert_null(timers_take_any(timers, is_odd, NULL));
    assert_int_equal(timers_count(timers), COUNT / 2);
    uint64_t last = 0;
    for (size_t i = 0; i < COUNT / 2; i++) {
        int *item = timers_take_due(timers, UINT64_MAX - 1);
        assert_true(scrambled((uint64_t)(item - items)) >= last);
        last = scrambled((uint64_t)(item - items));
    }
    assert_null(timers_take_any(timers, is_any, NULL));
}

#define F(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        F(items_come_in_the_order_of_their_time),
        F(nothing_comes_before_its_time),
        F(those_that_are_picked_out_leave_the_others_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
