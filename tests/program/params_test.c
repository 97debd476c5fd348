/* Images are compared with their manifest when programs are loaded. */
#include "program/params.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "program/ptx.h"
#include "program/shared_object.h"
#include "support/scratch.h"
#include "testing.h"

static char *root;
static struct problems problems;

static int set_up(void **state) {
    root = scratch_create();
    problems_init(&problems);
    return 0;
}

static int tear_down(void **state) {
    problems_fini(&problems);
    scratch_remove(root);
    return 0;
}

static void write_bytes(const char *name, struct slice bytes) {
    char path[300];
    snprintf(path, sizeof path, "%s/p/%s", root, name);
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    assert_int_equal(fwrite(bytes.data, 1, bytes.size, out), bytes.size);
    fclose(out);
}

/* The problems of a program p with this list of entries. */
static size_t load(const char *entries, const char *kind, struct slice image) {
    char path[300], manifest[2000];
    tear_down(NULL);
    set_up(NULL);
    snprintf(path, sizeof path, "%s/p", root);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(manifest, sizeof manifest, "name: p\nimages: [{kind: %s, file: k}]\nentries:\n%s",
        kind, entries);
    write_bytes("program.yaml", slice_of_text(manifest));
    write_bytes("k", image);
    struct registry *registry = registry_load(root, &problems);
    assert_non_null(registry);
    assert_int_equal(registry_count(registry), problems_any(&problems) ? 0 : 1);
    registry_destroy(registry);
    return problems_total(&problems);
}

static void assert_taken(const char *entries, const char *ptx) {
    size_t count = load(entries, "ptx", slice_of_text(ptx));
    problems_print(&problems, "");
    assert_int_equal(count, 0);
}

static void assert_problem_is(const char *where, const char *what) {
    assert_int_equal(problems_total(&problems), 1);
    assert_string_equal(problems.items[0].what, what);
    assert_non_null(strstr(problems.items[0].where, where));
    assert_true(problems.items[0].fix[0] != 0);
}

static void assert_refused(
    const char *entries, const char *ptx, const char *where, const char *what) {
    load(entries, "ptx", slice_of_text(ptx));
    assert_problem_is(where, what);
}

#define SCALE                                                                                      \
    "  - name: scale\n    args:\n      - {name: a, value: f32}\n"                                  \
    "      - {name: x, buffer: inout}\n"
#define PARAMS(params) ".visible .entry scale(\n\t" params "\n)\n{\n\tret;\n}\n"
#define GOOD PARAMS(".param .f32 scale_param_0,\n\t.param .u64 scale_param_1")

TEST(an_image_that_takes_what_the_manifest_says_is_loaded) {
    assert_taken(SCALE, GOOD);
    assert_taken(SCALE, PARAMS(".param .b32 a, .param .u64 .ptr .global .align 16 x"));
    assert_taken(SCALE, PARAMS(".param .b32 a, .param .b64 .ptr .align 1 x"));
    assert_taken(
        SCALE, "// .entry scale()\n/* .entry scale() */ .file 1 \".entry scale()\"\n" GOOD);
    assert_taken("  - {name: none, args: []}\n", ".entry none() {} .entry other(.param .u8 x) {}");
    assert_taken("  - {name: none, args: []}\n", ".entry none {}");
    assert_taken("  - {name: AZaz09_$, args: []}\n", ".entry AZaz09_$(){}");
    assert_taken("  - {name: w, args: [{name: b, value: words, count: 4}]}\n",
        ".entry w(.param .align 8 .b8 w_param_0[16]) {}");
    assert_taken("  - {name: w, params: buffer, args: [{name: b, value: words, count: 4}]}\n",
        ".entry w(.param .u64 w_param_0) {}");
}

TEST(a_size_that_differs_is_named_with_its_place) {
    assert_refused(SCALE, PARAMS(".param .f64 a, .param .u64 x"), "/p/program.yaml:6:9",
        "argument 'a' is f32 (4 bytes), but parameter 1 of 'scale' in k has 8 bytes, aligned to 8");
    assert_refused(SCALE, PARAMS(".param .f32 a, .param .u32 x"), "/p/program.yaml:7:9",
        "argument 'x' is a buffer (8 bytes), but parameter 2 of 'scale' in k has 4 bytes, aligned "
        "to 4");
    assert_refused("  - {name: w, args: [{name: b, value: words, count: 4}]}\n",
        ".entry w(.param .align 4 .b8 w_param_0[12]) {}", "/p/program.yaml:4:22",
        "argument 'b' is words (16 bytes), but parameter 1 of 'w' in k has 12 bytes, aligned to 4");
}

