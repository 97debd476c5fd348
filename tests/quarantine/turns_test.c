/* Who waits for whom while messages are suspects: the intake's side of it, without a worker. */
#include <stdlib.h>

#include "base/log.h"
#include "quarantine/suspects.h"
#include "support/state_rig.h"
#include "testing.h"

enum { OFFSETS_MAX = 16 };

struct fixture {
    struct state_rig *rig;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t in_flight;
    bool has_no_memory;
    size_t dropped;
    int64_t dropped_offsets[OFFSETS_MAX];
    struct suspects *suspects;
};

static struct position at(int64_t offset) {
    return (struct position){.topic = "jobs", .offset = offset};
}

static bool keep(void *context, struct delivery *delivery) {
    struct fixture *fixture = context;
    if (!fixture->has_no_memory) return delivery_keep(delivery);
    delivery_destroy(delivery);
    return false;
}

static void drop(void *context, struct delivery *delivery) {
    struct fixture *fixture = context;
    assert_int_equal(pthread_mutex_trylock(&fixture->lock), 0); /* it is not held */
    fixture->in_flight--;
    pthread_mutex_unlock(&fixture->lock);
    fixture->dropped_offsets[fixture->dropped++] = delivery->position.offset;
    delivery_destroy(delivery);
}

static void start(struct fixture *fixture) {
    struct error err;
    const struct suspects_options options = {.state = fixture->rig->state,
        .shape = {.lanes = 1, .depth = 1, .batch_jobs = 4},
        .uuid = "",
        .lock = &fixture->lock,
        .changed = &fixture->changed,
        .in_flight = &fixture->in_flight,
        .keep = keep,
        .drop = drop,
        .context = fixture};
    assert_int_equal(suspects_start(&options, &fixture->suspects, &err), ERR_OK);
}

/* The life ends so, and another one begins. */
static void live_again(struct fixture *fixture, bool is_lost) {
    suspects_stop(fixture->suspects, is_lost);
    state_rig_open_again(fixture->rig);
    fixture->in_flight = 0;
    start(fixture);
}

static int set_up(void **state) {
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    log_init(LOG_OFF, LOG_TEXT);
    (void)state_rig_set_up((void **)&fixture->rig);
    pthread_mutex_init(&fixture->lock, NULL);
    pthread_cond_init(&fixture->changed, NULL);
    start(fixture);
    *state = fixture;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *fixture = *state;
    suspects_stop(fixture->suspects, false);
    (void)state_rig_tear_down((void **)&fixture->rig);
    pthread_mutex_destroy(&fixture->lock);
    pthread_cond_destroy(&fixture->changed);
    free(fixture);
    return 0;
}

/* An executor died with it in hand. */
static void make_suspect(struct fixture *fixture, int64_t offset) {
    const struct position position = at(offset);
    state_note_job(fixture->rig->state, 0, 0, 0, &position, 1);
    state_launch(fixture->rig->state, 0, 0, 1, 1, 0);
    live_again(fixture, true);
}

/* The source brings it; NULL where it waits, or is dropped. */
static struct delivery *bring(struct fixture *fixture, int64_t offset) {
    const struct delivery message = {.position = at(offset), .payload = slice_of_text("hello")};
    struct delivery *delivery = delivery_create(&message);
    assert_non_null(delivery);
    fixture->in_flight++;
    return suspects_pass(fixture->suspects, delivery) ? delivery : NULL;
}

static void expect_next(struct fixture *fixture, int64_t offset, bool is_suspect) {
    assert_true(suspects_can_take(fixture->suspects));
    struct delivery *delivery = suspects_take(fixture->suspects);
    assert_non_null(delivery);
    assert_int_equal(delivery->position.offset, offset);
    assert_int_equal(delivery->is_suspect, is_suspect);
    delivery_destroy(delivery);
}

static void expect_nobody(struct fixture *fixture) {
    assert_false(suspects_can_take(fixture->suspects));
    assert_null(suspects_take(fixture->suspects));
}

static enum state_standing standing_of(struct fixture *fixture, int64_t offset) {
    size_t capacity;
    const struct state_suspect *all = state_suspects(fixture->rig->state, &capacity);
    for (size_t i = 0; i < capacity; i++)
        if (all[i].standing != STATE_FREE && all[i].at.offset == offset) return all[i].standing;
    return STATE_FREE;
}

TEST(where_nothing_is_known_nobody_waits) {
    struct fixture *fixture = *state;
    struct delivery *delivery = bring(fixture, 1);
    assert_non_null(delivery);
    delivery_destroy(delivery);
    assert_false(suspects_are_known(fixture->suspects));
    assert_false(suspects_are_waiting(fixture->suspects));
}

TEST(a_suspect_waits_for_all_before_it_and_all_behind_it_for_the_suspect) {
    struct fixture *fixture = *state;
    make_suspect(fixture, 7);
    struct delivery *before = bring(fixture, 6);
    assert_non_null(before);
    assert_null(bring(fixture, 7));
    assert_null(bring(fixture, 8));
    expect_nobody(fixture);
    delivery_destroy(before);
    fixture->in_flight--;
    expect_next(fixture, 7, true);
    expect_nobody(fixture);
    suspects_answered(fixture->suspects);
    suspects_published(fixture->suspects, 1);
    fixture->in_flight--;
    expect_next(fixture, 8, false);
    assert_int_equal(standing_of(fixture, 7), STATE_FREE);
}

