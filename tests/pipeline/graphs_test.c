/* Proves: a job's results, and what is said of them, do not depend on graphs; a fault in one blames
 * no job. */
#include <stdlib.h>

#include "cpu_driver/cpu_driver.h"
#include "support/run.h"
#include "testing.h"

enum { JOBS = 40, ITERATIONS = 30 };

static int set_up(void **state) {
    int code = run_set_up(state);
    struct run *run = *state;
    run->settings.lanes = 2;
    run->settings.batch.jobs = 1;
    run->settings.batch.graphs = GRAPHS_AUTO;
    for (int k = 0; k < JOBS; k++) {
        char yaml[512];
        snprintf(yaml, sizeof yaml,
            "id: job-%d\nbuffers: {x: {data: {f32: [%d, 1]}}, y: {data: {f32: [1, 1]}}}\n"
            "steps: [{program: saxpy, args: [{f32: 2}, x, y, {u32: 2}], elements: 2, "
            "iterations: %d}]\noutputs: [{buffer: y}]\n",
            k, k, ITERATIONS);
        run_add_job(run, yaml);
    }
    return code;
}

TEST(jobs_have_the_results_and_launches_that_they_have_without_graphs) {
    struct run *run = *state;
    run_execute_ok(run);
    for (int k = 0; k < JOBS; k++) {
        char id[16];
        const float expected[] = {1 + 2 * ITERATIONS * (float)k, 1 + 2 * ITERATIONS};
        snprintf(id, sizeof id, "job-%d", k);
        run_assert_output(run, id, 0, expected, sizeof expected);
        assert_int_equal(run_batch_telemetry(run, id, "launches"), ITERATIONS);
        assert_int_equal(run_telemetry(run, id, "kernel_launches"), ITERATIONS);
    }
    struct cpu_driver_counters counters = cpu_driver_counters();
    assert_true(counters.calls[CPU_graph_launch] > 0);
    assert_int_equal(counters.launches, JOBS * ITERATIONS);
    assert_int_equal(counters.graphs_live, 0);
    assert_int_equal(counters.modules_live, 0);
}

TEST(a_fault_in_a_graph_loses_the_gpu_and_blames_no_job) {
    struct run *run = *state;
    run_set_text(&run->settings.cpu_driver.faults, "cuGraphLaunch:illegal_address@2");
    assert_int_equal(run_execute(run), ERR_GPU_ILLEGAL_ADDRESS);
    assert_int_equal(cpu_driver_counters().faults, 1);
    assert_int_equal(memory_count(&run->broker, ROUTE_DEAD_LETTER), 0);
}

#define F(name) cmocka_unit_test_setup_teardown(name, set_up, run_tear_down)

RUN_TESTS(F(jobs_have_the_results_and_launches_that_they_have_without_graphs),
    F(a_fault_in_a_graph_loses_the_gpu_and_blames_no_job))
