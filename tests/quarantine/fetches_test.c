/* Which partitions are read, tried alone or set aside, as deaths come. */
#include "quarantine/fetches.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/state_rig.h"
#include "testing.h"

static const struct state_shape shape = {.lanes = 1, .depth = 1, .batch_jobs = 4};

/* The life before is over, however it ended. */
static void begin(struct state_rig *rig) {
    struct error err;
    state_rig_open_again(rig);
    fetches_judge(rig->state);
    assert_int_equal(state_begin(rig->state, &shape, 0, "", &err), ERR_OK);
}

static int set_up(void **state) {
    (void)state_rig_set_up(state);
    begin(*state);
    return 0;
}

static enum fetches_verdict ask(struct state_rig *rig, int32_t partition, int64_t offset) {
    return fetches_ask(rig->state, "jobs", partition, offset);
}

/* So many lives die after they began at the same place. */
static void make_suspect(struct state_rig *rig) {
    for (int i = 0; i < FETCHES_LIVES_MAX; i++) {
        assert_int_equal(ask(rig, 1, 7), FETCHES_READ);
        begin(rig);
    }
}

static void start_trial(struct state_rig *rig) {
    assert_int_equal(ask(rig, 1, 7), FETCHES_TRY);
    fetches_try(rig->state, "jobs", 1);
}

/* A life that memory runs out for while it reads partition 1 alone. */
static void die_in_trial(struct state_rig *rig) {
    const struct state_death crash = {.kind = STATE_DEATH_SIGNAL, .native = SIGABRT};
    start_trial(rig);
    state_record_death(rig->state, &crash);
    begin(rig);
}

static void set_aside(struct state_rig *rig) {
    make_suspect(rig);
    for (int i = 0; i < FETCHES_DEATHS_MAX; i++) die_in_trial(rig);
}

TEST(one_that_kills_while_it_is_read_alone_is_set_aside_and_others_are_read) {
    struct state_rig *rig = *state;
    set_aside(rig);
    assert_int_equal(fetches_count_aside(rig->state), 1);
    assert_int_equal(ask(rig, 1, 7), FETCHES_ASIDE);
    assert_int_equal(ask(rig, 0, 3), FETCHES_READ);
    begin(rig);
    assert_int_equal(ask(rig, 1, 7), FETCHES_ASIDE);
}

TEST(a_crash_counts_against_who_is_on_trial_and_against_nobody_else) {
    const struct state_death crash = {.kind = STATE_DEATH_SIGNAL, .native = SIGABRT};
    struct state_rig *rig = *state;
    make_suspect(rig);
    state_record_death(rig->state, &crash);
    assert_false(fetches_has_evidence(rig->state)); /* it waits for its trial */
    begin(rig);
    start_trial(rig);
    assert_false(fetches_has_evidence(rig->state)); /* it lives */
    state_record_death(rig->state, &crash);
    assert_true(fetches_has_evidence(rig->state));
}

TEST(who_moves_on_is_not_suspected) {
    struct state_rig *rig = *state;
    for (int64_t i = 0; i < 9; i++) {
        assert_int_equal(ask(rig, 1, 7 + i), FETCHES_READ);
        fetches_move(rig->state, "jobs", 1, 8 + i);
        begin(rig);
    }
}

TEST(kills_from_outside_are_no_evidence_and_those_after_memory_grew_are) {
    struct state_rig *rig = *state;
    make_suspect(rig);
    for (int i = 0; i < 9; i++) {
        start_trial(rig);
        begin(rig);
        assert_int_equal(fetches_count_aside(rig->state), 0);
    }
    for (int i = 0; i < FETCHES_DEATHS_MAX; i++) {
        start_trial(rig);
        fetches_inflate(rig->state, "jobs", 1);
        begin(rig);
    }
    assert_int_equal(fetches_count_aside(rig->state), 1);
}

TEST(a_death_with_a_cause_suspects_no_partition) {
    struct state_rig *rig = *state;
    const struct state_death hang = {.kind = STATE_DEATH_HANG, .code = ERR_GPU_HANG};
    for (int i = 0; i < 9; i++) {
        assert_int_equal(ask(rig, 1, 7), FETCHES_READ);
        state_record_death(rig->state, &hang);
        begin(rig);
    }
}

