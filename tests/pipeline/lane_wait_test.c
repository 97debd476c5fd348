/* Lanes that sleep while they wait, and lanes that spin, do the same: each test runs with both. */
#include "cpu_driver/cpu_driver.h"
#include "support/run.h"
#include "testing.h"

static void begin(struct run **run, enum lane_wait_choice lane_wait) {
    assert_int_equal(run_set_up((void **)run), 0);
    (*run)->settings.lane_wait = lane_wait;
}

static void end(struct run *run) {
    assert_int_equal(run_tear_down((void **)&run), 0);
}

static void with_both(void (*test)(struct run *run)) {
    static const enum lane_wait_choice choices[] = {LANE_WAIT_BLOCK, LANE_WAIT_SPIN};
    for (size_t i = 0; i < 2; i++) {
        struct run *run;
        begin(&run, choices[i]);
        test(run);
        end(run);
    }
}

enum { JOBS = 300 };

static void answer(struct run *run) {
    run_execute_ok(run);
    for (int k = 0; k < JOBS; k++) {
        char id[32];
        const float expected[] = {2 * (float)k + 1, 3};
        snprintf(id, sizeof id, "job-%d", k);
        run_assert_output(run, id, 0, expected, sizeof expected);
    }
}

static void answer_all(struct run *run) {
    run->settings.lanes = 3;
    for (int k = 0; k < JOBS; k++) run_add_saxpy(run, k);
    answer(run);
}

TEST(jobs_that_come_together_are_answered) {
    with_both(answer_all);
}

static void answer_singly(struct run *run) {
    run->broker.comes_singly = true;
    answer_all(run);
}

TEST(jobs_that_come_singly_are_answered) {
    with_both(answer_singly);
}

/* Once how long they take is known, the thread that reads runs them; one takes longer. */
static void answer_one_by_one(struct run *run) {
    run_set_text(&run->settings.cpu_driver.faults, "cuLaunchKernel:slow=5ms@50");
    for (int k = 0; k < JOBS; k++) {
        run_add_saxpy(run, k);
        run->places[k].comes_last = true;
    }
    answer(run);
}

TEST(jobs_that_come_one_after_the_other_are_answered) {
    with_both(answer_one_by_one);
}

static void stop_idle(struct run *run) {
    run_add_saxpy(run, 1);
    run->stop_after = 1; /* the source does not end */
    run_execute_ok(run);
    assert_int_equal(run->summary.ok, 1);
}

TEST(a_worker_without_jobs_stops_when_it_is_told_to) {
    with_both(stop_idle);
}

static void stop_once_all_are_in_hand(struct run *run) {
    if (run->broker.next == run->job_count && cpu_driver_counters().calls[CPU_launch] > 0)
        run->stop = 1;
}

static void stop_busy(struct run *run) {
    enum { FEW = 50 };
    run->settings.lanes = run->settings.lane_depth = run->settings.batch.jobs = 1;
    run_set_text(&run->settings.cpu_driver.faults, "cuLaunchKernel:slow=500ms@*");
    for (int k = 0; k < FEW; k++) run_add_saxpy(run, k);
    run->stop_after = SIZE_MAX;
    run->on_poll = stop_once_all_are_in_hand;
    assert_int_equal(run_execute(run), ERR_OK);
    assert_in_range(run->summary.ok, 1, FEW / 2);
    assert_int_equal(run_finished_count(run), run->summary.ok);
    assert_false(run->summary.is_complete);
}

TEST(a_worker_that_stops_finishes_what_has_begun_and_leaves_the_rest) {
    with_both(stop_busy);
}

static void drop_revoked(struct run *run) {
    run->broker.revoke_from = 30;
    for (int k = 0; k < 50; k++) run_add_saxpy(run, k);
    assert_int_equal(run_execute(run), ERR_OK);
    assert_int_equal(run->summary.ok, 30);
    assert_int_equal(memory_count(&run->broker, ROUTE_RESULT), 30);
}

TEST(answers_that_others_give_by_now_are_dropped) {
    with_both(drop_revoked);
}

static void lose_device(struct run *run) {
    run_set_text(&run->settings.cpu_driver.faults, "cuLaunchKernel:illegal_address@2");
    for (int k = 0; k < 100; k++) run_add_saxpy(run, k);
    assert_int_equal(run_execute(run), ERR_GPU_ILLEGAL_ADDRESS);
    assert_int_equal(memory_count(&run->broker, ROUTE_DEAD_LETTER), 0);
    assert_true(run->broker.finished_count < 100);
}

TEST(a_lost_device_ends_all_lanes) {
    with_both(lose_device);
}

RUN_TESTS(T(jobs_that_come_together_are_answered), T(jobs_that_come_singly_are_answered),
    T(jobs_that_come_one_after_the_other_are_answered),
    T(a_worker_without_jobs_stops_when_it_is_told_to),
    T(a_worker_that_stops_finishes_what_has_begun_and_leaves_the_rest),
    T(answers_that_others_give_by_now_are_dropped), T(a_lost_device_ends_all_lanes))
