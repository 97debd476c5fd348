#include "base/number.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "testing.h"

static void assert_written(int64_t value, const char *expected) {
    char text[NUMBER_TEXT_MAX + 1] = {0};
    assert_int_equal(number_write(text, value), strlen(expected));
    assert_string_equal(text, expected);
}

TEST(numbers_are_written_as_printf_writes_them) {
    char expected[NUMBER_TEXT_MAX + 1];
    for (int shift = 0; shift < 64; shift++) {
        int64_t value = (int64_t)(UINT64_C(0x9e3779b97f4a7c15) >> shift);
        snprintf(expected, sizeof expected, "%" PRId64, value);
        assert_written(value, expected);
    }
    assert_written(0, "0");
    assert_written(10, "10");
    assert_written(INT64_MAX, "9223372036854775807");
    assert_written(INT64_MIN, "-9223372036854775808");
}

TEST(what_is_no_number_or_does_not_fit_is_not_read) {
    uint64_t value = 7;
    assert_int_equal(number_read("", &value), 0);
    assert_int_equal(number_read("x1", &value), 0);
    assert_int_equal(number_read("-1", &value), 0);
    assert_int_equal(number_read("010", &value), 0);
    assert_int_equal(number_read("18446744073709551616", &value), 0);
    assert_int_equal(value, 7);
}

TEST(digits_are_read_up_to_what_is_none) {
    uint64_t value;
    assert_int_equal(number_read("0", &value), 1);
    assert_int_equal(value, 0);
    assert_int_equal(number_read("12ms", &value), 2);
    assert_int_equal(value, 12);
    assert_int_equal(number_read("18446744073709551615", &value), 20);
    assert_true(value == UINT64_MAX);
}

RUN_TESTS(T(numbers_are_written_as_printf_writes_them),
    T(what_is_no_number_or_does_not_fit_is_not_read), T(digits_are_read_up_to_what_is_none))
