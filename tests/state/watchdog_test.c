/* Whose time runs while several batches are on the device. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "state/state.h"
#include "support/scratch.h"
#include "testing.h"

enum { LIMIT_NS = 1000 };

static const struct state_shape shape = {.lanes = 2, .depth = 2, .batch_jobs = 4};

struct fixture {
    char *folder;
    struct state *state;
    struct state_waits waits;
    struct state_overdue overdue;
};

static int set_up(void **state) {
    struct error set_aside, err;
    char path[256];
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    fixture->folder = scratch_create();
    snprintf(path, sizeof path, "%s/state", fixture->folder);
    assert_int_equal(state_open(path, 0, &fixture->state, &set_aside, &err), ERR_OK);
    assert_int_equal(state_begin(fixture->state, &shape, 0, "", &err), ERR_OK);
    *state = fixture;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *fixture = *state;
    state_close(fixture->state);
    scratch_remove(fixture->folder);
    free(fixture);
    return 0;
}

/* Returns a time after the launch, at which the next one is later. */
static uint64_t launch(struct fixture *fixture, uint32_t lane, uint64_t id, uint64_t limit_ns) {
    state_launch(fixture->state, lane, 0, 1, id, limit_ns);
    uint64_t launched_ns = clock_ns(), now_ns;
    while ((now_ns = clock_ns()) == launched_ns) {
    }
    return now_ns;
}

static bool is_overdue(struct fixture *fixture, uint64_t now_ns) {
    return state_find_overdue(fixture->state, now_ns, &fixture->waits, &fixture->overdue);
}

TEST(time_behind_a_batch_of_another_lane_does_not_count) {
    struct fixture *fixture = *state;
    uint64_t hour_ns = 3600000000000u;
    (void)launch(fixture, 0, 1, 2 * hour_ns);
    uint64_t begun_ns = launch(fixture, 1, 2, LIMIT_NS);
    assert_false(is_overdue(fixture, begun_ns + hour_ns));
    state_fence(fixture->state, 0, 0);
    assert_false(is_overdue(fixture, begun_ns + hour_ns + LIMIT_NS));
    assert_true(is_overdue(fixture, begun_ns + hour_ns + LIMIT_NS + 1));
    assert_int_equal(fixture->overdue.batch, 2);
    assert_int_equal(fixture->overdue.overdue_ns, 1);
}

TEST(what_was_launched_later_delays_nobody) {
    struct fixture *fixture = *state;
    uint64_t begun_ns = launch(fixture, 0, 1, LIMIT_NS);
    (void)launch(fixture, 1, 2, UINT64_MAX);
    assert_true(is_overdue(fixture, begun_ns + LIMIT_NS + 1));
    assert_int_equal(fixture->overdue.batch, 1);
}

TEST(the_batch_that_all_wait_behind_is_found_itself) {
    struct fixture *fixture = *state;
    (void)launch(fixture, 0, 1, LIMIT_NS);
    uint64_t begun_ns = launch(fixture, 1, 2, LIMIT_NS);
    assert_true(is_overdue(fixture, begun_ns + LIMIT_NS));
    assert_int_equal(fixture->overdue.batch, 1);
}

TEST(the_next_batch_of_a_lane_has_waited_for_nobody_yet) {
    struct fixture *fixture = *state;
    uint64_t hour_ns = 3600000000000u;
    (void)launch(fixture, 0, 1, 2 * hour_ns);
    uint64_t begun_ns = launch(fixture, 1, 2, LIMIT_NS);
    assert_false(is_overdue(fixture, begun_ns + hour_ns)); /* a look far ahead of the clock */
    state_fence(fixture->state, 0, 0);
    state_fence(fixture->state, 1, 0);
    begun_ns = launch(fixture, 1, 3, LIMIT_NS);
    assert_true(is_overdue(fixture, begun_ns + LIMIT_NS + 1));
    assert_int_equal(fixture->overdue.batch, 3);
}

#define F(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
RUN_TESTS(F(time_behind_a_batch_of_another_lane_does_not_count),
    F(what_was_launched_later_delays_nobody), F(the_batch_that_all_wait_behind_is_found_itself),
    F(the_next_batch_of_a_lane_has_waited_for_nobody_yet))
