#include "broker/resets.h"

#include "testing.h"

static const char old_line[] =
    "[thrd:main]: jobs [3]: offset reset (at offset 50, broker 1) to BEGINNING: fetch failed due "
    "to "
    "requested offset not available on the broker: Broker: Offset out of range";
static const char new_line[] =
    "[thrd:main]: jobs [3]: offset reset (at offset 50 (leader epoch -1), broker 1) to offset "
    "BEGINNING (leader epoch -1): fetch failed due to requested offset not available on the broker";

TEST(both_wordings_tell_topic_partition_and_offset) {
    const char *const lines[] = {old_line, new_line};
    for (int i = 0; i < 2; i++) {
        struct resets resets = {0};
        int64_t from = 0;
        assert_true(resets_note(&resets, "OFFSET", lines[i]));
        assert_false(resets_take(&resets, "jobs", 2, &from));
        assert_false(resets_take(&resets, "job", 3, &from));
        assert_true(resets_take(&resets, "jobs", 3, &from));
        assert_int_equal(from, 50);
        assert_false(resets_take(&resets, "jobs", 3, &from));
        resets_fini(&resets);
    }
}

TEST(of_two_resets_without_a_message_between_them_the_first_counts) {
    struct resets resets = {0};
    int64_t from = 0;
    assert_true(resets_note(&resets, "OFFSET", old_line));
    assert_true(resets_note(&resets, "OFFSET",
        "[thrd:main]: jobs [3]: offset reset (at offset 90, broker 1) to BEGINNING: late"));
    assert_true(resets_take(&resets, "jobs", 3, &from));
    assert_int_equal(from, 50);
    resets_fini(&resets);
}

TEST(a_line_that_cannot_be_read_is_still_known_as_a_reset) {
    struct resets resets = {0};
    int64_t from;
    assert_true(resets_note(&resets, "OFFSET", "partition 3 of jobs: offset reset, somehow"));
    assert_false(resets_note(&resets, "FAIL", old_line));
    assert_false(resets_note(&resets, "OFFSET", "something else"));
    assert_false(resets_take(&resets, "jobs", 3, &from));
    resets_fini(&resets);
}

RUN_TESTS(T(both_wordings_tell_topic_partition_and_offset),
    T(of_two_resets_without_a_message_between_them_the_first_counts),
    T(a_line_that_cannot_be_read_is_still_known_as_a_reset))