TEST(a_crash_with_a_message_in_hand_suspects_no_partition_and_clears_none) {
    struct state_rig *rig = *state;
    const struct state_death crash = {.kind = STATE_DEATH_SIGNAL, .native = SIGSEGV};
    const struct position position = {.topic = "jobs", .partition = 1, .offset = 7};
    for (int i = 0; i < 9; i++) {
        assert_int_equal(ask(rig, 1, 7), FETCHES_READ);
        state_enter(rig->state, &position, 1);
        state_record_death(rig->state, &crash);
        begin(rig);
        if (i == 4) { /* one with nothing in hand, which counts */
            assert_int_equal(ask(rig, 1, 7), FETCHES_READ);
            begin(rig);
        }
    }
    assert_int_equal(ask(rig, 1, 7), FETCHES_READ);
    begin(rig);
    assert_int_equal(ask(rig, 1, 7), FETCHES_TRY);
}

TEST(a_life_that_ends_as_it_should_forgets_what_was_suspected) {
    struct state_rig *rig = *state;
    make_suspect(rig);
    die_in_trial(rig);
    state_end(rig->state);
    begin(rig);
    assert_int_equal(ask(rig, 1, 7), FETCHES_READ);
}

TEST(a_trial_that_was_passed_starts_the_count_anew) {
    struct state_rig *rig = *state;
    make_suspect(rig);
    for (int i = 0; i < 9; i++) {
        die_in_trial(rig);
        start_trial(rig);
        fetches_pass(rig->state, "jobs", 1);
        begin(rig);
        assert_int_equal(fetches_count_aside(rig->state), 0);
    }
}

TEST(one_that_is_set_aside_is_read_once_its_place_moves_or_it_is_lifted) {
    struct state_rig *rig = *state;
    set_aside(rig);
    state_end(rig->state); /* an orderly end changes nothing */
    begin(rig);
    assert_int_equal(ask(rig, 1, 7), FETCHES_ASIDE);
    assert_false(fetches_lift(rig->state, "jobs", 2));
    assert_true(fetches_lift(rig->state, "jobs", 1));
    set_aside(rig);
    assert_int_equal(ask(rig, 1, 7), FETCHES_ASIDE);
    assert_int_equal(ask(rig, 1, 8), FETCHES_READ);
    assert_int_equal(fetches_count_aside(rig->state), 0);
}

TEST(more_partitions_than_can_be_noted_are_read) {
    struct state_rig *rig = *state;
    for (int life = 0; life < FETCHES_LIVES_MAX; life++) {
        for (int32_t i = 0; i < FETCHES_MAX + 10; i++)
            assert_int_equal(ask(rig, i, 7), FETCHES_READ);
        begin(rig);
    }
    assert_int_equal(ask(rig, FETCHES_MAX - 1, 7), FETCHES_TRY);
    assert_int_equal(ask(rig, FETCHES_MAX, 7), FETCHES_READ);
    assert_int_equal(fetches_ask(NULL, "jobs", 0, 7), FETCHES_READ);
}

#define F(name) cmocka_unit_test_setup_teardown(name, set_up, state_rig_tear_down)
RUN_TESTS(F(one_that_kills_while_it_is_read_alone_is_set_aside_and_others_are_read),
    F(a_crash_counts_against_who_is_on_trial_and_against_nobody_else),
    F(who_moves_on_is_not_suspected),
    F(kills_from_outside_are_no_evidence_and_those_after_memory_grew_are),
    F(a_death_with_a_cause_suspects_no_partition),
    F(a_crash_with_a_message_in_hand_suspects_no_partition_and_clears_none),
    F(a_life_that_ends_as_it_should_forgets_what_was_suspected),
    F(a_trial_that_was_passed_starts_the_count_anew),
    F(one_that_is_set_aside_is_read_once_its_place_moves_or_it_is_lifted),
    F(more_partitions_than_can_be_noted_are_read))
