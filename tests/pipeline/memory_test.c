/* Proves: pools that all threads share; budgets; want of host memory; what the cache of statics
 * holds and evicts. */
#include <stdlib.h>

#include "cpu_driver/cpu_driver.h"
#include "support/run.h"
#include "testing.h"

enum { DEVICE_BYTES = 16 << 20, LANES = 16, LARGE_JOBS = 520, LARGE_BYTES = 5 << 20 };

static void make_small_device(struct run *run) {
    run->settings.cpu_driver.memory_bytes = DEVICE_BYTES;
    run->settings.lanes = LANES;
    run->settings.lane_depth = 1;
    run->settings.lane_slab_bytes = 64 << 10;
    run->settings.statics.budget_bytes = 6 << 20;
}

/* A job whose own buffers take `bytes`, and that reads back the end of them: `fill` in each. */
static void add_large(struct run *run, const char *id, uint64_t bytes, int fill) {
    char yaml[768];
    snprintf(yaml, sizeof yaml,
        "id: %s\nbuffers: {big: {bytes: %llu, fill: %d}, x: {bytes: 4}, y: {bytes: 4}}\n"
        "steps: [{program: saxpy, args: [{f32: 1}, x, y, {u32: 1}], elements: 1}]\n"
        "outputs: [{buffer: big, offset: %llu, bytes: 2}]\n",
        id, (unsigned long long)bytes, fill, (unsigned long long)bytes - 2);
    run_add_job(run, yaml);
}

TEST(jobs_of_160_times_its_memory_pass_through_a_device) {
    struct run *run = *state;
    make_small_device(run);
    for (int k = 0; k < LARGE_JOBS; k++) {
        char id[32];
        snprintf(id, sizeof id, "large-%d", k);
        /* between half and one and a half of the usual size, so that blocks rarely fit exactly */
        add_large(run, id, LARGE_BYTES / 2 + (uint64_t)(k * 7919 % 101) * (LARGE_BYTES / 100),
            k % 255 + 1);
        run_add_saxpy(run, k);
    }
    run_execute_ok(run);
    assert_int_equal(run->summary.ok, 2 * LARGE_JOBS);
    for (int k = 0; k < LARGE_JOBS; k++) {
        char id[32];
        const uint8_t expected[] = {(uint8_t)(k % 255 + 1), (uint8_t)(k % 255 + 1)};
        snprintf(id, sizeof id, "large-%d", k);
        run_assert_output(run, id, 0, expected, sizeof expected);
    }
}

TEST(a_job_that_can_never_fit_is_an_error_and_the_others_go_on) {
    struct run *run = *state;
    make_small_device(run);
    add_large(run, "before", LARGE_BYTES, 1);
    add_large(run, "never", DEVICE_BYTES, 1);
    add_large(run, "after", LARGE_BYTES, 1);
    run_execute_ok(run);
    assert_int_equal(run->summary.ok, 2);
    run_assert_error(run, "never", "device_memory");
}

/* At most three results fit. Before a message is decoded, its result may be the largest. */
TEST(results_to_come_hold_the_intake_back) {
    struct run *run = *state;
    run->settings.limits.bytes_in_flight = 1 << 20;
    run_set_text(&run->settings.cpu_driver.faults, "cuMemcpyDtoHAsync:slow=1ms@*");
    for (int k = 0; k < 300; k++) {
        char yaml[512];
        snprintf(yaml, sizeof yaml,
            "id: large-%d\nbuffers: {x: {bytes: 4}, y: {bytes: 400000}}\n"
            "steps: [{program: saxpy, args: [{f32: 1}, x, y, {u32: 1}], elements: 1}]\n"
            "outputs: [{buffer: y}]\n",
            k);
        run_add_job(run, yaml);
    }
    run_execute_ok(run);
    assert_int_equal(run->summary.ok, 300);
    if (run->broker.open_max > 4) fail_msg("%zu at once", (size_t)run->broker.open_max);
}

/* The first ones count with the largest result, of which only one fits. */
TEST(small_results_let_more_messages_in_than_the_largest_would) {
    struct run *run = *state;
    run->settings.limits.bytes_in_flight = 16 << 20;
    run->settings.limits.result_bytes = 16 << 20;
    run_set_text(&run->settings.cpu_driver.faults, "cuMemcpyDtoHAsync:slow=10ms@*");
    for (int k = 0; k < 2000; k++) run_add_saxpy(run, k);
    run_execute_ok(run);
    assert_int_equal(run->summary.ok, 2000);
    if (run->broker.open_max < 64) fail_msg("%zu at once", (size_t)run->broker.open_max);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        FLOW(jobs_of_160_times_its_memory_pass_through_a_device),
        FLOW(results_to_come_hold_the_intake_back),
        FLOW(small_results_let_more_messages_in_than_the_largest_would),
        FLOW(a_job_that_can_never_fit_is_an_error_and_the_others_go_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