/* Offsets 7 and 8 are suspects, and both wait. */
static void bring_two(struct fixture *fixture) {
    const struct position second = at(8);
    size_t capacity;
    make_suspect(fixture, 7);
    suspects_stop(fixture->suspects, false);
    struct state_suspect *all = state_suspects(fixture->rig->state, &capacity);
    assert_int_equal(all[1].standing, STATE_FREE);
    assert_true(state_entry_of(fixture->rig->state, &second, 1, &all[1].at));
    all[1].standing = STATE_SUSPECT;
    start(fixture);
    assert_null(bring(fixture, 7));
    assert_null(bring(fixture, 8));
}

TEST(one_that_is_answered_holds_no_other_suspect_back) {
    for (int is_published = 0; is_published < 2; is_published++) {
        struct fixture *fixture = *state;
        bring_two(fixture);
        expect_next(fixture, 7, true);
        expect_nobody(fixture);
        suspects_answered(fixture->suspects);
        if (is_published) suspects_published(fixture->suspects, 1);
        fixture->in_flight -= (uint64_t)is_published;
        expect_next(fixture, 8, true);
        suspects_answered(fixture->suspects);
        live_again(fixture, false);
    }
}

TEST(one_that_is_handed_back_is_a_suspect_still) {
    struct fixture *fixture = *state;
    make_suspect(fixture, 7);
    assert_null(bring(fixture, 7));
    assert_null(bring(fixture, 8));
    expect_next(fixture, 7, true);
    suspects_handed_back(fixture->suspects);
    fixture->in_flight--;
    assert_int_equal(standing_of(fixture, 7), STATE_SUSPECT);
    expect_next(fixture, 8, false);
}

TEST(what_waits_is_dropped_in_order_and_counted_by_who_counts) {
    struct fixture *fixture = *state;
    make_suspect(fixture, 7);
    assert_null(bring(fixture, 7));
    assert_null(bring(fixture, 8));
    suspects_drop_waiting(fixture->suspects);
    assert_int_equal(fixture->dropped, 2);
    assert_int_equal(fixture->dropped_offsets[0], 7);
    assert_int_equal(fixture->dropped_offsets[1], 8);
    assert_int_equal(fixture->in_flight, 0);
    assert_false(suspects_are_waiting(fixture->suspects));
    suspects_drop_waiting(fixture->suspects);
    assert_int_equal(fixture->dropped, 2);
}

TEST(one_that_there_is_no_memory_to_keep_does_not_wait) {
    struct fixture *fixture = *state;
    make_suspect(fixture, 7);
    fixture->has_no_memory = true;
    assert_null(bring(fixture, 7));
    assert_false(suspects_are_waiting(fixture->suspects));
}

TEST(only_a_lost_device_leaves_who_ran_alone_to_be_judged) {
    struct fixture *fixture = *state;
    make_suspect(fixture, 7);
    for (int is_lost = 0; is_lost < 2; is_lost++) {
        const struct delivery decoded = {.position = at(7), .is_suspect = true};
        assert_null(bring(fixture, 7));
        expect_next(fixture, 7, true);
        assert_int_equal(standing_of(fixture, 7), STATE_DECODING_ALONE);
        suspects_decoded(fixture->suspects, &decoded);
        assert_int_equal(standing_of(fixture, 7), STATE_ALONE);
        const struct state_death death = {
            .kind = STATE_DEATH_STICKY, .code = ERR_GPU_FAULT, .message = "lost"};
        if (is_lost) state_record_death(fixture->rig->state, &death);
        live_again(fixture, is_lost);
        assert_int_equal(standing_of(fixture, 7), is_lost ? STATE_CONVICTED : STATE_SUSPECT);
    }
    struct error err;
    const struct position position = at(7);
    assert_int_equal(suspects_verdict(fixture->suspects, &position, &err), VERDICT_GUILTY);
    assert_int_equal(err.code, ERR_GPU_FAULT);
    assert_true(suspects_count_conviction(fixture->suspects, &position));
    assert_false(suspects_count_conviction(fixture->suspects, &position)); /* it came again */
    live_again(fixture, false);
    assert_false(suspects_count_conviction(fixture->suspects, &position));
}

TEST(what_is_committed_is_forgotten_and_nothing_behind_it) {
    struct fixture *fixture = *state;
    make_suspect(fixture, 7);
    suspects_on_committed(fixture->suspects, "jobs", 0, 7);
    suspects_on_committed(fixture->suspects, "others", 0, 9);
    suspects_on_committed(fixture->suspects, "jobs", 1, 9);
    assert_int_equal(standing_of(fixture, 7), STATE_SUSPECT);
    suspects_on_committed(fixture->suspects, "jobs", 0, 8);
    assert_int_equal(standing_of(fixture, 7), STATE_FREE);
}

#define Q(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
RUN_TESTS(Q(where_nothing_is_known_nobody_waits),
    Q(a_suspect_waits_for_all_before_it_and_all_behind_it_for_the_suspect),
    Q(one_that_is_answered_holds_no_other_suspect_back),
    Q(one_that_is_handed_back_is_a_suspect_still),
    Q(what_waits_is_dropped_in_order_and_counted_by_who_counts),
    Q(one_that_there_is_no_memory_to_keep_does_not_wait),
    Q(only_a_lost_device_leaves_who_ran_alone_to_be_judged),
    Q(what_is_committed_is_forgotten_and_nothing_behind_it))
