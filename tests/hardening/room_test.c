/* limits.jobs_in_flight holds while suspects run alone and others wait behind them. */
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

RUN_TESTS(FLOW(no_more_is_taken_than_there_is_room_for_when_all_in_flight_were_suspects),
    FLOW(no_more_is_taken_than_there_is_room_for_among_many_suspects),
    FLOW(no_more_is_taken_than_there_is_room_for_where_all_are_suspects))
