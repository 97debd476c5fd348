#include "broker/offsets.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/tracking.h"
#include "testing.h"

TEST(nothing_is_due_before_the_first_message) {
    struct offsets *offsets = follow_one();
    struct offsets_commit commit;
    assert_int_equal(next_commit(offsets), OFFSET_UNKNOWN);
    assert_false(offsets_take_commit(offsets, "jobs", 0, &commit));
    offsets_destroy(offsets);
}

TEST(the_lowest_unfinished_offset_is_committed) {
    struct offsets *offsets = follow_one();
    struct position five = begin(offsets, 5), six = begin(offsets, 6), seven = begin(offsets, 7);
    assert_int_equal(next_commit(offsets), 5);
    finish(offsets, six);
    assert_int_equal(next_commit(offsets), 5);
    finish(offsets, five);
    assert_int_equal(next_commit(offsets), 7);
    finish(offsets, seven);
    assert_int_equal(next_commit(offsets), 8);
    assert_int_equal(unfinished(offsets), 0);
    offsets_destroy(offsets);
}

TEST(a_commit_is_due_once_and_again_after_it_failed) {
    struct offsets *offsets = follow_one();
    struct offsets_commit commit;
    struct position three = begin(offsets, 3);
    assert_true(offsets_take_commit(offsets, "jobs", 0, &commit));
    assert_int_equal(commit.offset, 3);
    assert_false(offsets_take_commit(offsets, "jobs", 0, &commit));
    finish(offsets, three);
    assert_true(offsets_take_commit(offsets, "jobs", 0, &commit));
    assert_int_equal(commit.offset, 4);
    assert_false(offsets_take_commit(offsets, "jobs", 0, &commit));
    offsets_commit_failed(offsets, "jobs", 0);
    assert_true(offsets_take_commit(offsets, "jobs", 0, &commit));
    assert_int_equal(commit.offset, 4);
    offsets_destroy(offsets);
}

TEST(offsets_that_never_begin_count_as_finished) {
    struct offsets *offsets = follow_one();
    struct position low = begin(offsets, 10), high = begin(offsets, 5000);
    finish(offsets, low);
    assert_int_equal(next_commit(offsets), 5000);
    finish(offsets, high);
    assert_int_equal(next_commit(offsets), 5001);
    struct position far = begin(offsets, 9000000000);
    assert_int_equal(next_commit(offsets), 9000000000);
    finish(offsets, far);
    assert_int_equal(next_commit(offsets), 9000000001);
    offsets_destroy(offsets);
}

TEST(the_end_of_a_partition_is_committed_once_nothing_is_unfinished) {
    struct offsets *offsets = follow_one();
    offsets_advance(offsets, "jobs", 0, 0);
    assert_int_equal(next_commit(offsets), 0);
    struct position four = begin(offsets, 4);
    offsets_advance(offsets, "jobs", 0, 7);
    assert_int_equal(next_commit(offsets), 4);
    finish(offsets, four);
    assert_int_equal(next_commit(offsets), 7);
    offsets_advance(offsets, "jobs", 0, 9);
    assert_int_equal(next_commit(offsets), 9);
    offsets_advance(offsets, "jobs", 0, 8);
    assert_int_equal(next_commit(offsets), 9);
    offsets_destroy(offsets);
}

TEST(nothing_begins_beyond_the_window) {
    struct offsets *offsets = follow_one();
    struct position position, first = begin(offsets, 100);
    int64_t last = 100 + OFFSETS_WINDOW - 1;
    assert_int_equal(offsets_ahead(offsets, "jobs", 0, last), OFFSETS_WINDOW - 1);
    struct position edge = begin(offsets, last);
    assert_false(offsets_begin(offsets, "jobs", 0, last + 1, 1, &position));
    assert_int_equal(unfinished(offsets), 2);
    finish(offsets, first);
    assert_int_equal(next_commit(offsets), last);
    begin(offsets, last + OFFSETS_WINDOW - 1);
    finish(offsets, edge);
    assert_int_equal(next_commit(offsets), last + OFFSETS_WINDOW - 1);
    offsets_destroy(offsets);
}

