#include "broker/file_progress.h"

#include <stdlib.h>
#include <string.h>

#include "testing.h"

enum { W = FILE_PROGRESS_WINDOW };

static _Alignas(64) uint8_t room[FILE_PROGRESS_BYTES];

static int set_up(void **state) {
    memset(room, 0, sizeof room);
    return 0;
}
#define P(name) cmocka_unit_test_setup(name, set_up)

static struct file_progress *open_progress(void) {
    struct file_progress *progress;
    struct error err;
    assert_int_equal(file_progress_create(room, &progress, &err), ERR_OK);
    return progress;
}

static void keep(struct file_progress *progress, uint64_t results, uint64_t dead_letters) {
    const struct file_lengths lengths = {results, dead_letters};
    file_progress_keep(progress, &lengths);
}

TEST(a_new_room_has_nothing_to_go_on_from) {
    struct file_progress *progress = open_progress();
    struct file_lengths lengths;
    assert_false(file_progress_is_resumed(progress, &lengths));
    assert_false(file_progress_is_answered(progress, 0));
    file_progress_destroy(progress);
}

TEST(what_was_kept_is_answered_and_what_came_after_it_is_not) {
    struct file_progress *progress = open_progress();
    keep(progress, 0, 0);
    file_progress_finish(progress, 0);
    file_progress_finish(progress, 2);
    keep(progress, 100, 7);
    file_progress_finish(progress, 1); /* written, perhaps, but nobody said that it is whole */
    file_progress_destroy(progress);

    progress = open_progress();
    struct file_lengths lengths;
    assert_true(file_progress_is_resumed(progress, &lengths));
    assert_int_equal(lengths.results, 100);
    assert_int_equal(lengths.dead_letters, 7);
    assert_true(file_progress_is_answered(progress, 0));
    assert_false(file_progress_is_answered(progress, 1));
    assert_true(file_progress_is_answered(progress, 2));
    assert_false(file_progress_is_answered(progress, 3));
    file_progress_finish(progress, 1);
    keep(progress, 150, 7);
    file_progress_destroy(progress);

    progress = open_progress();
    assert_true(file_progress_is_answered(progress, 2));
    assert_false(file_progress_is_answered(progress, 3));
    file_progress_destroy(progress);
}

TEST(no_message_begins_beyond_the_window) {
    struct file_progress *progress = open_progress();
    assert_true(file_progress_may_begin(progress, W - 1));
    assert_false(file_progress_may_begin(progress, W));
    for (int64_t i = 1; i < W; i++) file_progress_finish(progress, i);
    assert_false(file_progress_may_begin(progress, W));
    file_progress_finish(progress, 0);
    assert_true(file_progress_may_begin(progress, 2 * W - 1));
    assert_false(file_progress_may_begin(progress, 2 * W));
    keep(progress, 1, 0);
    file_progress_destroy(progress);
    progress = open_progress();
    for (int64_t i = 0; i < W; i++) assert_true(file_progress_is_answered(progress, i));
    assert_false(file_progress_is_answered(progress, W));
    file_progress_destroy(progress);
}

TEST(a_damaged_room_is_never_followed_out_of_bounds) {
    uint64_t random = 88172645463325252u;
    for (int round = 0; round < 2000; round++) {
        for (size_t i = 0; i < sizeof room; i++) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            room[i] = (uint8_t)(random >> 40);
        }
        room[0] = (uint8_t)(round % 4); /* so that half of them are taken for kept */
        memset(room + 1, 0, 3);
        struct file_progress *progress = open_progress();
        for (int64_t i = 0; i < 3 * W; i += 997) {
            (void)!file_progress_is_answered(progress, i);
            file_progress_finish(progress, i);
        }
        (void)!file_progress_is_answered(progress, INT64_MAX);
        file_progress_finish(progress, INT64_MAX);
        keep(progress, 1, 1);
        file_progress_destroy(progress);
    }
}

RUN_TESTS(P(a_new_room_has_nothing_to_go_on_from),
    P(what_was_kept_is_answered_and_what_came_after_it_is_not),
    P(no_message_begins_beyond_the_window), P(a_damaged_room_is_never_followed_out_of_bounds))
