#include "cli/screen.h"

#include <string.h>

#include "testing.h"

static size_t fit(const char *page, size_t rows, size_t columns) {
    return screen_fit(page, strlen(page), rows, columns);
}

TEST(a_page_that_has_room_is_shown_whole) {
    assert_int_equal(fit("", 5, 10), 0);
    assert_int_equal(fit("one\n\nthree\n", 3, 10), 11);
    assert_int_equal(fit("one\n\nthree", 3, 5), 10);
}

TEST(a_terminal_of_unknown_size_is_shown_everything) {
    assert_int_equal(fit("one\ntwo\n", 0, 10), 8);
    assert_int_equal(fit("one\ntwo\n", 1, 0), 8);
}

TEST(of_a_page_with_too_many_rows_the_first_lines_are_shown) {
    assert_int_equal(fit("one\ntwo\nthree\n", 2, 10), 8);
    assert_int_equal(fit("one\n", 1, 10), 4);
}

TEST(a_line_that_is_longer_than_a_row_takes_several_and_is_shown_whole_or_not) {
    assert_int_equal(fit("twelve bytes\nnext\n", 3, 5), 13);
    assert_int_equal(fit("twelve bytes\nnext\n", 2, 5), 0);
    assert_int_equal(fit("0123456789\nnext\n", 3, 5), 16);
}

#define T(name) cmocka_unit_test(name)

RUN_TESTS(T(a_page_that_has_room_is_shown_whole), T(a_terminal_of_unknown_size_is_shown_everything),
    T(of_a_page_with_too_many_rows_the_first_lines_are_shown),
    T(a_line_that_is_longer_than_a_row_takes_several_and_is_shown_whole_or_not))