TEST(the_distance_is_measured_from_the_lowest_unfinished_offset) {
    struct offsets *offsets = follow_one();
    assert_int_equal(offsets_ahead(offsets, "jobs", 0, 1 << 30), 0);
    struct position first = begin(offsets, 10);
    assert_int_equal(offsets_ahead(offsets, "jobs", 0, 10), 0);
    assert_int_equal(offsets_ahead(offsets, "jobs", 0, 3), 0);
    assert_int_equal(offsets_ahead(offsets, "jobs", 0, 1 << 30), (1 << 30) - 10);
    finish(offsets, first);
    assert_int_equal(offsets_ahead(offsets, "jobs", 0, 1 << 30), 0);
    assert_int_equal(offsets_ahead(offsets, "other", 0, 1 << 30), 0);
    offsets_destroy(offsets);
}

TEST(a_second_finish_does_nothing) {
    struct offsets *offsets = follow_one();
    struct position one = begin(offsets, 1);
    struct position two = begin(offsets, 2);
    finish(offsets, two);
    finish(offsets, two);
    assert_int_equal(unfinished(offsets), 1);
    assert_int_equal(next_commit(offsets), 1);
    finish(offsets, one);
    finish(offsets, one);
    assert_int_equal(unfinished(offsets), 0);
    assert_int_equal(next_commit(offsets), 3);
    offsets_destroy(offsets);
}

TEST(finishing_an_earlier_lease_does_nothing) {
    struct offsets *offsets = follow_one();
    struct position before = begin(offsets, 5);
    offsets_revoke(offsets, "jobs", 0);
    finish(offsets, before);
    assert_false(offsets_get(offsets, "jobs", 0, &(struct offsets_state){0}));

    assign(offsets, "jobs", 0);
    assert_int_equal(next_commit(offsets), OFFSET_UNKNOWN);
    struct position again = begin(offsets, 5);
    finish(offsets, before);
    assert_int_equal(unfinished(offsets), 1);
    assert_int_equal(next_commit(offsets), 5);
    finish(offsets, again);
    assert_int_equal(next_commit(offsets), 6);
    offsets_destroy(offsets);
}

TEST(a_partition_that_is_not_followed_takes_nothing) {
    struct offsets *offsets = follow_one();
    struct position position = {.topic = "jobs", .lease = 0xffffffffffff};
    struct offsets_commit commit;
    assert_false(offsets_begin(offsets, "jobs", 1, 0, 1, &position));
    assert_false(offsets_begin(offsets, "other", 0, 0, 1, &position));
    assert_false(offsets_take_commit(offsets, "other", 0, &commit));
    finish(offsets, position);
    offsets_advance(offsets, "other", 0, 7);
    offsets_commit_failed(offsets, "other", 0);
    offsets_revoke(offsets, "other", 0);
    assert_int_equal(unfinished(offsets), 0);
    assert_int_equal(next_commit(offsets), OFFSET_UNKNOWN);
    offsets_destroy(offsets);
}

TEST(an_offset_that_no_log_has_does_not_begin) {
    struct offsets *offsets = follow_one();
    struct position position;
    assert_false(offsets_begin(offsets, "jobs", 0, -1, 1, &position));
    assert_false(offsets_begin(offsets, "jobs", 0, INT64_MIN, 1, &position));
    assert_false(offsets_begin(offsets, "jobs", 0, INT64_MAX, 1, &position));
    assert_false(offsets_begin(offsets, "jobs", 0, INT64_MAX - OFFSETS_WINDOW, 1, &position));
    begin(offsets, INT64_MAX - OFFSETS_WINDOW - 1);
    assert_int_equal(next_commit(offsets), INT64_MAX - OFFSETS_WINDOW - 1);
    offsets_destroy(offsets);
}

TEST(reading_again_from_an_earlier_offset_starts_over_there) {
    struct offsets *offsets = follow_one();
    struct position twenty = begin(offsets, 20);
    begin(offsets, 21);
    struct position again = begin(offsets, 20);
    assert_int_equal(unfinished(offsets), 1);
    finish(offsets, twenty);
    assert_int_equal(next_commit(offsets), 20);
    finish(offsets, again);
    assert_int_equal(next_commit(offsets), 21);
    begin(offsets, 3);
    assert_int_equal(next_commit(offsets), 3);
    offsets_destroy(offsets);
}

