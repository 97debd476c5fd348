/* What a death means for the messages that the dead executor had in hand. */
#include "quarantine/attribution.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/state_rig.h"
#include "testing.h"

static const struct state_shape shape = {.lanes = 3, .depth = 2, .batch_jobs = 4};

static void begin(struct state_rig *rig) {
    struct error err;
    assert_int_equal(state_begin(rig->state, &shape, 0, "", &err), ERR_OK);
}

static int set_up(void **state) {
    (void)state_rig_set_up(state);
    begin(*state);
    return 0;
}

static struct position at(int64_t offset) {
    return (struct position){.topic = "jobs", .partition = 1, .offset = offset};
}

/* Two jobs of one batch are on the device. */
static void launch(struct state_rig *rig, uint32_t lane, int64_t first) {
    for (uint32_t i = 0; i < 2; i++) {
        struct position position = at(first + i);
        state_note_job(rig->state, lane, 0, i, &position, 1);
    }
    state_launch(rig->state, lane, 0, 2, 1, 0);
}

static struct attribution die_and_attribute(struct state_rig *rig) {
    state_rig_open_again(rig);
    return attribution_apply(rig->state);
}

static struct state_suspect *find(struct state_rig *rig, int64_t offset) {
    size_t capacity;
    struct state_suspect *suspects = state_suspects(rig->state, &capacity), *found = NULL;
    for (size_t i = 0; i < capacity; i++) {
        if (suspects[i].standing == STATE_FREE || suspects[i].at.offset != offset) continue;
        assert_null(found);
        found = &suspects[i];
    }
    return found;
}

/* A new life in which the suspect at `offset` runs alone. */
static void run_alone(struct state_rig *rig, int64_t offset, enum state_standing how) {
    begin(rig);
    find(rig, offset)->standing = how;
    struct position position = at(offset);
    state_note_job(rig->state, 2, 0, 0, &position, 1);
    state_launch(rig->state, 2, 0, 1, 1, 0);
}

static const struct state_death sticky = {.kind = STATE_DEATH_STICKY,
    .code = ERR_GPU_ILLEGAL_ADDRESS,
    .native = 700,
    .message = "cuEventQuery: an illegal address"};
static const struct state_death ecc = {
    .kind = STATE_DEATH_STICKY, .code = ERR_GPU_FAULT, .native = 214, .message = "ECC"};
static const struct state_death hang = {
    .kind = STATE_DEATH_HANG, .code = ERR_GPU_HANG, .message = "over its limit"};
static const struct state_death crash = {
    .kind = STATE_DEATH_SIGNAL, .native = SIGSEGV, .message = "SIGSEGV"};

TEST(whoever_is_in_hand_at_a_death_is_suspect_and_nobody_is_convicted) {
    struct state_rig *rig = *state;
    launch(rig, 0, 10);
    launch(rig, 1, 20);
    struct position decoded = at(30);
    state_enter(rig->state, &decoded, 1);
    state_record_death(rig->state, &sticky);
    struct attribution attribution = die_and_attribute(rig);
    assert_int_equal(attribution.suspects, 5);
    assert_null(attribution.convicted);
    assert_int_equal(attribution.overlooked, 0);
    assert_int_equal(attribution.death.code, ERR_GPU_ILLEGAL_ADDRESS);
    for (size_t i = 0; i < 5; i++) {
        static const int64_t offsets[] = {10, 11, 20, 21, 30};
        assert_non_null(find(rig, offsets[i]));
        assert_int_equal(find(rig, offsets[i])->standing, STATE_SUSPECT);
    }
}

/* Which of them has ended the executor is not known, so each death may move it on. */
TEST(of_a_long_job_it_is_known_in_which_rounds_it_may_have_ended_an_executor) {
    struct state_rig *rig = *state;
    static const uint64_t rounds[] = {500, 200, 700}, known[] = {500, 500, 700};
    for (size_t i = 0; i < 3; i++) {
        struct position position = at(10);
        state_note_job(rig->state, 0, 0, 0, &position, 1);
        state_note_rounds(rig->state, 0, 0, rounds[i]);
        state_launch(rig->state, 0, 0, 1, 1, 0);
        launch(rig, 1, 20);
        state_record_death(rig->state, &crash);
        (void)die_and_attribute(rig);
        assert_int_equal(find(rig, 10)->rounds, known[i]);
        assert_int_equal(find(rig, 20)->rounds, 0);
        begin(rig);
    }
}

