/* Who waits for whom while messages are suspects: the intake's side of it, without a worker. */
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
static struct delivery *bring(struct suspects_rig *rig, int64_t offset) {
    const struct delivery message = {.position = at(offset), .payload = slice_of_text("hello")};
    struct delivery *delivery = delivery_create(&message);
    assert_non_null(delivery);
    rig->in_flight++;
    return suspects_pass(rig->suspects, delivery) ? delivery : NULL;
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

#define Q(name) cmocka_unit_test_setup_teardown(name, suspects_rig_set_up, suspects_rig_tear_down)
RUN_TESTS(Q(where_nothing_is_known_nobody_waits),
    Q(a_suspect_waits_for_all_before_it_and_all_behind_it_for_the_suspect),
    Q(one_that_is_answered_holds_no_other_suspect_back),
    Q(one_that_is_handed_back_is_a_suspect_still),
    Q(what_waits_is_dropped_in_order_and_counted_by_who_counts),
    Q(one_that_there_is_no_memory_to_keep_does_not_wait),
    Q(only_a_lost_device_leaves_who_ran_alone_to_be_judged),
    Q(what_is_committed_is_forgotten_and_nothing_behind_it))