TEST(totals_name_what_holds_up_a_commit_longest) {
    struct offsets *offsets = follow_one();
    struct offsets_totals totals;
    struct position late, early;
    assign(offsets, "jobs", 1);
    assign(offsets, "other", 1);
    offsets_get_totals(offsets, &totals);
    assert_int_equal(totals.partition_count, 3);
    assert_int_equal(totals.unfinished_count, 0);

    assert_true(offsets_begin(offsets, "jobs", 1, 70, 2000, &late));
    assert_true(offsets_begin(offsets, "other", 1, 80, 1000, &early));
    assert_true(offsets_begin(offsets, "other", 1, 81, 3000, &(struct position){0}));
    offsets_get_totals(offsets, &totals);
    assert_int_equal(totals.unfinished_count, 3);
    assert_string_equal(totals.lowest.topic, "other");
    assert_int_equal(totals.lowest.offset, 80);
    assert_int_equal(totals.lowest_since_ns, 1000);

    offsets_finish(offsets, &early, 4000);
    offsets_get_totals(offsets, &totals);
    assert_string_equal(totals.lowest.topic, "jobs");
    assert_int_equal(totals.lowest_since_ns, 2000);
    offsets_finish(offsets, &late, 5000);
    offsets_get_totals(offsets, &totals);
    assert_int_equal(totals.lowest.offset, 81);
    assert_int_equal(totals.lowest_since_ns, 4000);
    offsets_finish(offsets, &totals.lowest, 6000);
    offsets_get_totals(offsets, &totals);
    assert_int_equal(totals.unfinished_count, 0);
    offsets_destroy(offsets);
}

TEST(names_outlive_their_partitions) {
    char name[] = "gone";
    struct offsets *offsets = follow_one();
    struct position position;
    assign(offsets, name, 0);
    assert_true(offsets_begin(offsets, name, 0, 0, 1, &position));
    offsets_revoke(offsets, name, 0);
    for (int32_t p = 1; p < 100; p++) assign(offsets, "more", p);
    memset(name, 'x', 4);
    assert_string_equal(position.topic, "gone");
    finish(offsets, position);
    offsets_destroy(offsets);
}

enum { ORDERED = 7 };

/* The next order of `items` in the dictionary's sense; false after the last one. */
static bool next_order(size_t *items) {
    size_t i = ORDERED - 1, j = ORDERED - 1;
    while (i > 0 && items[i - 1] >= items[i]) i--;
    if (i == 0) return false;
    while (items[j] <= items[i - 1]) j--;
    size_t swapped = items[i - 1];
    items[i - 1] = items[j];
    items[j] = swapped;
    for (j = ORDERED - 1; i < j; i++, j--) {
        swapped = items[i];
        items[i] = items[j];
        items[j] = swapped;
    }
    return true;
}

/* Gaps inside a word, over a word's edge, over words, and over the ring's end. */
static const int64_t spread[ORDERED] = {16381, 16383, 16384, 16447, 16448, 16700, 32000};

TEST(every_order_of_finishing_commits_the_lowest_unfinished) {
    size_t order[ORDERED] = {0, 1, 2, 3, 4, 5, 6}, orders = 0;
    struct offsets *offsets = follow_one();
    do {
        struct position positions[ORDERED];
        bool done[ORDERED] = {false};
        offsets_revoke(offsets, "jobs", 0);
        assign(offsets, "jobs", 0);
        for (size_t i = 0; i < ORDERED; i++) positions[i] = begin(offsets, spread[i]);
        for (size_t i = 0; i < ORDERED; i++) {
            finish(offsets, positions[order[i]]);
            done[order[i]] = true;
            size_t lowest = 0;
            while (lowest < ORDERED && done[lowest]) lowest++;
            assert_int_equal(
                next_commit(offsets), lowest < ORDERED ? spread[lowest] : spread[6] + 1);
            assert_int_equal(unfinished(offsets), ORDERED - 1 - i);
        }
        orders++;
    } while (next_order(order));
    assert_int_equal(orders, 5040);
    offsets_destroy(offsets);
}

