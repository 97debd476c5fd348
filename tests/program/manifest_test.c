#include <stdio.h>
#include <string.h>

#include "program/manifest_rig.h"

static void expect_problem(const char *text, const char *where, const char *what) {
    assert_false(read_manifest(text));
    assert_string_equal(problems.items[0].what, what);
    assert_string_equal(problems.items[0].where, where);
    assert_true(problems.items[0].fix[0] != 0);
    assert_int_equal(problems_total(&problems), 1);
}

#define IMAGES "images: [{kind: ptx, file: p.ptx}]\n"
#define HEAD "name: p\n" IMAGES "entries:\n"

/* One entry with this line more. */
static void expect_entry_problem(const char *line, const char *where, const char *what) {
    char text[400];
    snprintf(text, sizeof text, HEAD "  - name: p\n    args: []\n    %s\n", line);
    expect_problem(text, where, what);
}

/* One entry with this one argument. */
static void expect_arg_problem(const char *arg, const char *where, const char *what) {
    char text[400];
    snprintf(text, sizeof text, HEAD "  - name: p\n    args:\n      - %s\n", arg);
    expect_problem(text, where, what);
}

TEST(a_whole_manifest_is_read) {
    assert_true(read_manifest("name: saxpy\n"
                              "description: y = a*x + y\n"
                              "entries:\n"
                              "  - name: saxpy\n"
                              "    args:\n"
                              "      - {name: a, value: f32}\n"
                              "      - {name: x, buffer: in, type: FP32}\n"
                              "      - {name: y, buffer: inout, access: stream}\n"
                              "      - {name: table, buffer: static, type: INT64}\n"
                              "      - {name: z, buffer: out}\n"
                              "    block: [16, 8]\n"
                              "    shared_bytes: 4096\n"
                              "    requires: {compute_capability: 7.5, cooperative: true}\n"
                              "  - {name: plain, args: []}\n"
                              "images:\n"
                              "  - {kind: ptx, file: saxpy.ptx}\n"
                              "  - {kind: cubin, file: saxpy-90.cubin, architecture: 9.0}\n"
                              "  - {kind: cubin, file: saxpy-103.cubin, architecture: 10.3}\n"
                              "  - {kind: cpu, file: saxpy.so}\n"));
    assert_string_equal(program.name, "saxpy");
    assert_string_equal(program.description, "y = a*x + y");
    assert_int_equal(program.entry_count, 2);
    const struct entry *entry = &program.entries[0];
    assert_int_equal(entry->arg_count, 5);
    assert_string_equal(entry->args[0].name, "a");
    assert_int_equal(entry->args[0].role, ROLE_VALUE);
    assert_int_equal(entry->args[0].value_kind, ARG_F32);
    assert_int_equal(entry->args[1].role, ROLE_IN);
    assert_int_equal(entry->args[1].element_type, DATATYPE_FP32);
    assert_int_equal(entry->args[2].role, ROLE_INOUT);
    assert_int_equal(entry->args[2].element_type, DATATYPE_NONE);
    assert_true(entry->args[2].is_streamed);
    assert_false(entry->args[1].is_streamed);
    assert_int_equal(entry->args[3].role, ROLE_STATIC);
    assert_int_equal(entry->args[4].role, ROLE_OUT);
    assert_int_equal(entry->block[0], 16);
    assert_int_equal(entry->block[1], 8);
    assert_int_equal(entry->block[2], 1);
    assert_int_equal(entry->shared_bytes, 4096);
    assert_int_equal(entry->shared_bytes_least, 4096);
    assert_int_equal(entry->capability_min, 75);
    assert_true(entry->cooperative);
    assert_int_equal(program.image_count, 4);
    assert_int_equal(program.images[1].kind, IMAGE_CUBIN);
    assert_int_equal(program.images[1].architecture, 90);
    assert_int_equal(program.images[2].architecture, 103);
    assert_string_equal(program.images[3].file, "saxpy.so");
}

TEST(shared_memory_may_be_a_range) {
    assert_true(
        read_manifest(HEAD "  - {name: p, args: [], shared_bytes: {least: 100, most: 200}}\n"));
    assert_int_equal(program.entries[0].shared_bytes, 200);
    assert_int_equal(program.entries[0].shared_bytes_least, 100);
    expect_entry_problem("shared_bytes: {least: 5, most: 4}", "program.yaml:6:27",
        "'least' is not a whole number from 0 to 4");
    expect_entry_problem("shared_bytes: {least: 5}", "program.yaml:6:19", "'most' is missing");
    expect_entry_problem("shared_bytes: {least: 5, most: 6, more: 7}", "program.yaml:6:39",
        "unknown key 'more' of shared_bytes");
}

