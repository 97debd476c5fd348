/* Graphs of a batch, on the CPU driver: when launches become one, with which arguments, and what
 * happens where they cannot. */
#include <stdio.h>

#include "batch/graphs.h"
#include "batch_rig.h"
#include "cpu_driver/cpu_driver.h"

enum { JOBS_MAX = 2, LAUNCHES = 20 };

static struct job *jobs[JOBS_MAX];
static size_t job_count;

static void open_batch(const char *faults) {
    batch_rig_init(JOBS_MAX, false, true, faults);
    job_count = 0;
}

static void close_batch(void) {
    batch_rig_fini();
    assert_int_equal(cpu_driver_counters().freed_in_use, 0);
}

/* y = y + k x as often as `step` says, with x = {1, 2} and y = {10, 20}. */
static void add(int k, const char *step) {
    char yaml[512];
    snprintf(yaml, sizeof yaml,
        "id: j\nbuffers: {x: {data: {f32: [1, 2]}}, y: {data: {f32: [10, 20]}}}\n"
        "steps: [%s]\noutputs: [{buffer: y}]\n",
        step);
    char *at = strchr(yaml, '#');
    assert_non_null(at);
    for (; at != NULL; at = strchr(yaml, '#')) *at = (char)('0' + k);
    jobs[job_count++] = create_ready_job(yaml);
}

#define SAXPY "{program: saxpy, args: [{f32: #}, x, y, {u32: 2}], elements: 2"

static void add_launches(int k, int launches) {
    char step[128];
    snprintf(step, sizeof step, SAXPY ", iterations: %d}", launches);
    add(k, step);
}

static void run(void) {
    OK(batch_begin(&batch, jobs, job_count, 0, false, 7, &err));
    OK(batch_finish(&batch, &err));
}

/* The batch has run `times` launches of each job's. */
static void end(int k, int times) {
    for (size_t i = 0; i < job_count; i++) {
        const struct outcome *outcome = &jobs[i]->outcome;
        const float expected[] = {10 + (float)(k * times), 20 + (float)(2 * k * times)};
        assert_int_equal(outcome->code, ERR_OK);
        assert_memory_equal(outcome->outputs[0].data, expected, sizeof expected);
        assert_int_equal(outcome->telemetry.batch.launches, times);
    }
    batch_recycle(&batch);
    for (size_t i = 0; i < job_count; i++) destroy_ready_job(jobs[i]);
    job_count = 0;
}

static void run_launches(int k, int launches) {
    add_launches(k, launches);
    run();
    end(k, launches);
}

static uint64_t calls(enum cpu_entry entry) {
    return cpu_driver_counters().calls[entry];
}

TEST(launches_that_have_come_often_go_with_one_call) {
    open_batch(NULL);
    for (int i = 0; i < GRAPH_PLAIN_RUNS; i++) run_launches(3, LAUNCHES);
    assert_int_equal(calls(CPU_launch), GRAPH_PLAIN_RUNS * LAUNCHES);
    assert_int_equal(calls(CPU_graph_create), 0);
    for (int i = 0; i < 2; i++) run_launches(3, LAUNCHES);
    assert_int_equal(calls(CPU_launch), GRAPH_PLAIN_RUNS * LAUNCHES);
    assert_int_equal(calls(CPU_graph_add_kernel), LAUNCHES);
    assert_int_equal(calls(CPU_graph_instantiate), 1);
    assert_int_equal(calls(CPU_graph_launch), 2);
    assert_int_equal(calls(CPU_graph_exec_set_kernel), 0);
    assert_int_equal(cpu_driver_counters().launches, (GRAPH_PLAIN_RUNS + 2) * LAUNCHES);
    close_batch();
}

TEST(a_graph_gets_the_arguments_of_each_job) {
    open_batch(NULL);
    for (int k = 0; k < GRAPH_PLAIN_RUNS + 2; k++) run_launches(k, LAUNCHES);
    assert_int_equal(calls(CPU_graph_instantiate), 1);
    assert_int_equal(calls(CPU_graph_launch), 2);
    assert_int_equal(calls(CPU_graph_exec_set_kernel), LAUNCHES);
    close_batch();
}