TEST(who_was_fenced_is_no_suspect) {
    struct state_rig *rig = *state;
    launch(rig, 0, 10);
    state_fence(rig->state, 0, 0);
    state_record_death(rig->state, &sticky);
    assert_int_equal(die_and_attribute(rig).suspects, 0);
}

TEST(a_death_with_a_culprit_convicts_who_ran_alone_and_nobody_else) {
    struct state_rig *rig = *state;
    static const struct {
        const struct state_death *death;
        enum err code;
    } cases[] = {
        {&sticky, ERR_GPU_ILLEGAL_ADDRESS}, {&hang, ERR_GPU_HANG}, {&crash, ERR_WORKER_CRASH}};
    launch(rig, 0, 10);
    launch(rig, 1, 20);
    die_and_attribute(rig);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t offset = i < 2 ? 10 + (int64_t)i : 20;
        run_alone(rig, offset, STATE_ALONE);
        state_record_death(rig->state, cases[i].death);
        struct attribution attribution = die_and_attribute(rig);
        assert_ptr_equal(attribution.convicted, find(rig, offset));
        assert_int_equal(attribution.convicted->standing, STATE_CONVICTED);
        assert_int_equal(attribution.convicted->code, cases[i].code);
        assert_string_equal(attribution.convicted->message, cases[i].death->message);
        assert_int_equal(attribution.suspects, 3 - i);
    }
}

TEST(who_killed_its_decoder_is_convicted_as_undecodable) {
    struct state_rig *rig = *state;
    struct position position = at(30);
    state_enter(rig->state, &position, 1);
    state_record_death(rig->state, &crash);
    die_and_attribute(rig);
    begin(rig);
    find(rig, 30)->standing = STATE_DECODING_ALONE;
    state_enter(rig->state, &position, 1);
    state_record_death(rig->state, &crash);
    struct attribution attribution = die_and_attribute(rig);
    assert_int_equal(attribution.convicted->standing, STATE_UNDECODABLE);
    assert_int_equal(attribution.convicted->code, ERR_WORKER_CRASH);
    assert_int_equal(attribution.suspects, 0);
}

static void die_alone(struct state_rig *rig, int64_t offset, const struct state_death *death) {
    assert_int_equal(find(rig, offset)->standing, STATE_SUSPECT);
    run_alone(rig, offset, STATE_ALONE);
    if (death != NULL) state_record_death(rig->state, death);
    die_and_attribute(rig);
}

TEST(deaths_that_nobody_explains_give_three_more_tries) {
    struct state_rig *rig = *state;
    launch(rig, 0, 10);
    die_and_attribute(rig);
    for (int i = 0; i <= ATTRIBUTION_TRIES_MAX; i++) die_alone(rig, 10, NULL);
    assert_int_equal(find(rig, 10)->standing, STATE_CONVICTED);
    assert_int_equal(find(rig, 10)->code, ERR_WORKER_CRASH);
    assert_int_equal(find(rig, 11)->standing, STATE_SUSPECT);
}

TEST(memory_errors_of_the_device_say_nothing_of_the_job) {
    struct state_rig *rig = *state;
    launch(rig, 0, 10);
    die_and_attribute(rig);
    for (int i = 0; i < 10; i++) die_alone(rig, 10, &ecc);
    assert_int_equal(find(rig, 10)->standing, STATE_SUSPECT);
}

TEST(verdicts_stay_and_are_not_changed_by_later_deaths) {
    struct state_rig *rig = *state;
    launch(rig, 0, 10);
    die_and_attribute(rig);
    run_alone(rig, 10, STATE_ALONE);
    state_record_death(rig->state, &sticky);
    die_and_attribute(rig);
    begin(rig);
    launch(rig, 1, 10); /* it must not be launched, and yet */
    state_record_death(rig->state, &hang);
    struct attribution attribution = die_and_attribute(rig);
    assert_null(attribution.convicted);
    assert_int_equal(find(rig, 10)->code, ERR_GPU_ILLEGAL_ADDRESS);
}

