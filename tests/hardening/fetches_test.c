/* Which partitions are read, tried alone or set aside, as deaths come. */
#include "state/fetches.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/scratch.h"
#include "testing.h"

static const struct state_shape shape = {.lanes = 1, .depth = 1, .batch_jobs = 4};

struct fixture {
    char *folder;
    char path[256];
    struct state *state;
};

/* The life before is over, however it ended. */
static void begin(struct fixture *fixture) {
    struct error set_aside, err;
    state_close(fixture->state);
    assert_int_equal(state_open(fixture->path, 0, &fixture->state, &set_aside, &err), ERR_OK);
    assert_int_equal(set_aside.code, ERR_OK);
    fetches_judge(fixture->state);
    assert_int_equal(state_begin(fixture->state, &shape, 0, "", &err), ERR_OK);
}

static int set_up(void **state) {
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    fixture->folder = scratch_create();
    snprintf(fixture->path, sizeof fixture->path, "%s/state", fixture->folder);
    begin(fixture);
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

static enum fetches_verdict ask(struct fixture *fixture, int32_t partition, int64_t offset) {
    return fetches_ask(fixture->state, "jobs", partition, offset);
}

/* So many lives die after they began at the same place. */
static void make_suspect(struct fixture *fixture) {
    for (int i = 0; i < FETCHES_LIVES_MAX; i++) {
        assert_int_equal(ask(fixture, 1, 7), FETCHES_READ);
        begin(fixture);
    }
}

static void start_trial(struct fixture *fixture) {
    assert_int_equal(ask(fixture, 1, 7), FETCHES_TRY);
    fetches_try(fixture->state, "jobs", 1);
}

/* A life that memory runs out for while it reads partition 1 alone. */
static void die_in_trial(struct fixture *fixture) {
    const struct state_death crash = {.kind = STATE_DEATH_SIGNAL, .native = SIGABRT};
    start_trial(fixture);
    state_record_death(fixture->state, &crash);
    begin(fixture);
}

static void set_aside(struct fixture *fixture) {
    make_suspect(fixture);
    for (int i = 0; i < FETCHES_DEATHS_MAX; i++) die_in_trial(fixture);
}

TEST(one_that_kills_while_it_is_read_alone_is_set_aside_and_others_are_read) {
    struct fixture *fixture = *state;
    set_aside(fixture);
    assert_int_equal(fetches_count_aside(fixture->state), 1);
    assert_int_equal(ask(fixture, 1, 7), FETCHES_ASIDE);
    assert_int_equal(ask(fixture, 0, 3), FETCHES_READ);
    begin(fixture);
    assert_int_equal(ask(fixture, 1, 7), FETCHES_ASIDE);
}

TEST(who_moves_on_is_not_suspected) {
    struct fixture *fixture = *state;
    for (int64_t i = 0; i < 9; i++) {
        assert_int_equal(ask(fixture, 1, 7 + i), FETCHES_READ);
        fetches_move(fixture->state, "jobs", 1, 8 + i);
        begin(fixture);
    }
}

TEST(kills_from_outside_are_no_evidence_and_those_after_memory_grew_are) {
    struct fixture *fixture = *state;
    make_suspect(fixture);
    for (int i = 0; i < 9; i++) {
        start_trial(fixture);
        begin(fixture);
        assert_int_equal(fetches_count_aside(fixture->state), 0);
    }
    for (int i = 0; i < FETCHES_DEATHS_MAX; i++) {
        start_trial(fixture);
        fetches_inflate(fixture->state, "jobs", 1);
        begin(fixture);
    }
    assert_int_equal(fetches_count_aside(fixture->state), 1);
}

TEST(a_death_with_a_cause_suspects_no_partition) {
    struct fixture *fixture = *state;
    const struct state_death hang = {.kind = STATE_DEATH_HANG, .code = ERR_GPU_HANG};
    for (int i = 0; i < 9; i++) {
        assert_int_equal(ask(fixture, 1, 7), FETCHES_READ);
        state_record_death(fixture->state, &hang);
        begin(fixture);
    }
}

TEST(a_life_that_ends_as_it_should_forgets_what_was_suspected) {
    struct fixture *fixture = *state;
    make_suspect(fixture);
    die_in_trial(fixture);
    state_end(fixture->state);
    begin(fixture);
    assert_int_equal(ask(fixture, 1, 7), FETCHES_READ);
}

TEST(a_trial_that_was_passed_starts_the_count_anew) {
    struct fixture *fixture = *state;
    make_suspect(fixture);
    for (int i = 0; i < 9; i++) {
        die_in_trial(fixture);
        start_trial(fixture);
        fetches_pass(fixture->state, "jobs", 1);
        begin(fixture);
        assert_int_equal(fetches_count_aside(fixture->state), 0);
    }
}

TEST(one_that_is_set_aside_is_read_once_its_place_moves_or_it_is_lifted) {
    struct fixture *fixture = *state;
    set_aside(fixture);
    state_end(fixture->state); /* an orderly end changes nothing */
    begin(fixture);
    assert_int_equal(ask(fixture, 1, 7), FETCHES_ASIDE);
    assert_false(fetches_lift(fixture->state, "jobs", 2));
    assert_true(fetches_lift(fixture->state, "jobs", 1));
    set_aside(fixture);
    assert_int_equal(ask(fixture, 1, 7), FETCHES_ASIDE);
    assert_int_equal(ask(fixture, 1, 8), FETCHES_READ);
    assert_int_equal(fetches_count_aside(fixture->state), 0);
}

TEST(more_partitions_than_can_be_noted_are_read) {
    struct fixture *fixture = *state;
    for (int life = 0; life < FETCHES_LIVES_MAX; life++) {
        for (int32_t i = 0; i < FETCHES_MAX + 10; i++)
            assert_int_equal(ask(fixture, i, 7), FETCHES_READ);
        begin(fixture);
    }
    assert_int_equal(ask(fixture, FETCHES_MAX - 1, 7), FETCHES_TRY);
    assert_int_equal(ask(fixture, FETCHES_MAX, 7), FETCHES_READ);
    assert_int_equal(fetches_ask(NULL, "jobs", 0, 7), FETCHES_READ);
}

#define F(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
RUN_TESTS(F(one_that_kills_while_it_is_read_alone_is_set_aside_and_others_are_read),
    F(who_moves_on_is_not_suspected),
    F(kills_from_outside_are_no_evidence_and_those_after_memory_grew_are),
    F(a_death_with_a_cause_suspects_no_partition),
    F(a_life_that_ends_as_it_should_forgets_what_was_suspected),
    F(a_trial_that_was_passed_starts_the_count_anew),
    F(one_that_is_set_aside_is_read_once_its_place_moves_or_it_is_lifted),
    F(more_partitions_than_can_be_noted_are_read))
