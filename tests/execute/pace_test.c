/* rows: D9 */
#include "execute/pace.h"

#include "testing.h"

static struct pace pace;

static int set_up(void **state) {
    pace_init(&pace);
    return 0;
}

TEST(a_shape_is_unknown_until_it_was_seen) {
    assert_int_equal(pace_get(&pace, 7), PACE_UNKNOWN);
    pace_learn(&pace, 7, 1000);
    assert_int_equal(pace_get(&pace, 7), 1000);
    assert_int_equal(pace_get(&pace, 8), PACE_UNKNOWN);
}

TEST(a_time_of_zero_is_known_all_the_same) {
    pace_learn(&pace, 7, 0);
    assert_int_not_equal(pace_get(&pace, 7), PACE_UNKNOWN);
}

TEST(a_spike_moves_the_average_a_little_and_a_change_is_followed) {
    pace_learn(&pace, 7, 1000);
    pace_learn(&pace, 7, 9000);
    assert_int_equal(pace_get(&pace, 7), 2000);
    for (int i = 0; i < 200; i++) pace_learn(&pace, 7, 9000);
    assert_in_range(pace_get(&pace, 7), 8900, 9000);
    for (int i = 0; i < 200; i++) pace_learn(&pace, 7, 100);
    assert_in_range(pace_get(&pace, 7), 100, 200);
}

TEST(shapes_that_share_a_slot_keep_their_own_times) {
    pace_learn(&pace, 5, 100);
    pace_learn(&pace, 5 + PACE_SLOTS, 200);
    assert_int_equal(pace_get(&pace, 5), 100);
    assert_int_equal(pace_get(&pace, 5 + PACE_SLOTS), 200);
}

TEST(a_new_shape_is_learned_in_a_full_table_and_one_in_use_stays_known) {
    for (uint64_t i = 0; i < 64; i++) {
        pace_learn(&pace, 5 + i * PACE_SLOTS, 100 + i);
        pace_learn(&pace, 5, 100);
        assert_int_equal(pace_get(&pace, 5 + i * PACE_SLOTS), 100 + i);
    }
    assert_int_equal(pace_get(&pace, 5), 100);
    assert_int_equal(pace_get(&pace, 5 + (uint64_t)PACE_SLOTS), PACE_UNKNOWN);
}

#define P(name) cmocka_unit_test_setup(name, set_up)

int main(void) {
    const struct CMUnitTest tests[] = {
        P(a_shape_is_unknown_until_it_was_seen),
        P(a_time_of_zero_is_known_all_the_same),
        P(a_spike_moves_the_average_a_little_and_a_change_is_followed),
        P(shapes_that_share_a_slot_keep_their_own_times),
        P(a_new_shape_is_learned_in_a_full_table_and_one_in_use_stays_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
