/* Who waits for whom while messages are suspects: the intake's side of it, without a worker. */
#include "base/clock.h"
#include "quarantine/culprits.h"
#include "quarantine/turns.h"
#include "support/wait.h"
#include "suspects_rig.h"
#include "testing.h"

static struct position at(int64_t offset) {
    return (struct position){.topic = "jobs", .offset = offset};
}

/* The life ends so, and another one begins. */
static void live_again(struct suspects_rig *rig, bool is_lost) {
    suspects_stop(rig->suspects, is_lost);
    state_rig_open_again(rig->file);
    rig->in_flight = 0;
    suspects_rig_start(rig);
}

/* An executor died with it in hand. */
static void make_suspect(struct suspects_rig *rig, int64_t offset) {
    const struct position position = at(offset);
    state_note_job(rig->file->state, 0, 0, 0, &position, 1);
    state_launch(rig->file->state, 0, 0, 1, 1, 0);
    live_again(rig, true);
}

/* The source brings it; NULL where it waits, or is dropped. */
static struct delivery *bring_of_key(struct suspects_rig *rig, int64_t offset, const char *key) {
    const struct delivery message = {
        .position = at(offset), .payload = slice_of_text("hello"), .key = slice_of_text(key)};
    struct delivery *delivery = delivery_create(&message);
    assert_non_null(delivery);
    rig->in_flight++;
    return suspects_pass(rig->suspects, delivery) ? delivery : NULL;
}

static struct delivery *bring(struct suspects_rig *rig, int64_t offset) {
    return bring_of_key(rig, offset, "");
}

static void expect_next(struct suspects_rig *rig, int64_t offset, bool is_suspect) {
    assert_true(suspects_can_take(rig->suspects));
    struct delivery *delivery = suspects_take(rig->suspects);
    assert_non_null(delivery);
    assert_int_equal(delivery->position.offset, offset);
    assert_int_equal(delivery->is_suspect, is_suspect);
    delivery_destroy(delivery);
}

static void expect_nobody(struct suspects_rig *rig) {
    assert_false(suspects_can_take(rig->suspects));
    assert_null(suspects_take(rig->suspects));
}

static enum state_standing standing_of(struct suspects_rig *rig, int64_t offset) {
    size_t capacity;
    const struct state_suspect *all = state_suspects(rig->file->state, &capacity);
    for (size_t i = 0; i < capacity; i++)
        if (all[i].standing != STATE_FREE && all[i].at.offset == offset) return all[i].standing;
    return STATE_FREE;
}

TEST(where_nothing_is_known_nobody_waits) {
    struct suspects_rig *rig = *state;
    struct delivery *delivery = bring(rig, 1);
    assert_non_null(delivery);
    delivery_destroy(delivery);
    assert_false(suspects_are_known(rig->suspects));
    assert_false(suspects_are_waiting(rig->suspects));
}

TEST(a_suspect_waits_for_all_before_it_and_all_behind_it_for_the_suspect) {
    struct suspects_rig *rig = *state;
    make_suspect(rig, 7);
    struct delivery *before = bring(rig, 6);
    assert_non_null(before);
    assert_null(bring(rig, 7));
    assert_null(bring(rig, 8));
    expect_nobody(rig);
    delivery_destroy(before);
    rig->in_flight--;
    expect_next(rig, 7, true);
    expect_nobody(rig);
    suspects_answered(rig->suspects);
    suspects_published(rig->suspects, 1);
    rig->in_flight--;
    expect_next(rig, 8, false);
    assert_int_equal(standing_of(rig, 7), STATE_FREE);
}

/* Offsets 7 and 8 are suspects, and both wait. */
static void bring_two(struct suspects_rig *rig) {
    const struct position second = at(8);
    size_t capacity;
    make_suspect(rig, 7);
    suspects_stop(rig->suspects, false);
    struct state_suspect *all = state_suspects(rig->file->state, &capacity);
    assert_int_equal(all[1].standing, STATE_FREE);
    assert_true(state_entry_of(rig->file->state, &second, 1, &all[1].at));
    all[1].standing = STATE_SUSPECT;
    suspects_rig_start(rig);
    assert_null(bring(rig, 7));
    assert_null(bring(rig, 8));
}

TEST(one_that_is_answered_holds_no_other_suspect_back) {
    for (int is_published = 0; is_published < 2; is_published++) {
        struct suspects_rig *rig = *state;
        bring_two(rig);
        expect_next(rig, 7, true);
        expect_nobody(rig);
        suspects_answered(rig->suspects);
        if (is_published) suspects_published(rig->suspects, 1);
        rig->in_flight -= (uint64_t)is_published;
        expect_next(rig, 8, true);
        suspects_answered(rig->suspects);
        live_again(rig, false);
    }
}

