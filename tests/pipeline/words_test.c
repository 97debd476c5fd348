/* Proves: the order within a job; large parameters. */
#include <stdlib.h>

#include "support/run.h"
#include "testing.h"

static int set_up_mix(void **state) {
    int code = run_set_up(state);
    struct run *run = *state;
    free(run->settings.programs.dir);
    run->settings.programs.dir = strdup(MIX_FOLDER);
    return code;
}

static void add_words(struct run *run, const char *id, const char *entry, const char *words) {
    char yaml[512];
    snprintf(yaml, sizeof yaml,
        "id: %s\nbuffers: {y: {bytes: 20}}\n"
        "steps: [{program: mix, entry: %s, args: [y, {u32: 5}, {words: %s}], elements: 5}]\n"
        "outputs: [{buffer: y}]\n",
        id, entry, words);
    run_add_job(run, yaml);
}

TEST(words_arrive_by_value_and_through_a_buffer) {
    struct run *run = *state;
    add_words(run, "value", "words_by_value", "[1, 2, 3, 4294967295]");
    add_words(run, "buffer", "words_in_buffer", "[1, 2, 3, 4294967295]");
    run_execute_ok(run);
    const uint32_t expected[] = {1, 2, 3, UINT32_MAX, 1};
    run_assert_output(run, "value", 0, expected, sizeof expected);
    run_assert_output(run, "buffer", 0, expected, sizeof expected);
    assert_int_equal(run_telemetry(run, "value", "param_bytes"), 8 + 4 + 16);
}

TEST(equal_blocks_are_uploaded_once) {
    struct run *run = *state;
    run->settings.batch.jobs = 1;
    for (int k = 0; k < 2; k++) {
        char yaml[768];
        snprintf(yaml, sizeof yaml,
            "id: steps-%d\nbuffers: {y: {bytes: 20}}\nsteps:\n"
            "  - {program: mix, entry: words_in_buffer, args: [y, {u32: 5}, {words: [1, 2, 3, "
            "4]}], "
            "elements: 5}\n"
            "  - {program: mix, entry: words_in_buffer, args: [y, {u32: 5}, {words: [1, 2, 3, "
            "%d]}], "
            "elements: 5}\n"
            "outputs: [{buffer: y}]\n",
            k, 4 + k);
        run_add_job(run, yaml);
    }
    run_execute_ok(run);
    const uint32_t same[] = {2, 4, 6, 8, 2}, other[] = {2, 4, 6, 9, 2};
    run_assert_output(run, "steps-0", 0, same, sizeof same);
    run_assert_output(run, "steps-1", 0, other, sizeof other);
    assert_int_equal(run_batch_telemetry(run, "steps-0", "h2d_bytes"), 256 + 256); /* zeroes */
    assert_int_equal(run_batch_telemetry(run, "steps-1", "h2d_bytes"), 512 + 256);
}

TEST(words_in_a_buffer_leave_launches_to_be_shared) {
    struct run *run = *state;
    run_gather(run);
    for (int k = 0; k < 200; k++) {
        char id[32], words[64];
        snprintf(id, sizeof id, "words-%d", k);
        snprintf(words, sizeof words, "[%d, 2, 3, 4]", k);
        add_words(run, id, "words_in_buffer", words);
    }
    run_execute_ok(run);
    uint64_t coalesced = 0;
    for (int k = 0; k < 200; k++) {
        char id[32];
        const uint32_t expected[] = {(uint32_t)k, 2, 3, 4, (uint32_t)k};
        snprintf(id, sizeof id, "words-%d", k);
        run_assert_output(run, id, 0, expected, sizeof expected);
        coalesced += run_batch_telemetry(run, id, "coalesced_launches");
    }
    assert_true(coalesced > 0);
}

enum { INSTANCES = 3000 };

/* Instance i adds {i, 2, 3, i + 1} to five numbers. */
static void add_array(struct run *run, const char *id, const char *entry) {
    size_t size = 1024 + INSTANCES * 32;
    char *yaml = malloc(size);
    size_t used = (size_t)snprintf(yaml, size,
        "id: %s\ncount: %d\nbuffers: {y: {bytes: 20, each: true}}\n"
        "steps: [{program: mix, entry: %s, args: [y, {u32: 5}, {each: {words: [0, 2, 3, 1",
        id, INSTANCES, entry);
    for (int i = 1; i < INSTANCES; i++)
        used += (size_t)snprintf(yaml + used, size - used, ", %d, 2, 3, %d", i, i + 1);
    snprintf(yaml + used, size - used, "]}}], elements: 5}]\noutputs: [{buffer: y}]\n");
    run_add_job(run, yaml);
    free(yaml);
}

TEST(instances_have_words_of_their_own) {
    struct run *run = *state;
    static uint32_t expected[INSTANCES][5];
    run->settings.lane_slab_bytes = 64 << 10;
    add_array(run, "value", "words_by_value");
    add_array(run, "buffer", "words_in_buffer");
    run_execute_ok(run);
    for (uint32_t i = 0; i < INSTANCES; i++)
        memcpy(expected[i], (const uint32_t[]){i, 2, 3, i + 1, i}, sizeof expected[i]);
    run_assert_output(run, "value", 0, expected, sizeof expected);
    run_assert_output(run, "buffer", 0, expected, sizeof expected);
    assert_int_equal(run_telemetry(run, "value", "param_bytes"), INSTANCES * (8 + 4 + 16));
    assert_true(run_telemetry(run, "buffer", "slices") > 3);
    assert_true(run_batch_telemetry(run, "buffer", "launches") < INSTANCES);
}

TEST(another_number_of_words_is_refused) {
    struct run *run = *state;
    add_words(run, "short", "words_by_value", "[1, 2, 3]");
    run_execute_ok(run);
    run_assert_error(run, "short", "bad_argument");
}

#define MIX(name) cmocka_unit_test_setup_teardown(name, set_up_mix, run_tear_down)

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        MIX(words_arrive_by_value_and_through_a_buffer),
        MIX(equal_blocks_are_uploaded_once),
        MIX(words_in_a_buffer_leave_launches_to_be_shared),
        MIX(instances_have_words_of_their_own),
        MIX(another_number_of_words_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