TEST(an_alignment_and_a_class_that_differ_are_named) {
    assert_refused(SCALE, PARAMS(".param .f32 a, .param .align 4 .b8 x[8]"), "/p/program.yaml:7:9",
        "argument 'x' is a buffer (8 bytes), but parameter 2 of 'scale' in k has 8 bytes, aligned "
        "to 4");
    assert_refused(SCALE, PARAMS(".param .u32 a, .param .u64 x"), "/p/program.yaml:6:9",
        "argument 'a' is f32 (4 bytes), but parameter 1 of 'scale' in k has 4 bytes, a whole "
        "number");
    assert_refused("  - {name: n, args: [{name: n, value: u64}]}\n", ".entry n(.param .f64 n) {}",
        "/p/program.yaml:4:22",
        "argument 'n' is u64 (8 bytes), but parameter 1 of 'n' in k has 8 bytes, a float");
}

TEST(a_count_that_differs_is_named) {
    assert_refused(SCALE, PARAMS(".param .f32 a"), "/p/program.yaml:6:7",
        "entry 'scale' has 2 arguments, but 'scale' in k has 1 parameters");
    assert_refused(SCALE, PARAMS(".param .f32 a, .param .u64 x, .param .u32 n"),
        "/p/program.yaml:6:7", "entry 'scale' has 2 arguments, but 'scale' in k has 3 parameters");
    char text[4000] = ".entry scale(.param .u8 p";
    for (int i = 0; i < 100; i++) strcat(text, ", .param .u8 p");
    assert_refused(SCALE, strcat(text, ") {}"), "/p/program.yaml:6:7",
        "entry 'scale' has 2 arguments, but 'scale' in k has 101 parameters");
}

TEST(a_batched_kernel_takes_rows_and_jobs) {
#define BATCHED SCALE "    batched: batch\n"
    assert_taken(BATCHED, GOOD ".entry batch(.param .u64 rows, .param .u32 jobs) {}");
    static const char *const bad[] = {".param .u64 rows", ".param .u64 rows, .param .u64 jobs",
        ".param .u32 jobs, .param .u64 rows", ".param .u64 a, .param .u32 b, .param .u32 c"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char ptx[400];
        snprintf(ptx, sizeof ptx, GOOD ".entry batch(%s) {}", bad[i]);
        load(BATCHED, "ptx", slice_of_text(ptx));
        assert_int_equal(problems_total(&problems), 1);
        assert_non_null(strstr(problems.items[0].where, "/p/program.yaml:8:14"));
        assert_non_null(strstr(problems.items[0].what, "'batch' in k is not a batched kernel"));
    }
    assert_refused(BATCHED, GOOD, "/p/program.yaml:8:14", "k has no kernel 'batch'");
}

TEST(a_kernel_that_is_not_there_is_named) {
    assert_refused(SCALE, ".entry scal() {}", "/p/program.yaml:4:11", "k has no kernel 'scale'");
    assert_refused(SCALE, ".func scale() {}", "/p/program.yaml:4:11", "k has no kernel 'scale'");
}

TEST(what_cannot_be_read_is_refused_with_its_line) {
    static const char *const bad[] = {".entry", ".entry (", ".entry scale(", ".entry scale(.param",
        ".entry scale(.param .f32", ".entry scale(.param .f32 a", ".entry scale(.param .f32 a,)",
        ".entry scale(.param .f31 a)", ".entry scale(.reg .f32 a)", ".entry scale(.param .b8 a[)",
        ".entry scale(.param .b8 a[4)", ".entry scale(.param .b8 a[-4])",
        ".entry scale(.param .b8 a[4x])", ".entry scale(.param .align 4x .b8 a[4])",
        ".entry scale(.param .b8 a[99999999999999999999])", ".entry scale(.param .align .b8 a[4])",
        ".entry scale(.param .align 4096 .b8 a[4])",
        ".entry scale(.param .u64 .ptr .global .align x)", ".entry scale(.param .f32 a /*",
        ".entry scale(.param .f32 \"a\")", ".entry scale(.param .f32 a;)"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char ptx[200];
        snprintf(ptx, sizeof ptx, "\n\n%s", bad[i]);
        assert_refused(
            SCALE, ptx, "/p/program.yaml:4:3", "k:3: the parameters of an entry cannot be read");
    }
}