TEST(one_that_is_handed_back_is_a_suspect_still) {
    struct suspects_rig *rig = *state;
    make_suspect(rig, 7);
    assert_null(bring(rig, 7));
    assert_null(bring(rig, 8));
    expect_next(rig, 7, true);
    suspects_handed_back(rig->suspects);
    rig->in_flight--;
    assert_int_equal(standing_of(rig, 7), STATE_SUSPECT);
    expect_next(rig, 8, false);
}

TEST(what_waits_is_dropped_in_order_and_counted_by_who_counts) {
    struct suspects_rig *rig = *state;
    make_suspect(rig, 7);
    assert_null(bring(rig, 7));
    assert_null(bring(rig, 8));
    suspects_drop_waiting(rig->suspects);
    assert_int_equal(rig->dropped, 2);
    assert_int_equal(rig->dropped_offsets[0], 7);
    assert_int_equal(rig->dropped_offsets[1], 8);
    assert_int_equal(rig->in_flight, 0);
    assert_false(suspects_are_waiting(rig->suspects));
    suspects_drop_waiting(rig->suspects);
    assert_int_equal(rig->dropped, 2);
}

TEST(one_that_there_is_no_memory_to_keep_does_not_wait) {
    struct suspects_rig *rig = *state;
    make_suspect(rig, 7);
    rig->has_no_memory = true;
    assert_null(bring(rig, 7));
    assert_false(suspects_are_waiting(rig->suspects));
}

TEST(only_a_lost_device_leaves_who_ran_alone_to_be_judged) {
    struct suspects_rig *rig = *state;
    make_suspect(rig, 7);
    for (int is_lost = 0; is_lost < 2; is_lost++) {
        const struct delivery decoded = {.position = at(7), .is_suspect = true};
        assert_null(bring(rig, 7));
        expect_next(rig, 7, true);
        assert_int_equal(standing_of(rig, 7), STATE_DECODING_ALONE);
        suspects_decoded(rig->suspects, &decoded);
        assert_int_equal(standing_of(rig, 7), STATE_ALONE);
        const struct state_death death = {
            .kind = STATE_DEATH_STICKY, .code = ERR_GPU_FAULT, .message = "lost"};
        if (is_lost) state_record_death(rig->file->state, &death);
        live_again(rig, is_lost);
        assert_int_equal(standing_of(rig, 7), is_lost ? STATE_CONVICTED : STATE_SUSPECT);
    }
    struct error err;
    const struct position position = at(7);
    assert_int_equal(suspects_verdict(rig->suspects, &position, &err), VERDICT_GUILTY);
    assert_int_equal(err.code, ERR_GPU_FAULT);
    assert_true(suspects_count_conviction(rig->suspects, &position));
    assert_false(suspects_count_conviction(rig->suspects, &position)); /* it came again */
    live_again(rig, false);
    assert_false(suspects_count_conviction(rig->suspects, &position));
}

TEST(what_is_committed_is_forgotten_and_nothing_behind_it) {
    struct suspects_rig *rig = *state;
    make_suspect(rig, 7);
    suspects_on_committed(rig->suspects, "jobs", 0, 7);
    suspects_on_committed(rig->suspects, "others", 0, 9);
    suspects_on_committed(rig->suspects, "jobs", 1, 9);
    assert_int_equal(standing_of(rig, 7), STATE_SUSPECT);
    suspects_on_committed(rig->suspects, "jobs", 0, 8);
    assert_int_equal(standing_of(rig, 7), STATE_FREE);
}

/* The array runs, and one culprit is found. */
static struct state_search *answer_in_part(struct suspects_rig *rig, int64_t offset) {
    const struct position position = at(offset);
    assert_null(bring(rig, offset));
    expect_next(rig, offset, true);
    struct state_search *search = culprits_search(rig->file->state, &position, 64, 8);
    assert_non_null(search);
    search->culprits[search->culprit_count++] = (struct state_culprit){.code = ERR_GPU_HANG};
    suspects_answered(rig->suspects);
    suspects_published(rig->suspects, 1);
    return search;
}

TEST(culprits_are_known_until_the_answer_is_committed) {
    struct suspects_rig *rig = *state;
    make_suspect(rig, 7);
    (void)answer_in_part(rig, 7);
    live_again(rig, true); /* of something else */
    assert_int_equal(standing_of(rig, 7), STATE_SUSPECT);
    const struct position position = at(7);
    const struct state_search *known = culprits_search(rig->file->state, &position, 64, 8);
    assert_non_null(known);
    assert_int_equal(known->culprit_count, 1);
    suspects_on_committed(rig->suspects, "jobs", 0, 8);
    assert_int_equal(standing_of(rig, 7), STATE_FREE);
    assert_int_equal(known->use, STATE_SEARCH_FREE);
}