/* What the tracker must agree with: a plain list of all that has begun. */
enum { MODEL_MAX = 40000 };

struct model {
    size_t count;
    struct position positions[MODEL_MAX];
    bool done[MODEL_MAX];
    int64_t next;
};

static int64_t model_lowest(const struct model *model) {
    for (size_t i = 0; i < model->count; i++)
        if (!model->done[i]) return model->positions[i].offset;
    return model->next;
}

static bool model_has_unfinished(const struct model *model) {
    for (size_t i = 0; i < model->count; i++)
        if (!model->done[i]) return true;
    return false;
}

static void model_step(struct model *model, struct offsets *offsets, unsigned *seed) {
    int what = rand_r(seed) % 100;
    if (what < 50 && model->count < MODEL_MAX) {
        static const int gaps[] = {0, 0, 0, 0, 0, 0, 1, 2, 60, 4000};
        int64_t offset = model->next + gaps[rand_r(seed) % 10];
        bool has_room =
            !model_has_unfinished(model) || offset < model_lowest(model) + OFFSETS_WINDOW;
        struct position position;
        assert_int_equal(offsets_begin(offsets, "jobs", 0, offset, 1, &position), has_room);
        if (!has_room) return;
        model->positions[model->count++] = position;
        model->next = offset + 1;
    } else if (what < 98 && model->count > 0) {
        /* mostly among the newest, now and then anywhere: some are finished twice */
        size_t among = rand_r(seed) % 8 == 0 || model->count < 50 ? model->count : 50;
        size_t pick = model->count - 1 - (size_t)rand_r(seed) % among;
        finish(offsets, model->positions[pick]);
        model->done[pick] = true;
    } else {
        int64_t end = model->next + rand_r(seed) % 3;
        offsets_advance(offsets, "jobs", 0, end);
        model->next = end;
    }
}

/* Whoever takes over begins all that has not finished, and nothing else. */
static void assert_next_owner_agrees(const struct model *model, struct offsets *before) {
    struct offsets *offsets = take_over(before);
    for (size_t i = 0; i < model->count; i++)
        if (model->positions[i].offset >= model_lowest(model))
            assert_int_equal(begins(offsets, model->positions[i].offset), !model->done[i]);
    offsets_destroy(offsets);
}

TEST(random_walks_agree_with_a_plain_list) {
    static struct model model;
    for (unsigned walk = 1; walk <= 60; walk++) {
        unsigned seed = walk;
        struct offsets *offsets = follow_one();
        model.count = 0;
        memset(model.done, 0, sizeof model.done);
        model.next = rand_r(&seed);
        offsets_advance(offsets, "jobs", 0, model.next);
        for (int step = 0; step < 3000; step++) {
            model_step(&model, offsets, &seed);
            assert_int_equal(next_commit(offsets), model_lowest(&model));
        }
        offsets_commit_failed(offsets, "jobs", 0);
        assert_next_owner_agrees(&model, offsets);
        offsets_destroy(offsets);
    }
}

enum { THREADS = 4, EACH = 2000 };

struct share {
    struct offsets *offsets;
    struct position positions[EACH];
};

/* The partition is leaving. */
static struct offsets *leave_one(void) {
    struct offsets *offsets = follow_one();
    offsets_leave(offsets, "jobs", 0);
    return offsets;
}

static size_t started(struct offsets *offsets) {
    return state_of(offsets).started_count;
}

TEST(a_partition_that_leaves_starts_only_what_had_started) {
    struct offsets *offsets = follow_one();
    struct position one = begin(offsets, 1), two = begin(offsets, 2), three = begin(offsets, 3);
    assert_true(offsets_start(offsets, &one));
    assert_true(offsets_start(offsets, &two));
    assert_int_equal(started(offsets), 2);
    offsets_leave(offsets, "jobs", 0);
    assert_true(offsets_holds(offsets, &one));
    assert_false(offsets_keeps(offsets, &one));
    assert_true(offsets_start(offsets, &one));
    assert_false(offsets_start(offsets, &three));
    offsets_put_back(offsets, &two);
    assert_false(offsets_start(offsets, &two));
    assert_int_equal(started(offsets), 1);
    finish(offsets, one);
    assert_int_equal(started(offsets), 0);
    assert_int_equal(unfinished(offsets), 2); /* for the next owner */
    assert_int_equal(next_commit(offsets), 2);
    offsets_destroy(offsets);
}

