/* What an executor leaves to others when it ends before its jobs do. */
#include "cpu_driver/cpu_driver.h"
#include "support/run.h"
#include "testing.h"

enum { JOBS = 50 };

/* One runs at a time, and all are taken long before half of them could have run. */
static void add_slow_jobs(struct run *run) {
    run->settings.lanes = run->settings.lane_depth = run->settings.batch.jobs = 1;
    run_set_text(&run->settings.cpu_driver.faults, "cuLaunchKernel:slow=500ms@*");
    for (int k = 0; k < JOBS; k++) run_add_saxpy(run, k);
    run->stop_after = SIZE_MAX; /* the source does not end */
}

static bool are_all_in_hand(const struct run *run) {
    return run->broker.next == run->job_count && cpu_driver_counters().calls[CPU_launch] > 0;
}

static void stop_once_all_are_in_hand(struct run *run) {
    if (are_all_in_hand(run)) run->stop = 1;
}

TEST(one_that_stops_leaves_jobs_that_have_not_begun) {
    struct run *run = *state;
    add_slow_jobs(run);
    run->on_poll = stop_once_all_are_in_hand;
    assert_int_equal(run_execute(run), ERR_OK);
    assert_in_range(run->summary.ok, 1, JOBS / 2);
    assert_int_equal(run_finished_count(run), run->summary.ok);
    assert_int_equal(memory_count(&run->broker, ROUTE_RESULT), run->summary.ok);
    assert_false(run->summary.is_complete);
}

static void replace_once_all_are_in_hand(struct run *run) {
    run->broker.is_replaced = are_all_in_hand(run);
}

TEST(one_that_its_group_has_replaced_leaves_jobs_that_have_not_begun) {
    struct run *run = *state;
    add_slow_jobs(run);
    run->on_poll = replace_once_all_are_in_hand;
    assert_int_equal(run_execute(run), ERR_BROKER);
    assert_in_range(run->summary.ok, 1, JOBS / 2);
    assert_int_equal(memory_count(&run->broker, ROUTE_RESULT), run->summary.ok);
}

static void lose_once_all_are_in_hand(struct run *run) {
    if (are_all_in_hand(run)) atomic_store(&run->broker.left_count, SIZE_MAX);
}

TEST(one_that_loses_partitions_leaves_their_jobs_that_have_not_started) {
    struct run *run = *state;
    add_slow_jobs(run);
    run->stop_after = 0; /* it ends once nothing is in hand */
    run->on_poll = lose_once_all_are_in_hand;
    assert_int_equal(run_execute(run), ERR_OK);
    assert_in_range(run->summary.ok, 1, JOBS / 2);
    assert_int_equal(run->summary.errors, 0);
    assert_int_equal(run_finished_count(run), run->summary.ok);
    assert_int_equal(memory_count(&run->broker, ROUTE_RESULT), run->summary.ok);
}

RUN_TESTS(FLOW(one_that_stops_leaves_jobs_that_have_not_begun),
    FLOW(one_that_its_group_has_replaced_leaves_jobs_that_have_not_begun),
    FLOW(one_that_loses_partitions_leaves_their_jobs_that_have_not_started))