TEST(what_is_known_of_an_answered_array_takes_no_place_from_one_that_is_searched) {
    struct suspects_rig *rig = *state;
    make_suspect(rig, 7);
    const struct state_search *answered = answer_in_part(rig, 7);
    for (int64_t offset = 8; offset < 8 + STATE_SEARCHES_MAX - 1; offset++) {
        const struct position other = at(offset);
        const struct state_search *search = culprits_search(rig->file->state, &other, 64, 8);
        assert_non_null(search);
        assert_ptr_not_equal(search, answered);
    }
    const struct position last = at(100), none = at(101);
    assert_ptr_equal(culprits_search(rig->file->state, &last, 64, 8), answered);
    assert_int_equal(answered->culprit_count, 0);
    assert_null(culprits_search(rig->file->state, &none, 64, 8));
}

/* ---- who gives way ---- */

/* The executor died of it, after it had run alone for so long; it may be that of an array. */
static void die_alone_after(
    struct suspects_rig *rig, int64_t offset, const char *key, uint64_t ms) {
    const struct delivery decoded = {.position = at(offset), .is_suspect = true};
    size_t capacity;
    assert_null(bring_of_key(rig, offset, key));
    WAIT_FOR(suspects_can_take(rig->suspects), ==, true);
    expect_next(rig, offset, true);
    suspects_decoded(rig->suspects, &decoded);
    state_suspects(rig->file->state, &capacity)[0].alone_ns = clock_ns() - ms * 1000000;
    const struct position position = at(offset);
    struct state_search *search = culprits_search(rig->file->state, &position, 100, 8);
    search->running = (struct state_range){.first = 0, .count = 100};
    const struct state_death death = {
        .kind = STATE_DEATH_HANG, .code = ERR_GPU_HANG, .message = "hung"};
    state_record_death(rig->file->state, &death);
    live_again(rig, true);
}

static void die_alone(struct suspects_rig *rig, int64_t offset) {
    die_alone_after(rig, offset, "", 10000);
}

TEST(after_a_death_others_go_on_until_the_suspect_has_its_turn) {
    struct suspects_rig *rig = *state;
    make_suspect(rig, 7);
    die_alone(rig, 7);
    assert_null(bring(rig, 7));
    expect_nobody(rig);
    for (int64_t offset = 8; offset < 12; offset++) {
        struct delivery *other = bring(rig, offset);
        assert_non_null(other);
        delivery_destroy(other);
    }
    assert_false(suspects_have_turn(rig->suspects));
    suspects_note_end(rig->suspects); /* nobody else comes, but for those in flight */
    assert_true(suspects_have_turn(rig->suspects));
    expect_nobody(rig);
    assert_null(bring(rig, 12));
    rig->in_flight -= 4;
    expect_next(rig, 7, true);
    suspects_answered(rig->suspects);
    rig->in_flight--;
    suspects_published(rig->suspects, 1);
    expect_next(rig, 12, false);
}

TEST(what_comes_of_a_key_that_ended_an_executor_waits_and_other_keys_do_not) {
    struct suspects_rig *rig = *state;
    make_suspect(rig, 7);
    die_alone(rig, 7);
    assert_null(bring_of_key(rig, 7, "hostile"));
    assert_null(bring_of_key(rig, 8, "hostile"));
    struct delivery *other = bring_of_key(rig, 9, "other");
    assert_non_null(other);
    delivery_destroy(other);
    rig->in_flight--;
    expect_nobody(rig);
    suspects_note_end(rig->suspects);
    expect_next(rig, 7, true);
}

TEST(each_death_of_a_search_counts_once_against_its_key) {
    struct suspects_rig *rig = *state;
    rig->rules = (struct suspension_rules){.convictions = 2, .window_ms = 60000, .for_ms = 60000};
    make_suspect(rig, 7);
    for (int death = 1; death <= 2; death++) {
        die_alone(rig, 7);
        for (int again = 0; again < 2; again++) {
            assert_null(bring_of_key(rig, 7, "hostile"));
            uint64_t until_ms =
                suspensions_key_until(rig->file->state, slice_of_text("hostile"), clock_unix_ms());
            assert_int_equal(until_ms != 0, death == 2);
        }
        live_again(rig, false);
    }
    /* it is answered in the next turn, though others come */
    assert_null(bring_of_key(rig, 7, "hostile"));
    expect_next(rig, 7, true);
}