TEST(what_has_not_begun_or_is_finished_neither_starts_nor_is_put_back) {
    struct offsets *offsets = follow_one();
    struct position one = begin(offsets, 1), above = one, aliased = one;
    struct position behind = begin(offsets, 2);
    above.offset = 3;
    aliased.offset += OFFSETS_WINDOW;
    assert_true(offsets_start(offsets, &one));
    assert_false(offsets_start(offsets, &above));
    assert_false(offsets_start(offsets, &aliased));
    offsets_put_back(offsets, &aliased);
    offsets_put_back(offsets, &behind);
    assert_int_equal(started(offsets), 1);
    finish(offsets, one);
    finish(offsets, one);
    assert_false(offsets_start(offsets, &one));
    offsets_put_back(offsets, &one);
    assert_int_equal(started(offsets), 0);
    offsets_destroy(offsets);
}

TEST(a_partition_that_comes_back_is_kept_and_what_left_with_it_is_not) {
    struct offsets *offsets = leave_one();
    struct position before = begin(offsets, 1);
    offsets_revoke(offsets, "jobs", 0);
    assert_false(offsets_keeps(offsets, &before));
    assign(offsets, "jobs", 0);
    struct position again = begin(offsets, 1);
    assert_true(offsets_keeps(offsets, &again));
    assert_true(offsets_start(offsets, &again));
    assert_false(offsets_start(offsets, &before));
    offsets_put_back(offsets, &before);
    assert_int_equal(started(offsets), 1);
    offsets_destroy(offsets);
}

static void *finish_share(void *context) {
    struct share *share = context;
    for (size_t i = EACH; i > 0; i--) finish(share->offsets, share->positions[i - 1]);
    return NULL;
}

TEST(threads_finish_side_by_side) {
    static struct share shares[THREADS];
    pthread_t threads[THREADS];
    struct offsets *offsets = follow_one();
    for (size_t i = 0; i < THREADS * EACH; i++)
        shares[i % THREADS].positions[i / THREADS] = begin(offsets, (int64_t)i);
    for (size_t t = 0; t < THREADS; t++) {
        shares[t].offsets = offsets;
        assert_int_equal(pthread_create(&threads[t], NULL, finish_share, &shares[t]), 0);
    }
    int64_t last = 0;
    while (last < THREADS * EACH) {
        int64_t now = next_commit(offsets);
        assert_true(now >= last);
        last = now;
    }
    for (size_t t = 0; t < THREADS; t++) pthread_join(threads[t], NULL);
    assert_int_equal(unfinished(offsets), 0);
    offsets_destroy(offsets);
}

RUN_TESTS(T(nothing_is_due_before_the_first_message), T(the_lowest_unfinished_offset_is_committed),
    T(a_commit_is_due_once_and_again_after_it_failed),
    T(offsets_that_never_begin_count_as_finished),
    T(the_end_of_a_partition_is_committed_once_nothing_is_unfinished),
    T(nothing_begins_beyond_the_window),
    T(the_distance_is_measured_from_the_lowest_unfinished_offset), T(a_second_finish_does_nothing),
    T(finishing_an_earlier_lease_does_nothing), T(a_partition_that_is_not_followed_takes_nothing),
    T(an_offset_that_no_log_has_does_not_begin),
    T(reading_again_from_an_earlier_offset_starts_over_there),
    T(totals_name_what_holds_up_a_commit_longest), T(names_outlive_their_partitions),
    T(every_order_of_finishing_commits_the_lowest_unfinished),
    T(a_partition_that_leaves_starts_only_what_had_started),
    T(what_has_not_begun_or_is_finished_neither_starts_nor_is_put_back),
    T(a_partition_that_comes_back_is_kept_and_what_left_with_it_is_not),
    T(random_walks_agree_with_a_plain_list), T(threads_finish_side_by_side))
