/* Proves: clears and fills on the device; telemetry of jobs and batches is exact; no job sees
 * bytes of another. */
#include "cpu_driver/cpu_driver.h"
#include "support/run.h"
#include "testing.h"

static int set_up(void **state) {
    int code = run_set_up(state);
    struct run *run = *state;
    run->settings.batch.stream = STREAM_MAPPED;
    run_gather(run);
    return code;
}

/* y = 2x + y over two floats. */
static void add(struct run *run, const char *id, const char *x, const char *y, const char *step,
    const char *rest) {
    char yaml[1024];
    snprintf(yaml, sizeof yaml,
        "id: %s\nbuffers: {x: {%s}, y: {%s}}\n"
        "steps: [{program: saxpy, args: [{f32: 2}, x, y, {u32: 2}], elements: 2%s\n%s",
        id, x, y, step, rest);
    run_add_job(run, yaml);
}

#define DATA "data: {f32: [3, 4]}"
#define END "}]"
#define OUTPUT_Y "outputs: [{buffer: y}]\n"

static uint64_t copies(void) {
    const struct cpu_driver_counters counters = cpu_driver_counters();
    return counters.calls[CPU_copy_to_device] + counters.calls[CPU_copy_to_host];
}

TEST(jobs_whose_kernels_stream_are_run_without_a_copy_or_a_memset_alone_and_together) {
    struct run *run = *state;
    for (int k = 0; k < 300; k++) run_add_saxpy(run, k);
    run_execute_ok(run);
    uint64_t largest = 0;
    for (int k = 0; k < 300; k++) {
        char id[32];
        const float expected[] = {2 * (float)k + 1, 3};
        snprintf(id, sizeof id, "job-%d", k);
        run_assert_output(run, id, 0, expected, sizeof expected);
        uint64_t jobs = run_batch_telemetry(run, id, "jobs");
        assert_int_equal(run_batch_telemetry(run, id, "copies"), 0);
        assert_int_equal(run_batch_telemetry(run, id, "h2d_bytes"), 16 * jobs);
        assert_int_equal(run_batch_telemetry(run, id, "d2h_bytes"), 8 * jobs);
        if (jobs > largest) largest = jobs;
    }
    assert_true(largest > 1);
    assert_int_equal(copies(), 0);
    assert_int_equal(cpu_driver_counters().calls[CPU_fill], 0);
}

TEST(the_host_clears_fills_and_writes_what_no_job_brought) {
    struct run *run = *state;
    for (int k = 0; k < 3; k++) { /* over what the jobs before have left in the slab */
        char id[32];
        snprintf(id, sizeof id, "clear-%d", k);
        add(run, id, DATA, "bytes: 8", END, OUTPUT_Y);
        snprintf(id, sizeof id, "fill-%d", k);
        add(run, id, DATA, "bytes: 8, fill: 64, writes: [{offset: 4, data: {f32: [1]}}]", END,
            OUTPUT_Y);
        snprintf(id, sizeof id, "rest-%d", k);
        add(run, id, DATA, "bytes: 16, writes: [{offset: 0, data: {f32: [5, 6, 7]}}]", END,
            "outputs: [{buffer: y, offset: 8, as: tail}, {buffer: x, offset: 4}, {buffer: y, "
            "bytes: 4}]\n");
    }
    run_execute_ok(run);
    const float cleared[] = {6, 8}, rest[] = {7, 0}, x[] = {4}, y[] = {11};
    float filled[2];
    memset(filled, 64, sizeof filled);
    filled[0] += 6;
    filled[1] = 9;
    for (int k = 0; k < 3; k++) {
        char id[32];
        snprintf(id, sizeof id, "clear-%d", k);
        run_assert_output(run, id, 0, cleared, sizeof cleared);
        snprintf(id, sizeof id, "fill-%d", k);
        run_assert_output(run, id, 0, filled, sizeof filled);
        snprintf(id, sizeof id, "rest-%d", k);
        run_assert_output(run, id, 0, rest, sizeof rest);
        run_assert_output(run, id, 1, x, sizeof x);
        run_assert_output(run, id, 2, y, sizeof y);
    }
    assert_int_equal(copies(), 0);
    assert_int_equal(cpu_driver_counters().calls[CPU_fill], 0);
}

