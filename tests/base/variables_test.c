#include "base/variables.h"

#include <stdlib.h>

#include "testing.h"

static struct arena arena;
static struct error err;

static enum err expand(const char *text, char **ret) {
    return variables_expand(slice_of_text(text), &arena, ret, &err);
}

static void expect(const char *text, const char *expanded) {
    char *ret;
    assert_int_equal(expand(text, &ret), ERR_OK);
    assert_string_equal(ret, expanded);
}

static void expect_refused(const char *text, const char *message) {
    char untouched, *ret = &untouched;
    assert_int_equal(expand(text, &ret), ERR_CONFIG);
    assert_string_equal(err.message, message);
    assert_ptr_equal(ret, &untouched);
}

static int set_up(void **state) {
    arena_init(&arena, 1 << 16);
    setenv("FULL", "value", 1);
    setenv("EMPTY", "", 1);
    setenv("NESTED", "${FULL}", 1);
    setenv("LATIN", "caf\xe9", 1);
    unsetenv("UNSET");
    return 0;
}

static int tear_down(void **state) {
    arena_fini(&arena);
    return 0;
}

TEST(text_without_variables_stays) {
    expect("", "");
    expect("plain { } : text", "plain { } : text");
}

TEST(a_variable_is_replaced_wherever_it_stands) {
    expect("${FULL}", "value");
    expect("a${FULL}b${FULL}", "avaluebvalue");
    expect("[${EMPTY}]", "[]");
}

TEST(a_default_stands_in_for_what_is_unset_or_empty) {
    expect("${UNSET:-other}", "other");
    expect("${EMPTY:-other}", "other");
    expect("${FULL:-other}", "value");
    expect("${UNSET:-}", "");
    expect("${UNSET:-a:-b}", "a:-b");
}

TEST(two_dollars_are_one_and_a_lone_one_is_itself) {
    expect("$$", "$");
    expect("$${FULL}", "${FULL}");
    expect("$$${FULL}", "$value");
    expect("pa$word $", "pa$word $");
}

TEST(a_value_is_not_expanded_again) {
    expect("${NESTED}", "${FULL}");
}

TEST(what_is_unset_is_refused_by_name) {
    expect_refused("${UNSET}", "environment variable 'UNSET' is not set");
}

TEST(broken_references_are_refused) {
    expect_refused("a${FULL", "'${' without '}'");
    expect_refused("${", "'${' without '}'");
    expect_refused("${}", "'${' is not followed by a variable's name");
    expect_refused("${1A}", "'${' is not followed by a variable's name");
    expect_refused("${A-B}", "'${' is not followed by a variable's name");
    expect_refused("${UNSET:-${FULL}}", "'${' stands inside '${...}'");
}

TEST(a_value_that_is_no_utf8_is_refused) {
    expect_refused("${LATIN}", "the value of environment variable 'LATIN' is not UTF-8");
}

TEST(many_references_stay_within_the_arena) {
    char value[1001], text[801] = "";
    for (size_t i = 0; i < sizeof value - 1; i++) value[i] = 'x';
    value[sizeof value - 1] = 0;
    setenv("LONG", value, 1);
    for (size_t i = 0; i < 100; i++) strcat(text, "${LONG} ");
    char *ret;
    assert_int_equal(expand(text, &ret), ERR_NO_MEMORY);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {T(text_without_variables_stays),
        T(a_variable_is_replaced_wherever_it_stands),
        T(a_default_stands_in_for_what_is_unset_or_empty),
        T(two_dollars_are_one_and_a_lone_one_is_itself), T(a_value_is_not_expanded_again),
        T(what_is_unset_is_refused_by_name), T(broken_references_are_refused),
        T(a_value_that_is_no_utf8_is_refused), T(many_references_stay_within_the_arena)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
