/* Bounds of entries: what a manifest may say of numbers, buffers and shapes. */
#include "program/bounds.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "program/manifest_rig.h"

/* An entry with these arguments, a line each, and these lines of its own. */
static const struct entry *read_entry(const char *args, const char *more) {
    char text[2000];
    snprintf(text, sizeof text,
        "name: p\nimages: [{kind: ptx, file: p.ptx}]\nentries:\n  - name: p\n    args: [%s]\n%s",
        args, more);
    return read_manifest(text) ? &program.entries[0] : NULL;
}

static void assert_bounds(const char *args, const char *more, const char *expected) {
    const struct entry *entry = read_entry(args, more);
    problems_print(&problems, "");
    assert_non_null(entry);
    char text[1000] = "";
    for (size_t i = 0; i < entry->bound_count; i++) {
        char one[200];
        bound_format(entry, &entry->bounds[i], one, sizeof one);
        strcat(strcat(text, i > 0 ? "; " : ""), one);
    }
    assert_string_equal(text, expected);
}

static void assert_problem(const char *args, const char *more, const char *what) {
    assert_null(read_entry(args, more));
    assert_string_equal(problems.items[0].what, what);
    assert_true(problems.items[0].fix[0] != 0);
    assert_int_equal(problems_total(&problems), 1);
}

#define X "{name: x, buffer: in, type: FP32}, "
#define N(more) "{name: n, value: u32, " more "}"

TEST(at_most_names_buffers_of_the_entry) {
    assert_bounds(X "{name: y, buffer: out}, " N("at_most: [x, y]"), "", "n <= x; n <= y");
    assert_bounds(N("at_most: [x]") ", {name: x, buffer: in}", "", "n <= x");
    assert_bounds(X "{name: a, value: f32, at_most: [x]}", "", "a <= x");
    assert_bounds(X "{name: w, value: words, count: 2, at_most: [x]}", "", "w <= x");
}

TEST(a_bound_may_multiply_and_add) {
    assert_bounds(X N("at_most: [{buffer: x, times: 2, plus: 4}]"), "", "n * 2 + 4 <= x");
    assert_bounds(
        X "{name: k, value: i64}, " N("at_most: [{buffer: x, times: k}]"), "", "n * k <= x");
    assert_bounds(X N("at_most: [{buffer: x, plus: n}, {buffer: x, times: threads, plus: blocks}]"),
        "", "n + n <= x; n * threads + blocks <= x");
}

TEST(shapes_and_shared_memory_have_bounds) {
    assert_bounds(X N("at_most: [{buffer: shared_bytes, times: 4}]"),
        "    blocks: {at_most: [x]}\n    threads: {at_most: [{buffer: shared_bytes, times: 8}]}\n",
        "n * 4 <= shared_bytes; blocks <= x; threads * 8 <= shared_bytes");
}

TEST(an_argument_goes_before_a_word_of_the_same_name) {
    assert_bounds("{name: shared_bytes, buffer: in}, {name: threads, value: u32}, " N(
                      "at_most: [{buffer: shared_bytes, times: threads}]"),
        "", "n * threads <= shared_bytes");
    assert_int_equal(program.entries[0].bounds[0].buffer, 0);
    assert_int_equal(program.entries[0].bounds[0].times.kind, TERM_ARG);
}

TEST(at_least_is_for_buffers) {
    assert_bounds("{name: x, buffer: in, at_least: 2}", "", "2 <= x");
    assert_problem("{name: x, buffer: in, at_least: 0}", "",
        "'at_least' is not a whole number from 1 to 4294967295");
    assert_problem(N("at_least: 2"), "", "'at_least' is for buffers");
    assert_problem("{name: x, buffer: in, at_most: [x]}", "", "'at_most' is for values");
    assert_problem("{name: x, buffer: in, between: [1, 2]}", "", "'between' is for values");
}

TEST(what_is_no_buffer_is_no_bound) {
    assert_problem(X N("at_most: [y]"), "", "'y' is not a buffer of this entry");
    assert_problem(X N("at_most: [n]"), "", "'n' is not a buffer of this entry");
    assert_problem(X N("at_most: [[x]]"), "", "'' is not a buffer of this entry");
    assert_problem(X N("at_most: [{times: 2}]"), "", "'buffer' is missing");
    assert_problem(X N("at_most: x"), "", "'at_most' is not a list of 1 to 64");
    assert_problem(X N("at_most: []"), "", "'at_most' is not a list of 1 to 64");
    assert_problem(X N("at_most: [{buffer: x, time: 2}]"), "", "unknown key 'time' of a bound");
    assert_problem(
        X N("at_most: [shared_byte]"), "", "'shared_byte' is not a buffer of this entry");
    assert_string_equal(problems.items[0].fix, "did you mean 'shared_bytes'?");
}