/* ---- shared objects ---- */

static struct slice read_image(void) {
    char *bytes;
    size_t size;
    struct error err;
    assert_int_equal(file_read(TWO_KERNELS, 1 << 20, &bytes, &size, &err), ERR_OK);
    return slice_of(bytes, size);
}

TEST(a_shared_object_is_compared_without_being_run) {
    struct slice image = read_image();
    assert_int_equal(load(SCALE "    batched: batch\n", "cpu", image), 0);
    load("  - {name: scale, args: [{name: a, value: f32}]}\n", "cpu", image);
    assert_problem_is(
        "/p/program.yaml:4:25", "entry 'scale' has 1 arguments, but 'scale' in k has 2 parameters");
    load("  - {name: scale, args: [{name: a, value: f64}, {name: x, buffer: in}]}\n", "cpu", image);
    assert_problem_is("/p/program.yaml:4:26",
        "argument 'a' is f64 (8 bytes), but parameter 1 of 'scale' in k has 4 bytes");
    load(SCALE "    batched: scale\n", "cpu", image);
    assert_problem_is("/p/program.yaml:8:14",
        "'scale' in k is not a batched kernel: it has 2 parameters, or others than (rows, jobs)");
    static const char *const absent[] = {"none", "greedy", "short"};
    for (size_t i = 0; i < sizeof absent / sizeof absent[0]; i++) {
        char entries[100], what[100];
        snprintf(entries, sizeof entries, "  - {name: %s, args: []}\n", absent[i]);
        snprintf(what, sizeof what, "k has no kernel '%s'", absent[i]);
        load(entries, "cpu", image);
        assert_problem_is("/p/program.yaml:4:12", what);
    }
    free((void *)(uintptr_t)image.data);
}

/* The driver takes the sizes from the headers, and would read past the end. */
TEST(a_shared_object_whose_end_is_missing_is_refused) {
    struct slice image = read_image();
    static const size_t missing[] = {1, 63, 64, 200, 1000};
    for (size_t i = 0; i < sizeof missing / sizeof missing[0]; i++) {
        load(SCALE, "cpu", slice_of(image.data, image.size - missing[i]));
        assert_problem_is("/p/program.yaml:4:3", "k is cut off");
    }
    load(SCALE, "cpu", slice_of(image.data, 20));
    assert_problem_is("/p/program.yaml:4:3", "k is cut off");
    free((void *)(uintptr_t)image.data);
}

/* Under the address sanitizer a read outside of the copy ends the test. */
TEST(a_shared_object_that_was_cut_or_changed_is_read_within_its_end) {
    struct slice image = read_image();
    struct kernel_params params;
    assert_true(shared_object_find(image, "scale", &params));
    for (size_t size = 0; size < image.size; size += 1 + size / 64) {
        uint8_t *copy = malloc(size + 1);
        assert_non_null(copy);
        memcpy(copy, image.data, size);
        (void)!shared_object_find(slice_of(copy, size), "scale", &params);
        free(copy);
    }
    uint8_t *changed = malloc(image.size);
    assert_non_null(changed);
    uint32_t seed = 1;
    for (int round = 0; round < 20000; round++) {
        memcpy(changed, image.data, image.size);
        for (int i = 0; i < 4; i++) {
            seed = seed * 1664525 + 1013904223;
            size_t at = seed >> 8;
            seed = seed * 1664525 + 1013904223;
            changed[(i % 2 == 0 ? at % 64 : at) % image.size] = (uint8_t)(seed >> 24);
        }
        if (shared_object_find(slice_of(changed, image.size), "scale", &params))
            assert_true(params.count <= ENTRY_ARGS_MAX);
    }
    free(changed);
    free((void *)(uintptr_t)image.data);
}

#define S(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
RUN_TESTS(S(an_image_that_takes_what_the_manifest_says_is_loaded),
    S(a_size_that_differs_is_named_with_its_place),
    S(an_alignment_and_a_class_that_differ_are_named), S(a_count_that_differs_is_named),
    S(a_batched_kernel_takes_rows_and_jobs), S(a_kernel_that_is_not_there_is_named),
    S(what_cannot_be_read_is_refused_with_its_line),
    S(a_shared_object_is_compared_without_being_run),
    S(a_shared_object_whose_end_is_missing_is_refused),
    S(a_shared_object_that_was_cut_or_changed_is_read_within_its_end))
