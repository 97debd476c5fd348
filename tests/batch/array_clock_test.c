/* The clock of arrays goes by lanes that share the device. */
#include "batch/array_clock.h"

#include "testing.h"

TEST(a_lane_alone_has_all_of_the_time) {
    struct array_clock clock = {0};
    array_clock_note(&clock, 3, true, 1000);
    assert_int_equal(array_clock_read(&clock, 1600), 600);
    array_clock_note(&clock, 3, true, 1700); /* as it was */
    assert_int_equal(array_clock_read(&clock, 2000), 1000);
}

TEST(lanes_that_run_batches_share_the_time) {
    struct array_clock clock = {0};
    array_clock_note(&clock, 0, true, 0);
    array_clock_note(&clock, 63, true, 1000);
    array_clock_note(&clock, 5, true, 1400);
    assert_int_equal(array_clock_read(&clock, 1700), 1000 + 200 + 100);
    array_clock_note(&clock, 0, false, 1700);
    array_clock_note(&clock, 5, false, 1700);
    assert_int_equal(array_clock_read(&clock, 1800), 1400);
}

TEST(the_clock_stands_while_no_lane_runs_a_batch) {
    struct array_clock clock = {0};
    array_clock_note(&clock, 0, true, 100);
    array_clock_note(&clock, 0, false, 200);
    assert_int_equal(array_clock_read(&clock, 900), 100);
    array_clock_note(&clock, 1, true, 1000);
    assert_int_equal(array_clock_read(&clock, 1050), 150);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lane_alone_has_all_of_the_time),
        cmocka_unit_test(lanes_that_run_batches_share_the_time),
        cmocka_unit_test(the_clock_stands_while_no_lane_runs_a_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
