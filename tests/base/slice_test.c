#include "base/slice.h"

#include "testing.h"

#define BYTES(literal) slice_of("" literal, sizeof literal - 1)

TEST(take_moves_the_front_and_leaves_the_rest) {
    struct slice from = slice_of_text("abcdef"), taken;
    assert_true(slice_take(&from, 2, &taken));
    assert_true(slice_is_text(taken, "ab"));
    assert_true(slice_is_text(from, "cdef"));
    assert_true(slice_take(&from, 4, &taken));
    assert_true(slice_is_text(taken, "cdef"));
    assert_int_equal(from.size, 0);
}

TEST(take_of_more_than_there_is_changes_nothing) {
    struct slice from = slice_of_text("abc"), taken = slice_of_text("old");
    assert_false(slice_take(&from, 4, &taken));
    assert_false(slice_take(&from, SIZE_MAX, &taken));
    assert_true(slice_is_text(from, "abc"));
    assert_true(slice_is_text(taken, "old"));
}

TEST(equal_compares_length_and_bytes) {
    assert_true(slice_equal(BYTES("a\0b"), BYTES("a\0b")));
    assert_false(slice_equal(BYTES("a\0b"), BYTES("a\0c")));
    assert_false(slice_equal(slice_of_text("a"), slice_of_text("ab")));
    assert_true(slice_equal(slice_of(NULL, 0), slice_of("x", 0)));
}

TEST(utf8_takes_the_ends_of_every_length) {
    const struct slice good[] = {BYTES(""), BYTES("\x01\x7f"), BYTES("\xc2\x80"), BYTES("\xdf\xbf"),
        BYTES("\xe0\xa0\x80"), BYTES("\xed\x9f\xbf"), BYTES("\xee\x80\x80"), BYTES("\xef\xbf\xbf"),
        BYTES("\xf0\x90\x80\x80"), BYTES("\xf4\x8f\xbf\xbf"), BYTES("a\xc3\xa9z")};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) assert_true(slice_is_utf8(good[i]));
}

TEST(utf8_refuses_what_is_too_long_too_large_or_cut) {
    const struct slice bad[] = {
        BYTES("\0"),               /* a NUL */
        BYTES("a\0b"),             /* inside */
        BYTES("\x80"),             /* a continuation alone */
        BYTES("\xc0\xaf"),         /* two bytes for what fits into one */
        BYTES("\xc1\xbf"),         /* the same */
        BYTES("\xe0\x9f\xbf"),     /* three for two */
        BYTES("\xf0\x8f\xbf\xbf"), /* four for three */
        BYTES("\xed\xa0\x80"),     /* the first surrogate */
        BYTES("\xed\xbf\xbf"),     /* the last */
        BYTES("\xf4\x90\x80\x80"), /* beyond U+10FFFF */
        BYTES("\xf5\x80\x80\x80"),
        BYTES("\xff"),
        BYTES("\xc3"), /* cut */
        BYTES("\xe2\x82"),
        BYTES("\xf0\x9f\x98"),
        BYTES("\xc3("), /* no continuation */
        BYTES("\xe2\x82("),
        BYTES("\xe2(\xa1"),
        BYTES("\xf0\x9f\x98("),
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) assert_false(slice_is_utf8(bad[i]));
}

RUN_TESTS(T(take_moves_the_front_and_leaves_the_rest),
    T(take_of_more_than_there_is_changes_nothing), T(equal_compares_length_and_bytes),
    T(utf8_takes_the_ends_of_every_length), T(utf8_refuses_what_is_too_long_too_large_or_cut))