TEST(what_is_touched_twice_or_too_large_is_copied) {
    struct run *run = *state;
    run->settings.lane_slab_bytes = 64 << 10;
    add(run, "repeat", DATA, DATA, END, OUTPUT_Y "repeat: 2\n");
    add(run, "iterations", DATA, DATA, ", iterations: 2" END, OUTPUT_Y);
    add(run, "steps", DATA, DATA,
        "}, {program: saxpy, args: [{f32: 2}, x, y, {u32: 2}], elements: 2" END, OUTPUT_Y);
    run_add_job(run, "id: twice\nbuffers: {y: {data: {f32: [3, 4]}}}\n"
                     "steps: [{program: saxpy, args: [{f32: 2}, y, y, {u32: 2}], elements: 2}]\n"
                     "outputs: [{buffer: y}]\n");
    add(run, "large", "bytes: 100000", DATA, END, OUTPUT_Y);
    run_execute_ok(run);
    const float more[] = {15, 20}, once[] = {9, 12}, same[] = {3, 4};
    run_assert_output(run, "repeat", 0, more, sizeof more);
    run_assert_output(run, "iterations", 0, more, sizeof more);
    run_assert_output(run, "steps", 0, more, sizeof more);
    run_assert_output(run, "twice", 0, once, sizeof once);
    run_assert_output(run, "large", 0, same, sizeof same);
    const char *const ids[] = {"repeat", "iterations", "steps", "twice", "large"};
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++)
        assert_int_equal(run_batch_telemetry(run, ids[i], "copies"), 2);
}

TEST(the_configuration_can_have_all_copied) {
    struct run *run = *state;
    run->settings.batch.stream = STREAM_COPIED;
    run_add_saxpy(run, 1);
    run_execute_ok(run);
    const float expected[] = {3, 3};
    run_assert_output(run, "job-1", 0, expected, sizeof expected);
    assert_int_equal(run_batch_telemetry(run, "job-1", "copies"), 2);
}

TEST(a_static_beside_mapped_buffers_stays_on_the_device) {
    struct run *run = *state;
    const float payload[] = {3, 4};
    struct digest digest = digest_of(slice_of(payload, sizeof payload));
    char text[DIGEST_TEXT_SIZE], source[160];
    snprintf(source, sizeof source, "static: \"%s\", " DATA, digest_format(&digest, text));
    add(run, "mapped", source, DATA, END, OUTPUT_Y);
    add(run, "copied", source, DATA, END, "outputs: [{buffer: y}, {buffer: x}]\n");
    run_execute_ok(run);
    const float expected[] = {9, 12};
    run_assert_output(run, "mapped", 0, expected, sizeof expected);
    run_assert_output(run, "copied", 0, expected, sizeof expected);
    run_assert_output(run, "copied", 1, payload, sizeof payload);
    assert_int_equal(run_batch_telemetry(run, "mapped", "copies"), 0);
    assert_int_equal(run_batch_telemetry(run, "copied", "copies"), 3);
}

#define MAPPED(name) cmocka_unit_test_setup_teardown(name, set_up, run_tear_down)

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        MAPPED(jobs_whose_kernels_stream_are_run_without_a_copy_or_a_memset_alone_and_together),
        MAPPED(the_host_clears_fills_and_writes_what_no_job_brought),
        MAPPED(what_is_touched_twice_or_too_large_is_copied),
        MAPPED(the_configuration_can_have_all_copied),
        MAPPED(a_static_beside_mapped_buffers_stays_on_the_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