TEST(where_jobs_of_a_key_run_in_order_those_behind_a_suspect_wait) {
    struct suspects_rig *rig = *state;
    rig->keeps_key_order = true;
    make_suspect(rig, 7);
    die_alone(rig, 7);
    assert_null(bring_of_key(rig, 7, "k"));
    struct delivery *other = bring_of_key(rig, 8, "l");
    assert_non_null(other);
    delivery_destroy(other);
    assert_null(bring_of_key(rig, 9, "k"));
    expect_nobody(rig);
}

TEST(where_jobs_of_a_key_run_in_order_no_suspect_passes_one_that_is_held) {
    struct suspects_rig *rig = *state;
    rig->keeps_key_order = true;
    rig->rules = (struct suspension_rules){.convictions = 9, .window_ms = 600000, .for_ms = 600000};
    make_suspect(rig, 7);
    make_suspect(rig, 8);
    for (int death = 0; death < 3; death++) die_alone_after(rig, 7, "k", 20);
    assert_null(bring_of_key(rig, 7, "k"));
    suspensions_hold(rig->file->state, slice_of_text("k"), 0);
    assert_null(bring_of_key(rig, 8, "k"));
    WAIT_FOR(suspects_can_take(rig->suspects), ==, true);
    expect_next(rig, 7, true);
}

TEST(suspects_that_run_well_give_way_as_well_in_the_end) {
    enum { MS = 1000000 };
    const uint64_t now = 1000000ull * MS;
    struct turns turns = turns_begin(0, now);
    assert_true(turns_have_come(&turns, 0, now));
    turns_end_step(&turns, now - 60 * MS, now);
    assert_true(turns_have_come(&turns, 0, now));
    turns_end_step(&turns, now - 60 * MS, now);
    assert_false(turns_have_come(&turns, 0, now + 239 * MS));
    assert_true(turns_have_come(&turns, 0, now + 240 * MS));
}

TEST(each_further_death_of_a_key_holds_it_for_longer_while_others_come) {
    const uint64_t s = 1000000000, now = 1000000 * s;
    struct turns turns = turns_begin(now - s, now);
    static const uint64_t held_s[] = {0, 2, 8, 32, 100, 100};
    for (uint32_t deaths = 0; deaths < 6; deaths++)
        assert_int_equal(turns_hold_ns(&turns, deaths), held_s[deaths] * s);
    turns.others_ns = now + 20 * s;
    assert_true(turns_hold(&turns, now + 32 * s, now + 20 * s));
    assert_false(turns_have_come(&turns, now + 32 * s, now + 20 * s));
    assert_true(turns_have_come(&turns, 0, now + 20 * s));
    assert_true(turns_have_come(&turns, now + 32 * s, now + 21 * s)); /* it is quiet */
    assert_false(turns_hold(&turns, now + 32 * s, now + 21 * s));
    /* a time of another boot */
    turns = turns_begin(now + s, now);
    turns.others_ns = now;
    assert_true(turns_have_come(&turns, now + 100000 * s, now));
}

#define Q(name) cmocka_unit_test_setup_teardown(name, suspects_rig_set_up, suspects_rig_tear_down)
RUN_TESTS(Q(where_nothing_is_known_nobody_waits),
    Q(a_suspect_waits_for_all_before_it_and_all_behind_it_for_the_suspect),
    Q(one_that_is_answered_holds_no_other_suspect_back),
    Q(one_that_is_handed_back_is_a_suspect_still),
    Q(what_waits_is_dropped_in_order_and_counted_by_who_counts),
    Q(one_that_there_is_no_memory_to_keep_does_not_wait),
    Q(only_a_lost_device_leaves_who_ran_alone_to_be_judged),
    Q(what_is_committed_is_forgotten_and_nothing_behind_it),
    Q(culprits_are_known_until_the_answer_is_committed),
    Q(what_is_known_of_an_answered_array_takes_no_place_from_one_that_is_searched),
    Q(after_a_death_others_go_on_until_the_suspect_has_its_turn),
    Q(what_comes_of_a_key_that_ended_an_executor_waits_and_other_keys_do_not),
    Q(each_death_of_a_search_counts_once_against_its_key),
    Q(where_jobs_of_a_key_run_in_order_those_behind_a_suspect_wait),
    Q(where_jobs_of_a_key_run_in_order_no_suspect_passes_one_that_is_held),
    cmocka_unit_test(suspects_that_run_well_give_way_as_well_in_the_end),
    cmocka_unit_test(each_further_death_of_a_key_holds_it_for_longer_while_others_come))