/* Convicted, and then `count` executors crash while they answer it. */
static enum state_standing crash_answers(struct state_rig *rig, int count) {
    const struct position position = at(10);
    launch(rig, 0, 10);
    die_and_attribute(rig);
    run_alone(rig, 10, STATE_ALONE);
    state_record_death(rig->state, &crash);
    die_and_attribute(rig);
    for (int i = 0; i < count; i++) {
        begin(rig);
        state_enter(rig->state, &position, 1);
        state_record_death(rig->state, &crash);
        assert_null(die_and_attribute(rig).convicted);
    }
    return find(rig, 10)->standing;
}

TEST(who_crashes_those_that_answer_its_verdict_gets_a_dead_letter_alone) {
    assert_int_equal(crash_answers(*state, ATTRIBUTION_TRIES_MAX), STATE_UNDECODABLE);
}

TEST(a_crash_beside_a_verdict_changes_nothing) {
    assert_int_equal(crash_answers(*state, ATTRIBUTION_TRIES_MAX - 1), STATE_CONVICTED);
}

TEST(two_that_ran_alone_are_nonsense_and_nobody_is_convicted) {
    struct state_rig *rig = *state;
    launch(rig, 0, 10);
    die_and_attribute(rig);
    run_alone(rig, 10, STATE_ALONE);
    find(rig, 11)->standing = STATE_ALONE;
    state_record_death(rig->state, &sticky);
    struct attribution attribution = die_and_attribute(rig);
    assert_null(attribution.convicted);
    assert_int_equal(attribution.suspects, 2);
}

TEST(what_the_table_has_no_room_for_is_counted) {
    struct state_rig *rig = *state;
    size_t capacity;
    struct state_suspect *suspects = state_suspects(rig->state, &capacity);
    for (size_t i = 0; i < capacity; i++) {
        struct position position = at(1000 + (int64_t)i);
        assert_true(state_entry_of(rig->state, &position, 1, &suspects[i].at));
        suspects[i].standing = STATE_SUSPECT;
    }
    launch(rig, 0, 10);
    struct attribution attribution = die_and_attribute(rig);
    assert_int_equal(attribution.suspects, capacity);
    assert_int_equal(attribution.overlooked, 2);
}

TEST(of_a_batch_that_hung_each_is_known_to_have_been_in_it_and_nobody_else) {
    struct state_rig *rig = *state;
    launch(rig, 0, 10);
    launch(rig, 1, 20);
    struct state_death death = hang;
    death.lane = 1;
    death.batch = 1;
    state_record_death(rig->state, &death);
    (void)die_and_attribute(rig);
    assert_int_equal(find(rig, 10)->hung_with, 0);
    assert_int_equal(find(rig, 20)->hung_with, 2);
    assert_int_equal(find(rig, 21)->hung_with, 2);
}

#define I(name) cmocka_unit_test_setup_teardown(name, set_up, state_rig_tear_down)
RUN_TESTS(I(whoever_is_in_hand_at_a_death_is_suspect_and_nobody_is_convicted),
    I(of_a_long_job_it_is_known_in_which_rounds_it_may_have_ended_an_executor),
    I(who_was_fenced_is_no_suspect),
    I(a_death_with_a_culprit_convicts_who_ran_alone_and_nobody_else),
    I(who_killed_its_decoder_is_convicted_as_undecodable),
    I(deaths_that_nobody_explains_give_three_more_tries),
    I(memory_errors_of_the_device_say_nothing_of_the_job),
    I(verdicts_stay_and_are_not_changed_by_later_deaths),
    I(who_crashes_those_that_answer_its_verdict_gets_a_dead_letter_alone),
    I(a_crash_beside_a_verdict_changes_nothing),
    I(two_that_ran_alone_are_nonsense_and_nobody_is_convicted),
    I(what_the_table_has_no_room_for_is_counted),
    I(of_a_batch_that_hung_each_is_known_to_have_been_in_it_and_nobody_else))