TEST(only_the_nodes_that_differ_are_changed) {
    open_batch(NULL);
    for (int k = 0; k < GRAPH_PLAIN_RUNS + 2; k++) {
        char steps[256];
        snprintf(steps, sizeof steps,
            "{program: saxpy, args: [{f32: 2}, x, y, {u32: 2}], elements: 2, iterations: "
            "10}, " SAXPY ", iterations: 3}");
        add(k, steps);
        run();
        const float expected[] = {30 + 3 * (float)k, 60 + 6 * (float)k};
        assert_memory_equal(jobs[0]->outcome.outputs[0].data, expected, sizeof expected);
        batch_recycle(&batch);
        destroy_ready_job(jobs[--job_count]);
    }
    assert_int_equal(calls(CPU_graph_exec_set_kernel), 3);
    close_batch();
}

TEST(launches_for_several_jobs_at_once_become_a_graph_too) {
    open_batch(NULL);
    for (int i = 0; i <= GRAPH_PLAIN_RUNS; i++) {
        for (int n = 0; n < 2; n++) add_launches(2, LAUNCHES);
        run();
        const struct batch_telemetry *telemetry = &jobs[0]->outcome.telemetry.batch;
        assert_int_equal(telemetry->coalesced_launches, LAUNCHES);
        assert_int_equal(telemetry->graph_launches, i == GRAPH_PLAIN_RUNS);
        end(2, LAUNCHES);
    }
    close_batch();
}

TEST(few_launches_go_one_by_one) {
    open_batch(NULL);
    for (int i = 0; i < GRAPH_PLAIN_RUNS + 2; i++) run_launches(3, GRAPH_LAUNCHES_MIN - 1);
    assert_int_equal(calls(CPU_launch), (GRAPH_PLAIN_RUNS + 2) * (GRAPH_LAUNCHES_MIN - 1));
    assert_int_equal(calls(CPU_graph_create), 0);
    close_batch();
}

TEST(of_more_launches_than_a_graph_has_each_part_is_one) {
    enum { ALL = (GRAPH_PLAIN_RUNS + 2) * LAUNCHES_MAX + 1 };
    open_batch(NULL);
    run_launches(1, ALL);
    assert_int_equal(calls(CPU_graph_instantiate), 1);
    assert_int_equal(calls(CPU_graph_launch) * LAUNCHES_MAX + calls(CPU_launch), ALL);
    assert_int_equal(cpu_driver_counters().launches, ALL);
    close_batch();
}

TEST(a_cooperative_launch_comes_between_those_before_it_and_behind_it) {
    enum { JOBS = GRAPH_PLAIN_RUNS / 2 + 1 }; /* with two parts each */
    open_batch(NULL);
    for (int i = 0; i < JOBS; i++) {
        add(3,
            SAXPY ", iterations: 10}, " SAXPY ", cooperative: true}, " SAXPY ", iterations: 10}");
        run();
        end(3, 21);
    }
    assert_int_equal(calls(CPU_launch), 10 * GRAPH_PLAIN_RUNS);
    assert_int_equal(calls(CPU_graph_launch), 2);
    assert_int_equal(calls(CPU_launch_cooperative), JOBS);
    close_batch();
}

TEST(a_graph_makes_room_for_launches_that_came_later) {
    open_batch(NULL);
    for (int launches = 0; launches <= GRAPHS_MAX; launches++)
        for (int i = 0; i <= GRAPH_PLAIN_RUNS; i++) run_launches(1, GRAPH_LAUNCHES_MIN + launches);
    assert_int_equal(calls(CPU_graph_instantiate), GRAPHS_MAX + 1);
    assert_int_equal(calls(CPU_graph_exec_destroy), 1);
    assert_int_equal(cpu_driver_counters().graphs_live, 2 * GRAPHS_MAX); /* each and its source */
    run_launches(1, GRAPH_LAUNCHES_MIN); /* the first, again unknown */
    assert_int_equal(calls(CPU_graph_launch), GRAPHS_MAX + 1);
    assert_int_equal(calls(CPU_graph_exec_destroy), 2);
    batch_rig_fini();
}

