/* What an owner of a partition leaves to the next one. */
#include <string.h>

#include "broker/tracking.h"

/* The commit that is due, and where `text` is not NULL its metadata. */
static int64_t take_commit(struct offsets *offsets, const char *text) {
    struct offsets_commit commit;
    char encoded[COMMIT_METADATA_TEXT_SIZE];
    assert_true(offsets_take_commit(offsets, "jobs", 0, &commit));
    commit_metadata_encode(&commit.metadata, commit.offset, encoded);
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

/* Offsets 50 to 59 have begun, and all but 53 and 57 are finished, */
static struct offsets *follow_ten(struct position positions[static 10]) {
    struct offsets *offsets = follow_one();
    for (int i = 0; i < 10; i++) positions[i] = begin(offsets, 50 + i);
    for (int i = 0; i < 10; i++)
        if (i != 3 && i != 7) finish(offsets, positions[i]);
    assert_int_equal(take_commit(offsets, "finished=bg=="), 53);
    return offsets;
}

TEST(a_log_that_lost_its_end_goes_on_at_what_is_unfinished_below_it) {
    struct position positions[10];
    struct offsets *offsets = follow_ten(positions);
    assert_int_equal(offsets_truncate(offsets, "jobs", 0, 56), 53);
    assert_int_equal(unfinished(offsets), 0);
    assert_false(offsets_holds(offsets, &positions[3]));
    assert_int_equal(take_commit(offsets, "finished=Bg=="), 53);
    finish(offsets, begin(offsets, 53));
    assert_false(begins(offsets, 54));
    assert_false(begins(offsets, 55));
    finish(offsets, begin(offsets, 56)); /* another message than the one before */
    assert_int_equal(take_commit(offsets, "finished="), 57);
    offsets_destroy(offsets);
}

TEST(a_log_that_lost_its_end_below_the_committed_offset_goes_on_at_its_end) {
    struct position positions[10];
    struct offsets *offsets = follow_ten(positions);
    assert_int_equal(offsets_truncate(offsets, "jobs", 0, 20), 20);
    assert_int_equal(take_commit(offsets, "finished="), 20);
    begin(offsets, 20);
    begin(offsets, 54);
    offsets_destroy(offsets);
}

TEST(another_log_begins_without_anything_of_the_one_before) {
    struct position positions[10];
    struct offsets *offsets = follow_ten(positions);
    offsets_begin_anew(offsets, "jobs", 0, 55);
    assert_int_equal(unfinished(offsets), 0);
    assert_false(offsets_holds(offsets, &positions[3]));
    finish(offsets, begin(offsets, 55));
    assert_int_equal(take_commit(offsets, "finished="), 56);
    offsets_destroy(offsets);
}

TEST(a_partition_that_comes_back_is_followed_again_where_its_log_begins) {
    struct position positions[10];
    struct offsets *offsets = follow_ten(positions);
    offsets_revoke(offsets, "jobs", 0);
    assert_false(begins(offsets, 60));
    assert_false(offsets_is_due(offsets));
    offsets_begin_anew(offsets, "jobs", 0, 0);
    assert_int_equal(take_commit(offsets, "finished="), 0);
    finish(offsets, begin(offsets, 0));
    offsets_destroy(offsets);
}

static bool is_first(struct offsets *offsets) {
    struct offsets_commit commit;
    assert_true(offsets_take_commit(offsets, "jobs", 0, &commit));
    return commit.is_first;
}

TEST(commits_for_a_log_are_the_first_until_one_is_made_and_kept) {
    struct position positions[10];
    struct offsets *offsets = follow_ten(positions);
    finish(offsets, positions[3]);
    assert_false(is_first(offsets)); /* whoever takes a partition over commits that */
    offsets_begin_anew(offsets, "jobs", 0, 0);
    offsets_commits_made(offsets, NULL, 0, true); /* which were taken before */
    assert_true(is_first(offsets));
    offsets_commits_failed(offsets);
    assert_true(is_first(offsets));
    offsets_commits_made(offsets, NULL, 0, false);
    finish(offsets, begin(offsets, 0));
    assert_true(is_first(offsets));
    offsets_commits_made(offsets, NULL, 0, true);
    finish(offsets, begin(offsets, 1));
    assert_false(is_first(offsets));
    offsets_destroy(offsets);
}

static void ignore_commit(
    void *context, const char *topic, int32_t partition, const struct offsets_commit *commit) {}

TEST(messages_finish_with_the_commits_that_are_made) {
    struct position positions[10];
    struct offsets *offsets = follow_ten(positions);
    const struct position *const answered[] = {&positions[3]};
    assert_false(offsets_are_under_way(offsets));
    assert_true(offsets_take_commits(offsets, answered, 1, ignore_commit, NULL));
    assert_true(offsets_are_under_way(offsets));
    offsets_commits_made(offsets, answered, 1, true);
    assert_false(offsets_are_under_way(offsets));
    finish(offsets, positions[7]);
    assert_int_equal(unfinished(offsets), 0);
    assert_true(offsets_take_commits(offsets, NULL, 0, ignore_commit, NULL));
    offsets_commits_failed(offsets);
    assert_false(offsets_are_under_way(offsets));
    offsets_destroy(offsets);
}

TEST(a_partition_is_in_doubt_until_a_new_lease_starts) {
    const char *topic;
    int32_t partition;
    struct position positions[10];
    struct offsets *offsets = follow_ten(positions);
    offsets_doubt(offsets, "jobs", 0);
    assert_true(offsets_take_doubted(offsets, &topic, &partition));
    assert_string_equal(topic, "jobs");
    assert_int_equal(partition, 0);
    assert_false(offsets_take_doubted(offsets, &topic, &partition));
    offsets_doubt(offsets, "jobs", 0);
    offsets_begin_anew(offsets, "jobs", 0, 0);
    assert_false(offsets_take_doubted(offsets, &topic, &partition));
    offsets_doubt(offsets, "jobs", 0); /* of what was taken before that */
    assert_false(offsets_take_doubted(offsets, &topic, &partition));
    offsets_destroy(offsets);
}

TEST(what_was_finished_is_not_counted_as_missing) {
    struct offsets *offsets = offsets_create();
    struct error err;
    struct offsets_commit commit = {.offset = 53};
    commit_metadata_set_finished(&commit.metadata, 2);
    assert_int_equal(offsets_assign(offsets, "jobs", 0, &commit, &err), ERR_OK);
    assert_int_equal(offsets_missing(offsets, "jobs", 0, 53, 60), 6);
    assert_int_equal(offsets_missing(offsets, "jobs", 0, 53, 100053), 99999);
    assert_int_equal(offsets_missing(offsets, "jobs", 0, 55, 56), 0);
    offsets_destroy(offsets);
}

/* Follows "jobs" [0] from offset 100, with `takeovers` of a window of so many messages. */
static struct offsets *follow_contested(uint32_t takeovers, uint32_t window) {
    struct offsets *offsets = offsets_create();
    const struct offsets_commit commit = {.offset = 100,
        .metadata = {.is_open = true, .owner = 5, .takeovers = takeovers, .window = window}};
    struct error err;
    assert_int_equal(offsets_assign(offsets, "jobs", 0, &commit, &err), ERR_OK);
    return offsets;
}

static bool begins_alone(struct offsets *offsets, int64_t offset) {
    struct position position;
    enum offsets_begun begun = offsets_begin(offsets, "jobs", 0, offset, 1, &position);
    assert_int_not_equal(begun, OFFSETS_NOT_BEGUN);
    return begun == OFFSETS_BEGUN_ALONE;
}

static void assert_commits(struct offsets *offsets, uint32_t takeovers, uint32_t window) {
    struct offsets_commit commit;
    assert_true(offsets_take_commit(offsets, "jobs", 0, &commit));
    assert_true(commit.metadata.is_open);
    assert_int_equal(commit.metadata.owner, 5);
    assert_int_equal(commit.metadata.takeovers, takeovers);
    assert_int_equal(commit.metadata.window, window);
}

TEST(after_two_takeovers_the_messages_of_the_window_begin_alone) {
    struct offsets *once = follow_contested(1, 10), *twice = follow_contested(2, 10);
    assert_false(begins_alone(once, 100));
    assert_true(begins_alone(twice, 100));
    assert_true(begins_alone(twice, 109));
    assert_false(begins_alone(twice, 110));
    offsets_destroy(once);
    offsets_destroy(twice);
}

TEST(takeovers_are_committed_until_all_of_their_window_is) {
    struct offsets *offsets = follow_contested(2, 3);
    struct position first = begin(offsets, 100), second = begin(offsets, 101),
                    last = begin(offsets, 102);
    finish(offsets, first);
    assert_commits(offsets, 2, 2);
    finish(offsets, last);
    assert_commits(offsets, 2, 2);
    finish(offsets, second);
    assert_commits(offsets, 0, 0);
    offsets_destroy(offsets);
}

TEST(what_comes_behind_the_end_of_the_partition_is_not_contested) {
    struct offsets *offsets = follow_contested(2, 1000);
    assert_true(begins_alone(offsets, 100));
    offsets_advance(offsets, "jobs", 0, 101);
    assert_commits(offsets, 2, 1);
    assert_false(begins_alone(offsets, 101));
    offsets_advance(offsets, "jobs", 0, 102);
    struct offsets_commit commit;
    assert_false(offsets_take_commit(offsets, "jobs", 0, &commit));
    offsets_destroy(offsets);
}

TEST(an_idle_partition_is_not_contested) {
    struct offsets *offsets = follow_contested(1, 1000);
    offsets_advance(offsets, "jobs", 0, 100);
    assert_commits(offsets, 0, 0);
    offsets_destroy(offsets);
}

TEST(the_last_commit_hands_over_whatever_is_left) {
    struct offsets *offsets = follow_contested(2, 10);
    struct offsets_commit commit;
    begin(offsets, 100);
    assert_true(offsets_take_last_commit(offsets, "jobs", 0, &commit));
    assert_false(commit.metadata.is_open);
    assert_int_equal(commit.offset, 100);
    assert_int_equal(commit.metadata.takeovers, 2);
    assert_int_equal(commit.metadata.window, 10);
    assert_false(offsets_take_last_commit(offsets, "jobs", 0, &commit));
    offsets_commit_failed(offsets, "jobs", 0);
    assert_true(offsets_take_last_commit(offsets, "jobs", 0, &commit));
    assert_false(commit.metadata.is_open);
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
    commit_metadata_encode(&commit->metadata, commit->offset, asked->text);
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
    T(a_log_that_lost_its_end_goes_on_at_what_is_unfinished_below_it),
    T(a_log_that_lost_its_end_below_the_committed_offset_goes_on_at_its_end),
    T(another_log_begins_without_anything_of_the_one_before),
    T(a_partition_that_comes_back_is_followed_again_where_its_log_begins),
    T(commits_for_a_log_are_the_first_until_one_is_made_and_kept),
    T(messages_finish_with_the_commits_that_are_made),
    T(a_partition_is_in_doubt_until_a_new_lease_starts),
    T(what_was_finished_is_not_counted_as_missing),
    T(after_two_takeovers_the_messages_of_the_window_begin_alone),
    T(takeovers_are_committed_until_all_of_their_window_is),
    T(what_comes_behind_the_end_of_the_partition_is_not_contested),
    T(an_idle_partition_is_not_contested), T(the_last_commit_hands_over_whatever_is_left),
    T(a_committed_offset_that_no_log_has_counts_as_none),
    T(a_commit_counts_messages_as_finished_that_are_not_yet),
    T(messages_that_a_commit_counted_make_none_due_when_they_finish),
    T(commits_that_failed_are_due_again),
    T(nothing_is_committed_with_a_message_that_is_not_ours_any_more))
