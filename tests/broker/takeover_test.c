/* What an owner of a partition leaves to the next one. */
#include <string.h>

#include "broker/tracking.h"

/* The commit that is due, and where `text` is not NULL its metadata. */
static int64_t take_commit(struct offsets *offsets, const char *text) {
    struct offsets_commit commit;
    char encoded[COMMIT_METADATA_TEXT_SIZE];
    assert_true(offsets_take_commit(offsets, "jobs", 0, &commit));
    commit_metadata_encode(&commit.metadata, encoded);
    if (text != NULL) assert_string_equal(strstr(encoded, "finished="), text);
    return commit.offset;
}

TEST(a_commit_says_what_is_finished_above_it) {
    struct offsets *offsets = follow_one();
    struct position three = begin(offsets, 3);
    begin(offsets, 4);
    struct position five = begin(offsets, 5);
    assert_int_equal(take_commit(offsets, "finished="), 3);
    finish(offsets, five);
    assert_int_equal(take_commit(offsets, "finished=BA=="), 3); /* bit 2 */
    begin(offsets, 9);
    finish(offsets, three);
    assert_int_equal(take_commit(offsets, "finished=Hg=="), 4); /* 5, and 6 to 8 never begin */
    offsets_destroy(offsets);
}

TEST(what_the_owner_before_had_finished_does_not_begin) {
    struct offsets *before = follow_one();
    struct position positions[8];
    for (int i = 0; i < 8; i++) positions[i] = begin(before, 100 + i);
    finish(before, positions[0]);
    finish(before, positions[2]);
    finish(before, positions[3]);
    finish(before, positions[6]);
    struct offsets *offsets = take_over(before);
    assert_int_equal(next_commit(offsets), 101);
    struct position first = begin(offsets, 101);
    assert_false(begins(offsets, 102));
    assert_false(begins(offsets, 103));
    assert_int_equal(unfinished(offsets), 1);
    finish(offsets, first);
    assert_int_equal(take_commit(offsets, "finished=BA=="), 104); /* 106 */
    for (int i = 4; i < 8; i++)
        if (i != 6) finish(offsets, begin(offsets, 100 + i));
        else assert_false(begins(offsets, 106));
    assert_int_equal(take_commit(offsets, "finished="), 108);
    offsets_destroy(before);
    offsets_destroy(offsets);
}

TEST(a_partition_whose_end_was_finished_before_is_committed_to_its_end) {
    struct offsets *before = follow_one();
    struct position first = begin(before, 0), last = begin(before, 1);
    finish(before, last);
    struct offsets *offsets = take_over(before);
    finish(offsets, begin(offsets, 0));
    assert_int_equal(take_commit(offsets, NULL), 1);
    assert_false(begins(offsets, 1));
    assert_int_equal(take_commit(offsets, "finished="), 2);
    finish(before, first);
    offsets_destroy(before);
    offsets_destroy(offsets);
}

TEST(nothing_is_due_where_nothing_changed_since_it_was_taken_over) {
    struct offsets *before = follow_one();
    struct offsets_commit commit;
    begin(before, 7);
    struct offsets *offsets = take_over(before);
    assert_false(offsets_take_commit(offsets, "jobs", 0, &commit));
    begin(offsets, 7);
    assert_false(offsets_take_commit(offsets, "jobs", 0, &commit));
    offsets_advance(offsets, "jobs", 0, 8);
    assert_false(offsets_take_commit(offsets, "jobs", 0, &commit));
    offsets_destroy(before);
    offsets_destroy(offsets);
}

TEST(a_log_that_was_truncated_starts_over_without_the_bitmap) {
    struct offsets *before = follow_one();
    begin(before, 50);
    finish(before, begin(before, 51));
    struct offsets *offsets = take_over(before);
    begin(offsets, 20);
    begin(offsets, 50);
    begin(offsets, 51);
    assert_int_equal(next_commit(offsets), 20);
    offsets_destroy(before);
    offsets_destroy(offsets);
}

TEST(marks_and_takeovers_are_committed_as_they_came) {
    struct offsets *offsets = offsets_create();
    struct offsets_commit commit = {.offset = 4, .metadata = {.is_open = true, .takeovers = 3}};
    struct error err;
    assert_int_equal(offsets_assign(offsets, "jobs", 0, &commit, &err), ERR_OK);
    finish(offsets, begin(offsets, 4));
    commit = (struct offsets_commit){0};
    assert_true(offsets_take_commit(offsets, "jobs", 0, &commit));
    assert_true(commit.metadata.is_open);
    assert_int_equal(commit.metadata.takeovers, 3);
    offsets_destroy(offsets);
}

