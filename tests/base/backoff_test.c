#include "base/backoff.h"

#include "testing.h"

TEST(the_longest_wait_doubles_up_to_its_maximum) {
    static const uint64_t longest[] = {100, 200, 400, 800, 1000, 1000};
    for (uint32_t i = 0; i < 6; i++)
        for (uint64_t random = 0; random < 2000; random++) {
            uint64_t wait = backoff_ms(100, 1000, i + 1, random);
            assert_in_range(wait, longest[i] / 2, longest[i]);
        }
}

TEST(both_ends_of_a_wait_are_reached) {
    assert_int_equal(backoff_ms(100, 1000, 1, 0), 50);
    assert_int_equal(backoff_ms(100, 1000, 1, 50), 100);
    assert_int_equal(backoff_ms(100, 1000, 1, 51), 50);
}

TEST(no_count_of_failures_overflows) {
    assert_in_range(backoff_ms(UINT32_MAX, UINT32_MAX, UINT32_MAX, 0), UINT32_MAX / 2, UINT32_MAX);
    assert_in_range(backoff_ms(1, UINT32_MAX, UINT32_MAX, UINT64_MAX), UINT32_MAX / 2, UINT32_MAX);
}

TEST(a_wait_of_one_millisecond_is_never_none) {
    for (uint64_t random = 0; random < 10; random++)
        assert_int_equal(backoff_ms(1, 1, 3, random), 1);
}

TEST(a_base_over_the_maximum_is_the_maximum) {
    assert_in_range(backoff_ms(1000, 10, 1, 7), 5, 10);
}

RUN_TESTS(T(the_longest_wait_doubles_up_to_its_maximum), T(both_ends_of_a_wait_are_reached),
    T(no_count_of_failures_overflows), T(a_wait_of_one_millisecond_is_never_none),
    T(a_base_over_the_maximum_is_the_maximum))