TEST(where_the_driver_refuses_a_graph_its_launches_go_one_by_one) {
    static const char *const faults[] = {"cuGraphCreate:out_of_memory@1", "cuGraphCreate:null@1",
        "cuGraphAddKernelNode:invalid_value@7", "cuGraphInstantiateWithFlags:out_of_memory@1",
        "cuGraphInstantiateWithFlags:null@1", "cuGraphExecKernelNodeSetParams:not_supported@4",
        "cuGraphLaunch:launch_out_of_resources@1", "cuGraphLaunch:out_of_memory@2"};
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        open_batch(faults[i]);
        uint64_t refused = 0;
        for (int k = 0; k < GRAPH_PLAIN_RUNS + 3; k++) {
            add_launches(k, LAUNCHES);
            run();
            refused += jobs[0]->outcome.telemetry.batch.graphs_refused;
            end(k, LAUNCHES);
        }
        assert_int_equal(refused, 1);
        assert_int_equal(calls(CPU_graph_create), 1); /* not tried again */
        assert_int_equal(cpu_driver_counters().graphs_live, 0);
        close_batch();
    }
}

TEST(a_graph_that_takes_longer_than_its_launches_is_not_used) {
    open_batch("cuGraphExecKernelNodeSetParams:slow=10ms@*"); /* 200 ms for all */
    for (int k = 0; k < GRAPH_PLAIN_RUNS + 4; k++) run_launches(k, LAUNCHES);
    assert_int_equal(calls(CPU_graph_launch), 2);
    assert_int_equal(calls(CPU_launch), (GRAPH_PLAIN_RUNS + 2) * LAUNCHES);
    close_batch();
}

TEST(a_graph_keeps_what_it_runs_loaded) {
    open_batch(NULL);
    for (int i = 0; i <= GRAPH_PLAIN_RUNS; i++) run_launches(1, LAUNCHES);
    uint64_t loaded = cpu_driver_counters().modules_live;
    assert_true(loaded > 1);
    module_set_unload(rig.set);
    rig.set = NULL;
    assert_int_equal(cpu_driver_counters().modules_live, 1);
    assert_int_equal(cpu_driver_counters().freed_in_use, 0);
    batch_fini(&batch);
    assert_int_equal(cpu_driver_counters().modules_live, 0);
    assert_int_equal(cpu_driver_counters().graphs_live, 0);
    close_batch();
}

TEST(a_driver_without_a_function_for_graphs_has_none) {
    struct gpu_driver driver;
    cpu_driver_table(&driver);
    assert_true(graphs_can(&driver));
#define X(field, function, version)                                                                \
    driver.field = NULL;                                                                           \
    assert_false(graphs_can(&driver));                                                             \
    cpu_driver_table(&driver);
    GPU_DRIVER_GRAPH_LIST(X)
#undef X
}

RUN_TESTS(T(launches_that_have_come_often_go_with_one_call),
    T(a_graph_gets_the_arguments_of_each_job), T(only_the_nodes_that_differ_are_changed),
    T(launches_for_several_jobs_at_once_become_a_graph_too), T(few_launches_go_one_by_one),
    T(of_more_launches_than_a_graph_has_each_part_is_one),
    T(a_cooperative_launch_comes_between_those_before_it_and_behind_it),
    T(a_graph_makes_room_for_launches_that_came_later),
    T(where_the_driver_refuses_a_graph_its_launches_go_one_by_one),
    T(a_graph_that_takes_longer_than_its_launches_is_not_used),
    T(a_graph_keeps_what_it_runs_loaded), T(a_driver_without_a_function_for_graphs_has_none))