TEST(what_is_left_out_has_a_default) {
    assert_true(read_manifest(HEAD "  - {name: p, args: []}\n"));
    assert_string_equal(program.description, "");
    const struct entry *entry = &program.entries[0];
    assert_int_equal(entry->block[0], 256);
    assert_int_equal(entry->block[1], 1);
    assert_int_equal(entry->block[2], 1);
    assert_int_equal(entry->shared_bytes, 0);
    assert_int_equal(entry->capability_min, 0);
    assert_false(entry->cooperative);
}

#define WHOLE "  - {name: p, args: [{name: x, buffer: inout}], "
#define COOPERATIVE WHOLE "requires: {cooperative: true}, phases: "
#define HALF "  - {name: half, args: [{name: other, buffer: inout}]}\n"

TEST(phases_are_entries_of_the_same_arguments) {
    assert_true(read_manifest(
        HEAD COOPERATIVE "[half, rest, half]}\n" HALF "  - {name: rest, args: [{name: x, buffer: "
                         "inout}]}\n"));
    const struct entry *entry = &program.entries[0];
    assert_int_equal(entry->phase_count, 3);
    assert_int_equal(entry->phases[0], 1);
    assert_int_equal(entry->phases[1], 2);
    assert_int_equal(entry->phases[2], 1);
}

TEST(phases_that_could_not_stand_for_their_entry_are_refused) {
    expect_problem(HEAD COOPERATIVE "[none]}\n", "program.yaml:4:89",
        "there is no entry 'none' to be a phase");
    expect_problem(HEAD COOPERATIVE "[[half]]}\n" HALF, "program.yaml:4:89",
        "there is no entry '' to be a phase");
    expect_problem(
        HEAD COOPERATIVE "[p]}\n", "program.yaml:4:89", "entry 'p' cannot be a phase of 'p'");
    expect_problem(HEAD COOPERATIVE "[half]}\n  - {name: half, args: [{name: x, buffer: in}]}\n",
        "program.yaml:4:89", "entry 'half' cannot be a phase of 'p'");
    expect_problem(HEAD COOPERATIVE "[half]}\n  - {name: half, args: []}\n", "program.yaml:4:89",
        "entry 'half' cannot be a phase of 'p'");
    expect_problem(
        HEAD COOPERATIVE "[]}\n", "program.yaml:4:88", "'phases' is not a list of 1 to 8");
    expect_problem(HEAD WHOLE "phases: [half]}\n" HALF, "program.yaml:4:57",
        "'phases' are for entries that need a grid-wide barrier");
}

TEST(access_is_for_buffers) {
    expect_arg_problem(
        "{name: x, buffer: in, access: once}", "program.yaml:6:39", "'access' cannot be 'once'");
    expect_arg_problem(
        "{name: x, value: f32, access: stream}", "program.yaml:6:39", "'access' is for buffers");
    assert_true(read_manifest(HEAD "  - {name: p, args: [{name: x, buffer: in, access: any}]}\n"));
    assert_false(program.entries[0].args[0].is_streamed);
}

TEST(unknown_keys_are_refused_everywhere) {
    expect_problem("nam: x\n" HEAD "  - {name: p, args: []}\n", "program.yaml:1:1",
        "unknown key 'nam' of a program");
    assert_string_equal(problems.items[0].fix, "did you mean 'name'?");
    expect_entry_problem("phase: [a]", "program.yaml:6:5", "unknown key 'phase' of an entry");
    expect_entry_problem(
        "requires: {bf16: true}", "program.yaml:6:16", "unknown key 'bf16' of 'requires'");
    expect_arg_problem("{name: x, value: f32, acces: stream}", "program.yaml:6:31",
        "unknown key 'acces' of an argument");
    expect_problem("name: p\nentries: [{name: p, args: []}]\n"
                   "images: [{kind: ptx, file: p.ptx, arch: sm_90}]\n",
        "program.yaml:3:35", "unknown key 'arch' of an image");
}

