/* Launches that would lead a kernel out of its buffers are refused before any GPU work. */
#include "plan/bounds.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "program/manifest.h"
#include "testing.h"

static struct problems problems;
static struct arena arena;
static struct program program;

static struct job_buffer buffers[2]; /* x: 10 FP32; y: 7 bytes of any type */
static struct job job = {.buffer_count = 2, .buffers = buffers};
static struct job_arg args[4];
static struct plan_launch launch;
static struct error err;

static int tear_down(void **state) {
    problems_fini(&problems);
    arena_fini(&arena);
    return 0;
}

/* The arguments x and y, then `values`; `more` are lines of the entry. */
static void given(const char *values, const char *more) {
    char text[2000];
    snprintf(text, sizeof text,
        "name: p\nimages: [{kind: ptx, file: p.ptx}]\nentries:\n  - name: p\n"
        "    args: [{name: x, buffer: in, type: FP32}, {name: y, buffer: out}%s]\n%s",
        values, more);
    tear_down(NULL);
    problems_init(&problems);
    arena_init(&arena, 1 << 20);
    struct yaml_document *document =
        yaml_parse("p.yaml", slice_of_text(text), YAML_KEEP_VARIABLES, &problems);
    assert_non_null(document);
    bool is_good = manifest_read(document, &arena, &program, &problems);
    problems_print(&problems, "");
    assert_true(is_good);
    yaml_destroy(document);
    buffers[0] = (struct job_buffer){.name = slice_of_text("bx"), .bytes = 40};
    buffers[1] = (struct job_buffer){.name = slice_of_text("by"), .bytes = 7};
    args[0] = (struct job_arg){.kind = ARG_BUFFER, .buffer = 0};
    args[1] = (struct job_arg){.kind = ARG_BUFFER, .buffer = 1};
    launch = (struct plan_launch){.program = &program,
        .entry = &program.entries[0],
        .args = args,
        .grid = {1, 1, 1},
        .block = {1, 1, 1}};
}

static void value(size_t index, enum arg_kind kind, uint64_t bits) {
    args[index] = (struct job_arg){.kind = kind, .bits = bits};
}

static uint64_t bits_of(double number) {
    uint64_t ret;
    memcpy(&ret, &number, sizeof ret);
    return ret;
}

static uint64_t narrow_bits_of(float number) {
    uint32_t ret;
    memcpy(&ret, &number, sizeof ret);
    return ret;
}

static void assert_kept(void) {
    enum err code = plan_check_bounds(&job, &launch, 0, &err);
    if (code != ERR_OK) print_message("%s\n", err.message);
    assert_int_equal(code, ERR_OK);
}

static void assert_broken(const char *message) {
    assert_int_equal(plan_check_bounds(&job, &launch, 0, &err), ERR_BAD_ARGUMENT);
    assert_string_equal(err.message, message);
    assert_true(err.fix[0] != 0);
}

#define U32(name, more) ", {name: " name ", value: u32" more "}"

TEST(a_number_is_no_more_than_the_elements_of_a_buffer) {
    given(U32("n", ", at_most: [x]"), "");
    value(2, ARG_U32, 10);
    assert_kept();
    value(2, ARG_U32, 11);
    assert_broken("steps[0]: argument 'n' is 11, and the kernel needs n <= x: 11 elements; buffer "
                  "'bx' has 10 (FP32)");
    value(2, ARG_U32, UINT32_MAX);
    assert_int_equal(plan_check_bounds(&job, &launch, 0, &err), ERR_BAD_ARGUMENT);
}

TEST(a_buffer_without_a_type_has_bytes) {
    given(U32("n", ", at_most: [y]"), "");
    value(2, ARG_U32, 7);
    assert_kept();
    value(2, ARG_U32, 8);
    assert_broken("steps[0]: argument 'n' is 8, and the kernel needs n <= y: 8 elements; buffer "
                  "'by' has 7 (bytes)");
}

TEST(products_and_sums_do_not_wrap) {
    given(", {name: k, value: u64}, {name: n, value: u64, at_most: [{buffer: x, times: k, plus: "
          "k}]}",
        "");
    value(2, ARG_U64, 2);
    value(3, ARG_U64, 4);
    assert_kept(); /* 4 * 2 + 2 */
    value(3, ARG_U64, 5);
    assert_broken("steps[0]: argument 'n' is 5, and the kernel needs n * k + k <= x: 12 elements; "
                  "buffer 'bx' has 10 (FP32)");
    value(2, ARG_U64, UINT64_MAX);
    value(3, ARG_U64, UINT64_MAX);
    assert_broken("steps[0]: argument 'n' is 18446744073709551615, and the kernel needs n * k + k "
                  "<= x: more than 18446744073709551615 elements; buffer 'bx' has 10 (FP32)");
    value(2, ARG_U64, 1ull << 63);
    value(3, ARG_U64, 2);
    assert_int_equal(plan_check_bounds(&job, &launch, 0, &err), ERR_BAD_ARGUMENT);
    value(2, ARG_U64, 0);
    value(3, ARG_U64, UINT64_MAX);
    assert_kept();
}

