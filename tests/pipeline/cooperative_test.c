/* Proves: cooperative launches. */
#include <stdlib.h>

#include "cpu_driver/cpu_driver.h"
#include "support/run.h"
#include "testing.h"

enum { ELEMENTS = 512, ITERATIONS = 3 };

static int set_up(void **state) {
    int code = run_set_up(state);
    struct run *run = *state;
    run_set_text(&run->settings.programs.dir, MIX_FOLDER);
    return code;
}

/* y = 0, 0 ... turned around and raised by 1, ITERATIONS times, by blocks of 64. */
static void add_turn(struct run *run, const char *id, int blocks) {
    char yaml[512];
    snprintf(yaml, sizeof yaml,
        "id: %s\nbuffers: {y: {bytes: %d, writes: [{offset: 0, data: {u32: [7, 8]}}]}, "
        "s: {bytes: %d}, w: {bytes: 4}}\n"
        "steps: [{program: mix, entry: turn, args: [y, s, w, {u32: %d}], grid: [%d], "
        "block: [64], iterations: %d}]\noutputs: [{buffer: y}]\n",
        id, 4 * ELEMENTS, 4 * ELEMENTS, ELEMENTS, blocks, ITERATIONS);
    run_add_job(run, yaml);
}

static void assert_turned(struct run *run, const char *id) {
    uint32_t expected[ELEMENTS];
    for (int i = 0; i < ELEMENTS; i++) expected[i] = ITERATIONS;
    expected[ELEMENTS - 1] += 7; /* an odd number of turns */
    expected[ELEMENTS - 2] += 8;
    run_assert_output(run, id, 0, expected, sizeof expected);
}

TEST(phases_give_what_the_cooperative_launch_gives_without_a_copy_in_between) {
    struct run *run = *state;
    add_turn(run, "whole", ELEMENTS / 64);
    add_turn(run, "phases", 1000);
    run_execute_ok(run);
    assert_turned(run, "whole");
    assert_turned(run, "phases");
    assert_int_equal(run_batch_telemetry(run, "whole", "launches"), ITERATIONS);
    assert_int_equal(run_batch_telemetry(run, "phases", "launches"), 2 * ITERATIONS);
    assert_int_equal(cpu_driver_counters().calls[CPU_launch_cooperative], ITERATIONS);
    /* what a job asks for is the same wherever it runs */
    assert_int_equal(run_telemetry(run, "whole", "kernel_launches"), ITERATIONS);
    assert_int_equal(run_telemetry(run, "phases", "kernel_launches"), ITERATIONS);
    for (int i = 0; i < 2; i++) {
        const char *id = i == 0 ? "whole" : "phases";
        assert_int_equal(run_batch_telemetry(run, id, "sync_points"), 1);
        assert_int_equal(run_batch_telemetry(run, id, "copies"), 2); /* the write, and y back */
    }
}

TEST(a_cooperative_grid_that_fits_nowhere_is_refused_before_any_work_and_leaves_others_alone) {
    struct run *run = *state;
    run_add_job(run, "id: large\nbuffers: {y: {bytes: 4}}\n"
                     "steps: [{program: mix, entry: xor_shift, args: [y, {u32: 1}], grid: [4096], "
                     "cooperative: true}]\noutputs: [{buffer: y}]\n");
    add_turn(run, "good", ELEMENTS / 64);
    run_execute_ok(run);
    run_assert_error(run, "large", "bad_launch");
    assert_turned(run, "good");
    assert_int_equal(cpu_driver_counters().launches, ITERATIONS);
}

#define MIX(name) cmocka_unit_test_setup_teardown(name, set_up, run_tear_down)

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        MIX(phases_give_what_the_cooperative_launch_gives_without_a_copy_in_between),
        MIX(a_cooperative_grid_that_fits_nowhere_is_refused_before_any_work_and_leaves_others_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