TEST(what_is_missing_is_named) {
    expect_problem(
        "entries: [{name: p, args: []}]\n" IMAGES, "program.yaml:1:1", "'name' is missing");
    expect_problem("name: p\n" IMAGES, "program.yaml:1:1", "'entries' is missing");
    expect_problem(
        "name: p\nentries: [{name: p, args: []}]\n", "program.yaml:1:1", "'images' is missing");
    expect_problem(HEAD "  - {name: p}\n", "program.yaml:4:5", "'args' is missing");
    expect_arg_problem("{value: f32}", "program.yaml:6:9", "'name' is missing");
    assert_false(read_manifest(""));
    assert_int_equal(problems_total(&problems), 3);
}

TEST(lists_have_their_bounds) {
    expect_problem("name: p\n" IMAGES "entries: []\n", "program.yaml:3:10",
        "'entries' is not a list of 1 to 64");
    expect_problem("name: p\n" IMAGES "entries: {name: p}\n", "program.yaml:3:10",
        "'entries' is not a list of 1 to 64");
    char args[65 * 24 + 10] = "";
    for (int i = 0; i < 65; i++) sprintf(args + strlen(args), "{name: a%d, value: u32},", i);
    char text[sizeof args + 100];
    snprintf(text, sizeof text, HEAD "  - {name: p, args: [%s]}\n", args);
    expect_problem(text, "program.yaml:4:21", "'args' is not a list of 0 to 64");
}

TEST(an_argument_is_a_value_or_a_buffer) {
    const char *either = "an argument is either a 'value' or a 'buffer'";
    expect_arg_problem("{name: x}", "program.yaml:6:9", either);
    expect_arg_problem("{name: x, value: f32, buffer: in}", "program.yaml:6:9", either);
    expect_arg_problem("{name: x, value: f16}", "program.yaml:6:26", "'value' cannot be 'f16'");
    expect_arg_problem(
        "{name: x, value: buffer}", "program.yaml:6:26", "'value' cannot be 'buffer'");
    expect_arg_problem(
        "{name: x, buffer: value}", "program.yaml:6:27", "'buffer' cannot be 'value'");
    assert_string_equal(problems.items[0].fix, "write one of in, out, inout, static");
    expect_arg_problem("{name: x, buffer: in, type: float}", "program.yaml:6:37",
        "'float' is not an element type");
    expect_arg_problem(
        "{name: x, value: f32, type: FP32}", "program.yaml:6:37", "'type' is for buffers");
}

TEST(names_are_plain) {
    expect_arg_problem(
        "{name: a b, value: f32}", "program.yaml:6:16", "'name' is not a plain name");
    expect_arg_problem("{name: '', value: f32}", "program.yaml:6:16", "'name' is not a plain name");
    expect_problem("name: a/b\nentries: [{name: p, args: []}]\n" IMAGES, "program.yaml:1:7",
        "'name' is not a plain name");
    expect_problem("name: a@b\nentries: [{name: p, args: []}]\n" IMAGES, "program.yaml:1:7",
        "'name' is not a plain name");
    expect_problem("name: [p]\nentries: [{name: p, args: []}]\n" IMAGES, "program.yaml:1:7",
        "'name' is not a plain name");
}

TEST(files_stay_inside_the_folder) {
    static const char *const bad[] = {
        "../p.ptx", "/etc/passwd", "a/b.ptx", "..", ".", ".hidden", "''"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char text[200];
        snprintf(text, sizeof text,
            "name: p\nentries: [{name: p, args: []}]\nimages: [{kind: ptx, file: %s}]\n", bad[i]);
        expect_problem(text, "program.yaml:3:28", "'file' is not a plain name");
    }
}

TEST(names_do_not_repeat) {
    expect_problem(HEAD "  - {name: p, args: []}\n  - {name: p, args: []}\n", "program.yaml:5:5",
        "a second entry 'p'");
    expect_problem(HEAD "  - name: p\n    args: [{name: x, value: f32}, {name: x, buffer: in}]\n",
        "program.yaml:5:35", "a second argument is named 'x'");
}

TEST(a_block_is_what_a_device_can_run) {
    expect_entry_problem("block: [0]", "program.yaml:6:13",
        "a side of the block is not a whole number from 1 to 1024");
    expect_entry_problem("block: [32, 64]", "program.yaml:6:12",
        "a block of 2048 threads; no device runs more than 1024");
    expect_entry_problem("block: [1, 1, 65]", "program.yaml:6:19",
        "a side of the block is not a whole number from 1 to 64");
    expect_entry_problem(
        "block: [1, 1, 1, 1]", "program.yaml:6:12", "'block' is not a list of 1 to 3");
    expect_entry_problem("block: 256", "program.yaml:6:12", "'block' is not a list of 1 to 3");
}