TEST(a_count_is_not_below_0) {
    given(", {name: n, value: i32, at_most: [x]}", "");
    value(2, ARG_I32, 10);
    assert_kept();
    value(2, ARG_I32, (uint32_t)-1);
    assert_broken("steps[0]: the kernel needs n <= x, but a number in it is negative or NaN");
    given(", {name: k, value: i64}, {name: n, value: i64, at_most: [{buffer: x, plus: k}]}", "");
    value(2, ARG_I64, (uint64_t)-1);
    value(3, ARG_I64, 1);
    assert_broken("steps[0]: the kernel needs n + k <= x, but a number in it is negative or NaN");
}

TEST(a_fraction_is_rounded_up) {
    given(", {name: n, value: f32, at_most: [x]}, {name: m, value: f64, at_most: [x]}", "");
    value(2, ARG_F32, narrow_bits_of(9.5f));
    value(3, ARG_F64, bits_of(10));
    assert_kept();
    value(3, ARG_F64, bits_of(10.25));
    assert_broken("steps[0]: argument 'm' is 10.25, and the kernel needs m <= x: 11 elements; "
                  "buffer 'bx' has 10 (FP32)");
    static const double bad[] = {1e300, INFINITY, -1, -INFINITY, NAN, 0x1p64};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        value(3, ARG_F64, bits_of(bad[i]));
        assert_int_equal(plan_check_bounds(&job, &launch, 0, &err), ERR_BAD_ARGUMENT);
    }
}

TEST(of_words_each_is_bounded) {
    given(", {name: w, value: words, count: 3, at_most: [x], between: [1, 20]}", "");
    uint32_t words[] = {1, 10, 3};
    args[2] = (struct job_arg){.kind = ARG_WORDS, .word_count = 3, .words = words};
    assert_kept();
    words[2] = 11;
    assert_broken("steps[0]: argument 'w' is 11, and the kernel needs w <= x: 11 elements; buffer "
                  "'bx' has 10 (FP32)");
    words[2] = 0;
    assert_broken("steps[0]: argument 'w' is 0, and the kernel takes 1 to 20");
}

/* A million instances and a million words that they share: all with all would take hours. */
TEST(words_that_instances_share_are_looked_at_once) {
    enum { MANY = 1 << 20 };
    given(", {name: k, value: u32}, {name: w, value: words, count: 1048576, between: [1, 20], "
          "at_most: [{buffer: x, times: k}]}",
        "");
    uint32_t *words = test_calloc(MANY, sizeof *words), *times = test_calloc(MANY, sizeof *times);
    for (size_t i = 0; i < MANY; i++) words[i] = times[i] = 1;
    words[MANY - 2] = 5;
    times[MANY - 1] = 2;
    args[2] = (struct job_arg){.kind = ARG_U32, .each = (const uint8_t *)times};
    args[3] = (struct job_arg){.kind = ARG_WORDS, .word_count = MANY, .words = words};
    job.instances = MANY;
    assert_kept();
    times[MANY - 1] = 3;
    assert_broken("steps[0]: argument 'w' is 5, and the kernel needs w * k <= x: 15 elements; "
                  "buffer 'bx' has 10 (FP32)");
    job.instances = 0;
    test_free(times);
    test_free(words);
}

TEST(words_of_each_instance_are_bounded) {
    given(", {name: w, value: words, count: 2, between: [1, 20], at_most: [x]}", "");
    uint32_t words[] = {10, 3, 3, 10};
    args[2] = (struct job_arg){.kind = ARG_WORDS, .word_count = 2, .each = (const uint8_t *)words};
    job.instances = 2;
    assert_kept();
    words[3] = 11;
    assert_broken("steps[0]: argument 'w' is 11, and the kernel needs w <= x: 11 elements; buffer "
                  "'bx' has 10 (FP32)");
    words[2] = 0;
    assert_broken("steps[0]: argument 'w' is 0, and the kernel takes 1 to 20");
    job.instances = 0;
}

