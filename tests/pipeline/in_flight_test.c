/* limits.jobs_in_flight holds while suspects run alone and others wait behind them, and
 * limits.bytes_in_flight to the last byte. */
#include "plan/plan.h"
#include "state/state.h"
#include "support/run.h"
#include "support/scratch.h"
#include "testing.h"

enum { JOBS = 200, IN_FLIGHT_MAX = 8, COMMIT_MS = 20 };

static void open_state(struct run *run, const char *folder) {
    struct error set_aside, err;
    char path[300];
    snprintf(path, sizeof path, "%s/state", folder);
    assert_int_equal(state_open(path, 0, &run->state, &set_aside, &err), ERR_OK);
}

/* Answers count until they are committed, as those of a transaction do. */
static void assert_holds(struct run *run, int end_of_suspects, int every) {
    char *folder = scratch_create();
    open_state(run, folder);
    run->settings.limits.jobs_in_flight = IN_FLIGHT_MAX;
    run->broker.settle_ns = COMMIT_MS * 1000000ull;
    for (int k = 0; k < JOBS; k++) {
        run_add_saxpy(run, k);
        run->places[k].comes_contested = k < end_of_suspects && k % every == 0;
    }
    run_execute_ok(run);
    assert_true(run->broker.open_max <= IN_FLIGHT_MAX);
    state_close(run->state);
    run->state = NULL;
    scratch_remove(folder);
}

TEST(no_more_is_taken_than_there_is_room_for_when_all_in_flight_were_suspects) {
    assert_holds(*state, IN_FLIGHT_MAX, 1);
}

TEST(no_more_is_taken_than_there_is_room_for_among_many_suspects) {
    assert_holds(*state, JOBS, 3);
}

TEST(no_more_is_taken_than_there_is_room_for_where_all_are_suspects) {
    assert_holds(*state, JOBS, 1);
}

/* What one of the jobs counts: as it is taken, and once it is decoded. */
static void count_one(struct run *run, uint64_t *taken, uint64_t *decoded) {
    const struct decode_limits limits = test_decode_limits();
    const struct delivery message = {.position = {.topic = "jobs"}, .payload = run->jobs[0]};
    struct job *job = job_create(delivery_create(&message));
    struct error err;
    assert_non_null(job);
    assert_int_equal(decode_job(job, &limits, &err), ERR_OK);
    *taken = job->delivery->held_bytes;
    *decoded = *taken + PLAN_RESULT_OVERHEAD_BYTES + job->arena.reserved + job->outputs[0].bytes;
    job_destroy(job);
}

/* Jobs of one size, of which each is answered late. */
static void run_some(struct run *run, bool has_results_room) {
    uint64_t taken, decoded;
    for (int k = 0; k < 8; k++) run_add_saxpy(run, k);
    count_one(run, &taken, &decoded);
    run->settings.limits.bytes_in_flight = has_results_room ? decoded : taken;
    run->broker.settle_ns = COMMIT_MS * 1000000ull;
    run_execute_ok(run);
}

TEST(no_message_is_taken_behind_one_that_fills_the_room_for_bytes) {
    struct run *run = *state;
    run_some(run, false);
    assert_int_equal(run->broker.open_max, 1);
}

TEST(no_message_is_taken_while_a_job_with_its_result_fills_the_room_for_bytes) {
    struct run *run = *state;
    run->broker.comes_singly = true;
    run_some(run, true);
    assert_int_equal(run->broker.open_max, 1);
}

RUN_TESTS(FLOW(no_message_is_taken_behind_one_that_fills_the_room_for_bytes),
    FLOW(no_message_is_taken_while_a_job_with_its_result_fills_the_room_for_bytes),
    FLOW(no_more_is_taken_than_there_is_room_for_when_all_in_flight_were_suspects),
    FLOW(no_more_is_taken_than_there_is_room_for_among_many_suspects),
    FLOW(no_more_is_taken_than_there_is_room_for_where_all_are_suspects))