TEST(numbers_and_truths_are_checked) {
    expect_entry_problem("shared_bytes: -1", "program.yaml:6:19",
        "'shared_bytes' is not a whole number from 0 to 1048576");
    expect_entry_problem("shared_bytes: 99999999999", "program.yaml:6:19",
        "'shared_bytes' is not a whole number from 0 to 1048576");
    expect_entry_problem("requires: {cooperative: yes}", "program.yaml:6:29",
        "'cooperative' is neither true nor false");
    expect_entry_problem("requires: {compute_capability: 7}", "program.yaml:6:36",
        "'7' is not a compute capability");
    expect_entry_problem("requires: {compute_capability: sm_70}", "program.yaml:6:36",
        "'sm_70' is not a compute capability");
    expect_entry_problem("requires: [cooperative]", "program.yaml:6:15", "'requires' is not a map");
}

/* However many bytes a text has, the one behind it does not follow. */
TEST(texts_end_where_they_end) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    for (int size = 1; size < (int)sizeof letters; size++) {
        char text[300];
        snprintf(text, sizeof text,
            "name: %.*s\ndescription: %.*s\nentries: [{name: %.*s, args: []}]\n" IMAGES, size,
            letters, size, letters, size, letters);
        assert_true(read_manifest(text));
        assert_int_equal(strlen(program.name), size);
        assert_int_equal(strlen(program.description), size);
        assert_int_equal(strlen(program.entries[0].name), size);
    }
}

TEST(a_buffer_of_params_is_for_entries_that_end_with_their_only_words) {
    static const char *const bad[] = {"{name: w, value: words, count: 4}, {name: x, buffer: in}",
        "{name: v, value: words, count: 4}, {name: w, value: words, count: 4}",
        "{name: x, buffer: in}", ""};
    assert_true(read_manifest(
        HEAD "  - {name: p, params: buffer, args: [{name: x, buffer: in}, {name: w, value: words, "
             "count: 4}]}\n"));
    assert_true(program.entries[0].params_in_buffer);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char text[300];
        snprintf(text, sizeof text, HEAD "  - {name: p, params: buffer, args: [%s]}\n", bad[i]);
        expect_problem(text, "program.yaml:4:23",
            "'params: buffer' is for entries that end with their only words");
    }
}

TEST(only_a_cubin_has_an_architecture) {
    expect_problem("name: p\nentries: [{name: p, args: []}]\n"
                   "images: [{kind: cubin, file: p.cubin}]\n",
        "program.yaml:3:10", "'architecture' is missing");
    expect_problem("name: p\nentries: [{name: p, args: []}]\n"
                   "images: [{kind: ptx, file: p.ptx, architecture: 7.0}]\n",
        "program.yaml:3:49", "'architecture' is for cubin images");
    expect_problem("name: p\nentries: [{name: p, args: []}]\n"
                   "images: [{kind: elf, file: p.elf}]\n",
        "program.yaml:3:17", "'kind' cannot be 'elf'");
}

TEST(every_problem_is_reported_at_once) {
    assert_false(read_manifest("name: a b\nentries: [{name: p, args: [{name: x}], block: 3}, 7]\n"
                               "images: [{kind: ptx}]\nextra: 1\n"));
    assert_int_equal(problems_total(&problems), 6);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {S(a_whole_manifest_is_read), S(shared_memory_may_be_a_range),
        S(what_is_left_out_has_a_default), S(phases_are_entries_of_the_same_arguments),
        S(phases_that_could_not_stand_for_their_entry_are_refused), S(access_is_for_buffers),
        S(unknown_keys_are_refused_everywhere), S(what_is_missing_is_named),
        S(lists_have_their_bounds), S(an_argument_is_a_value_or_a_buffer), S(names_are_plain),
        S(files_stay_inside_the_folder), S(names_do_not_repeat),
        S(a_block_is_what_a_device_can_run), S(numbers_and_truths_are_checked),
        S(texts_end_where_they_end),
        S(a_buffer_of_params_is_for_entries_that_end_with_their_only_words),
        S(only_a_cubin_has_an_architecture), S(every_problem_is_reported_at_once)};
#undef S
    return cmocka_run_group_tests(tests, NULL, NULL);
}