TEST(a_committed_offset_that_no_log_has_counts_as_none) {
    struct offsets *offsets = offsets_create();
    struct offsets_commit commit = {.offset = INT64_MAX};
    struct error err;
    assert_int_equal(offsets_assign(offsets, "jobs", 0, &commit, &err), ERR_OK);
    assert_int_equal(next_commit(offsets), OFFSET_UNKNOWN);
    begin(offsets, 0);
    offsets_destroy(offsets);
}

/* What a transaction asks: the commit once these messages are finished, too. */
struct asked {
    int count;
    int64_t offset;
    char text[COMMIT_METADATA_TEXT_SIZE];
};

static void note(
    void *context, const char *topic, int32_t partition, const struct offsets_commit *commit) {
    struct asked *asked = context;
    asked->count++;
    asked->offset = commit->offset;
    commit_metadata_encode(&commit->metadata, asked->text);
}

static struct asked take_with(
    struct offsets *offsets, const struct position *const *positions, size_t count) {
    struct asked asked = {0};
    assert_true(offsets_take_commits(offsets, positions, count, note, &asked));
    return asked;
}

TEST(a_commit_counts_messages_as_finished_that_are_not_yet) {
    struct offsets *offsets = follow_one();
    struct position first = begin(offsets, 10), second = begin(offsets, 11);
    begin(offsets, 12);
    struct position last = begin(offsets, 13);
    finish(offsets, second);
    struct asked asked = take_with(offsets, (const struct position *[]){&first, &last}, 2);
    assert_int_equal(asked.count, 1);
    assert_int_equal(asked.offset, 12);
    assert_string_equal(strstr(asked.text, "finished="), "finished=Ag==");
    assert_int_equal(next_commit(offsets), 10);
    assert_int_equal(unfinished(offsets), 3);
    offsets_destroy(offsets);
}

TEST(messages_that_a_commit_counted_make_none_due_when_they_finish) {
    struct offsets *offsets = follow_one();
    struct position first = begin(offsets, 0), second = begin(offsets, 1);
    take_with(offsets, (const struct position *[]){&second, &first}, 2);
    finish(offsets, first);
    finish(offsets, second);
    assert_false(offsets_is_due(offsets));
    assert_int_equal(take_with(offsets, NULL, 0).count, 0);
    offsets_advance(offsets, "jobs", 0, 5);
    assert_true(offsets_is_due(offsets));
    assert_int_equal(take_with(offsets, NULL, 0).offset, 5);
    offsets_destroy(offsets);
}

TEST(commits_that_failed_are_due_again) {
    struct offsets *offsets = follow_one();
    assign(offsets, "jobs", 1); /* of which nothing is known yet */
    struct position first = begin(offsets, 7);
    take_with(offsets, (const struct position *[]){&first}, 1);
    offsets_commits_failed(offsets);
    assert_true(offsets_is_due(offsets));
    struct asked asked = take_with(offsets, (const struct position *[]){&first}, 1);
    assert_int_equal(asked.count, 1);
    assert_int_equal(asked.offset, 8);
    offsets_destroy(offsets);
}

TEST(nothing_is_committed_with_a_message_that_is_not_ours_any_more) {
    struct offsets *offsets = follow_one();
    struct position lost = begin(offsets, 3);
    assert_true(offsets_holds(offsets, &lost));
    offsets_revoke(offsets, "jobs", 0);
    assert_false(offsets_holds(offsets, &lost));
    assign(offsets, "jobs", 0);
    struct position again = begin(offsets, 3);
    const struct position *positions[] = {&again, &lost};
    struct asked asked = {0};
    assert_false(offsets_take_commits(offsets, positions, 2, note, &asked));
    assert_int_equal(asked.count, 0);
    assert_int_equal(take_with(offsets, positions, 1).offset, 4);
    offsets_destroy(offsets);
}

RUN_TESTS(T(a_commit_says_what_is_finished_above_it),
    T(what_the_owner_before_had_finished_does_not_begin),
    T(a_partition_whose_end_was_finished_before_is_committed_to_its_end),
    T(nothing_is_due_where_nothing_changed_since_it_was_taken_over),
    T(a_log_that_was_truncated_starts_over_without_the_bitmap),
    T(marks_and_takeovers_are_committed_as_they_came),
    T(a_committed_offset_that_no_log_has_counts_as_none),
    T(a_commit_counts_messages_as_finished_that_are_not_yet),
    T(messages_that_a_commit_counted_make_none_due_when_they_finish),
    T(commits_that_failed_are_due_again),
    T(nothing_is_committed_with_a_message_that_is_not_ours_any_more))