TEST(a_buffer_has_at_least_so_many_elements) {
    given("", "");
    assert_kept();
    given(", {name: z, buffer: in, type: UINT64, at_least: 5}", "");
    args[2] = args[0];
    assert_kept();
    given(", {name: z, buffer: in, type: UINT64, at_least: 6}", "");
    args[2] = args[0];
    assert_broken("steps[0]: 'p' runs, and the kernel needs 6 <= z: 6 elements; buffer 'bx' has 5 "
                  "(UINT64)");
}

TEST(shapes_are_bounded_by_buffers_and_shared_memory) {
    given("", "    blocks: {at_most: [{buffer: x, times: threads}]}\n"
              "    threads: {at_most: [{buffer: shared_bytes, times: 4}]}\n");
    launch.grid[0] = launch.block[2] = 2;
    launch.shared_bytes = 8;
    assert_kept();
    launch.grid[2] = 3;
    assert_broken("steps[0]: 6 blocks in the grid, and the kernel needs blocks * threads <= x: 12 "
                  "elements; buffer 'bx' has 10 (FP32)");
    launch.grid[2] = 1;
    launch.shared_bytes = 7;
    assert_broken("steps[0]: 2 threads in a block, and the kernel needs threads * 4 <= "
                  "shared_bytes: 8 bytes; shared_bytes is 7");
    memcpy(launch.grid, (uint32_t[]){2147483647, 65535, 65535}, sizeof launch.grid);
    assert_int_equal(plan_check_bounds(&job, &launch, 0, &err), ERR_BAD_ARGUMENT);
}

static void assert_between(enum arg_kind kind, const char *name, const char *ends, uint64_t inside,
    uint64_t outside, const char *message) {
    char arg[200];
    snprintf(arg, sizeof arg, ", {name: n, value: %s, between: [%s]}", name, ends);
    given(arg, "");
    value(2, kind, inside);
    assert_kept();
    value(2, kind, outside);
    assert_broken(message);
}

TEST(a_number_is_between_its_ends) {
    assert_between(
        ARG_U32, "u32", "1, 4", 4, 5, "steps[0]: argument 'n' is 5, and the kernel takes 1 to 4");
    assert_between(ARG_U64, "u64", "1, 18446744073709551615", UINT64_MAX, 0,
        "steps[0]: argument 'n' is 0, and the kernel takes 1 to 18446744073709551615");
    assert_between(ARG_I32, "i32", "-3, -1", (uint32_t)-3, (uint32_t)-4,
        "steps[0]: argument 'n' is -4, and the kernel takes -3 to -1");
    assert_between(ARG_I64, "i64", "-3, 5", 5, (uint64_t)INT64_MIN,
        "steps[0]: argument 'n' is -9223372036854775808, and the kernel takes -3 to 5");
    assert_between(ARG_F32, "f32", "-1, 0.5", narrow_bits_of(0.5f), narrow_bits_of(0.75f),
        "steps[0]: argument 'n' is 0.75, and the kernel takes -1 to 0.5");
    assert_between(ARG_F64, "f64", "0, .inf", bits_of(INFINITY), bits_of(NAN),
        "steps[0]: argument 'n' is nan, and the kernel takes 0 to inf");
    assert_string_equal(err.fix, "send a number from 0 to inf");
}

TEST(phases_keep_to_their_own_bounds) {
    given(U32("n", ""),
        "    requires: {cooperative: true}\n    phases: [q]\n"
        "  - name: q\n    args: [{name: x, buffer: in, type: FP32}, {name: y, buffer: out}, {name: "
        "m, value: u32, at_most: [x]}]\n");
    value(2, ARG_U32, 10);
    assert_kept();
    value(2, ARG_U32, 11);
    assert_broken("steps[0]: argument 'm' is 11, and the kernel needs m <= x: 11 elements; buffer "
                  "'bx' has 10 (FP32)");
}

static int set_up(void **state) {
    problems_init(&problems);
    arena_init(&arena, 1 << 20);
    return 0;
}

#define S(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
RUN_TESTS(S(a_number_is_no_more_than_the_elements_of_a_buffer),
    S(a_buffer_without_a_type_has_bytes), S(products_and_sums_do_not_wrap),
    S(a_count_is_not_below_0), S(a_fraction_is_rounded_up), S(of_words_each_is_bounded),
    S(words_that_instances_share_are_looked_at_once), S(words_of_each_instance_are_bounded),
    S(a_buffer_has_at_least_so_many_elements), S(shapes_are_bounded_by_buffers_and_shared_memory),
    S(a_number_is_between_its_ends), S(phases_keep_to_their_own_bounds))