TEST(what_is_no_whole_number_is_no_factor) {
    assert_problem(X N("at_most: [{buffer: x, times: x}]"), "", "'times' cannot be 'x'");
    assert_problem(X N("at_most: [{buffer: x, plus: -1}]"), "", "'plus' cannot be '-1'");
    assert_problem(X "{name: f, value: f32}, " N("at_most: [{buffer: x, times: f}]"), "",
        "'times' cannot be 'f'");
    assert_problem(X "{name: w, value: words, count: 1}, " N("at_most: [{buffer: x, times: w}]"),
        "", "'times' cannot be 'w'");
}

TEST(of_a_launch_only_at_most_is_bounded) {
    assert_problem(X, "    blocks: {between: [1, 2]}\n", "unknown key 'between' of blocks");
    assert_problem(X, "    threads: 4\n", "threads is not a map");
}

static void assert_between(const char *kind, const char *ends, const char *min, const char *max) {
    char arg[200], text[2][40];
    snprintf(arg, sizeof arg, "{name: n, value: %s, between: [%s]}", kind, ends);
    const struct entry *entry = read_entry(arg, "");
    problems_print(&problems, "");
    assert_non_null(entry);
    assert_true(entry->args[0].between.is_set);
    scalar_format(&entry->args[0].between.min, text[0], sizeof text[0]);
    scalar_format(&entry->args[0].between.max, text[1], sizeof text[1]);
    assert_string_equal(text[0], min);
    assert_string_equal(text[1], max);
}

TEST(between_takes_what_its_kind_can_be) {
    assert_between("u32", "0, 4294967295", "0", "4294967295");
    assert_between("i32", "-2147483648, 2147483647", "-2147483648", "2147483647");
    assert_between("u64", "7, 18446744073709551615", "7", "18446744073709551615");
    assert_between("i64", "-9223372036854775808, -1", "-9223372036854775808", "-1");
    assert_between("f32", "-0.5, 2", "-0.5", "2");
    assert_between("f64", "-.inf, 1e300", "-inf", "1e+300");
    assert_between("words, count: 2", "1, 2", "1", "2");
    assert_between("i32", "-1, 1", "-1", "1");
    assert_between("u32", "5, 5", "5", "5");
    assert_between("i32", "-5, -5", "-5", "-5");
}

TEST(between_is_refused_where_no_number_could_be) {
    assert_problem(
        N("between: [0, 4294967296]"), "", "'4294967296' is not a number that u32 can be");
    assert_problem(N("between: [-1, 2]"), "", "'-1' is not a number that u32 can be");
    assert_problem(N("between: [0.5, 2]"), "", "'0.5' is not a number that u32 can be");
    assert_problem("{name: n, value: i32, between: [-2147483649, 0]}", "",
        "'-2147483649' is not a number that i32 can be");
    assert_problem(
        "{name: n, value: f32, between: [.nan, 2]}", "", "'.nan' is not a number that f32 can be");
    assert_problem(N("between: [2, 1]"), "", "no number lies between '2' and '1'");
    assert_problem(
        "{name: n, value: i64, between: [1, -1]}", "", "no number lies between '1' and '-1'");
    /* one apart, and the same as floats */
    assert_problem("{name: n, value: u64, between: [9007199254740993, 9007199254740992]}", "",
        "no number lies between '9007199254740993' and '9007199254740992'");
    assert_problem("{name: n, value: i64, between: [-9007199254740992, -9007199254740993]}", "",
        "no number lies between '-9007199254740992' and '-9007199254740993'");
    assert_problem(N("between: [1]"), "", "'between' is not a list of 2 to 2");
    assert_problem(N("between: [[1], 2]"), "", "'' is not a number that u32 can be");
}

RUN_TESTS(S(at_most_names_buffers_of_the_entry), S(a_bound_may_multiply_and_add),
    S(shapes_and_shared_memory_have_bounds), S(an_argument_goes_before_a_word_of_the_same_name),
    S(at_least_is_for_buffers), S(what_is_no_buffer_is_no_bound),
    S(what_is_no_whole_number_is_no_factor), S(of_a_launch_only_at_most_is_bounded),
    S(between_takes_what_its_kind_can_be), S(between_is_refused_where_no_number_could_be))
