#include "broker/commit_metadata.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/base64.h"
#include "testing.h"

enum { OFFSET = 4711 };

static void assert_same(const struct commit_metadata *a, const struct commit_metadata *b) {
    assert_int_equal(a->is_open, b->is_open);
    assert_int_equal(a->owner, b->owner);
    assert_int_equal(a->takeovers, b->takeovers);
    assert_int_equal(a->window, b->window);
    assert_string_equal(a->topic_id, b->topic_id);
    assert_memory_equal(a->finished, b->finished, sizeof a->finished);
}

/* Returns the length of the text. */
static size_t assert_comes_back(const struct commit_metadata *metadata) {
    char text[COMMIT_METADATA_TEXT_SIZE];
    struct commit_metadata again;
    size_t length = commit_metadata_encode(metadata, OFFSET, text);
    assert_int_equal(length, strlen(text));
    assert_true(commit_metadata_decode(slice_of(text, length), OFFSET, &again));
    assert_true(again.names_offset);
    assert_same(metadata, &again);
    return length;
}

static struct commit_metadata read(const char *text) {
    struct commit_metadata metadata;
    assert_true(commit_metadata_decode(slice_of_text(text), OFFSET, &metadata));
    return metadata;
}

TEST(the_text_is_as_documented) {
    struct commit_metadata metadata = {
        .is_open = true, .owner = 0x8c0ffee03141592a, .takeovers = 2, .window = 300};
    char text[COMMIT_METADATA_TEXT_SIZE];
    commit_metadata_set_finished(&metadata, 1);
    commit_metadata_set_finished(&metadata, 2);
    commit_metadata_set_finished(&metadata, 29);
    commit_metadata_encode(&metadata, OFFSET, text);
    assert_string_equal(text,
        "gpu-worker/1 offset=4711 mark=open owner=8c0ffee03141592a takeovers=2 window=300 "
        "finished=BgAAIA==");
    snprintf(metadata.topic_id, TOPIC_ID_SIZE, "%s", "gIW0Yp9ZQfKhK1PvH0rNpw@q1Sh");
    assert_comes_back(&metadata);
    commit_metadata_encode(&metadata, OFFSET, text);
    assert_string_equal(text,
        "gpu-worker/1 offset=4711 topic=gIW0Yp9ZQfKhK1PvH0rNpw@q1Sh mark=open "
        "owner=8c0ffee03141592a takeovers=2 window=300 finished=BgAAIA==");
    struct commit_metadata again = read(text);
    assert_true(commit_metadata_has_finished(&again, 1));
    assert_true(commit_metadata_has_finished(&again, 29));
    assert_false(commit_metadata_has_finished(&again, 0));
    assert_false(commit_metadata_has_finished(&again, 30));
}

TEST(every_single_bit_comes_back) {
    for (size_t i = 0; i < COMMIT_METADATA_WINDOW; i++) {
        struct commit_metadata metadata = {0};
        commit_metadata_set_finished(&metadata, i);
        assert_comes_back(&metadata);
    }
}

TEST(random_bitmaps_marks_and_counts_come_back) {
    unsigned seed = 1;
    for (int round = 0; round < 3000; round++) {
        struct commit_metadata metadata = {.is_open = rand_r(&seed) % 2,
            .owner = (uint64_t)rand_r(&seed) << (round % 34),
            .takeovers = (uint32_t)rand_r(&seed) << (round % 2),
            .window = (uint32_t)rand_r(&seed) % (COMMIT_METADATA_WINDOW + 1)};
        size_t bits = (size_t)rand_r(&seed) % COMMIT_METADATA_WINDOW;
        for (size_t i = 0; i <= bits; i++)
            if (rand_r(&seed) % 3 > 0) commit_metadata_set_finished(&metadata, i);
        assert_comes_back(&metadata);
    }
}

TEST(the_longest_text_fits_what_brokers_take) {
    struct commit_metadata metadata = {.is_open = false,
        .owner = UINT64_MAX,
        .takeovers = UINT32_MAX,
        .window = COMMIT_METADATA_WINDOW};
    memset(metadata.finished, 0xff, sizeof metadata.finished);
    memset(metadata.topic_id, 'x', TOPIC_ID_SIZE - 1);
    char text[COMMIT_METADATA_TEXT_SIZE];
    assert_comes_back(&metadata);
    size_t length = commit_metadata_encode(&metadata, INT64_MAX, text);
    assert_int_equal(BASE64_SIZE(COMMIT_METADATA_WINDOW / 8), 2732);
    assert_true(length < COMMIT_METADATA_TEXT_SIZE && length < 4096);
}

TEST(zero_bytes_at_the_end_take_no_room) {
    struct commit_metadata metadata = {0};
    size_t length = assert_comes_back(&metadata);
    commit_metadata_set_finished(&metadata, 20);
    assert_int_equal(assert_comes_back(&metadata), length + 4);
}

TEST(no_metadata_says_nothing) {
    struct commit_metadata metadata = read("");
    assert_same(&metadata, &(struct commit_metadata){0});
}

TEST(fields_that_a_later_version_adds_are_skipped) {
    struct commit_metadata metadata =
        read("gpu-worker/1 epoch=9 takeovers=3 lane finished=Ag== mark=open");
    assert_int_equal(metadata.takeovers, 3);
    assert_true(metadata.is_open);
    assert_true(commit_metadata_has_finished(&metadata, 1));
}

TEST(what_another_version_or_tool_wrote_is_set_aside) {
    static const char *const texts[] = {"gpu-worker/2 mark=open finished=Ag==", "gpu-worker/10",
        "gpu-worker", "gpu-worker/", "gpu-worker/1\n", " gpu-worker/1", "Ag==", "{}", "x",
        "consumer-1 finished=Ag=="};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct commit_metadata metadata;
        if (commit_metadata_decode(slice_of_text(texts[i]), OFFSET, &metadata))
            fail_msg("read: %s", texts[i]);
        assert_same(&metadata, &(struct commit_metadata){0});
    }
}

TEST(damaged_fields_are_set_aside_as_a_whole) {
    static const char *const fields[] = {"mark=", "mark=shut", "mark=open mark=open", "mark",
        "takeovers=", "takeovers=-1", "takeovers=4294967296", "takeovers=99999999999",
        "takeovers=1x", "takeovers=01", "window=16385",
        "window=", "owner=", "owner=8c0ffee03141592", "owner=8C0FFEE03141592A",
        "owner=8c0ffee03141592a0", "offset=", "offset=-1", "offset=9223372036854775808",
        "offset=4711x", "offset=04711", "offset=4711 offset=4711", "finished=A",
        "topic=", "topic=a\tb",
        "topic=0123456789012345678901234567890123456789012345678901234567890123", "topic=a topic=a",
        "finished=Ag=", "finished=Ag== finished=Ag=="};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        char text[128];
        struct commit_metadata metadata;
        snprintf(text, sizeof text, "gpu-worker/1 %s", fields[i]);
        if (commit_metadata_decode(slice_of_text(text), OFFSET, &metadata))
            fail_msg("read: %s", text);
        assert_same(&metadata, &(struct commit_metadata){0});
    }
}

TEST(a_bitmap_beyond_the_window_is_set_aside) {
    static char text[8192] = "gpu-worker/1 finished=";
    struct commit_metadata metadata;
    size_t used = strlen(text);
    memset(text + used, 'A', 2736);
    assert_false(commit_metadata_decode(slice_of(text, used + 2736), OFFSET, &metadata));
    memset(text + used, 'A', sizeof text - used);
    assert_false(commit_metadata_decode(
        slice_of(text, sizeof text - (sizeof text - used) % 4), OFFSET, &metadata));
}

TEST(every_cut_of_a_text_is_read_in_part_or_set_aside) {
    const char text[] = "gpu-worker/1 offset=4711 mark=open takeovers=2 finished=BgAAIA==";
    for (size_t size = 0; size < sizeof text; size++) {
        struct commit_metadata metadata;
        bool is_read = commit_metadata_decode(slice_of(text, size), OFFSET, &metadata);
        if (is_read) assert_false(commit_metadata_has_finished(&metadata, 0));
    }
}

TEST(a_text_that_names_another_offset_is_set_aside) {
    char text[COMMIT_METADATA_TEXT_SIZE];
    struct commit_metadata metadata = {.is_open = true, .owner = 7, .takeovers = 1}, read;
    commit_metadata_set_finished(&metadata, 1);
    size_t length = commit_metadata_encode(&metadata, 4, text);
    assert_false(commit_metadata_decode(slice_of(text, length), 1, &read));
    assert_same(&read, &(struct commit_metadata){0});
    assert_true(commit_metadata_decode(slice_of(text, length), 4, &read));
    assert_same(&read, &metadata);
}

TEST(a_text_of_an_earlier_version_is_read_and_names_no_offset) {
    struct commit_metadata metadata = read("gpu-worker/1 mark=open takeovers=2 finished=Ag==");
    assert_false(metadata.names_offset);
    assert_true(commit_metadata_has_finished(&metadata, 1));
}

TEST(the_span_ends_behind_the_last_that_is_finished) {
    struct commit_metadata metadata = {0};
    assert_int_equal(commit_metadata_span(&metadata), 0);
    commit_metadata_set_finished(&metadata, 0);
    assert_int_equal(commit_metadata_span(&metadata), 1);
    commit_metadata_set_finished(&metadata, COMMIT_METADATA_WINDOW - 1);
    assert_int_equal(commit_metadata_span(&metadata), COMMIT_METADATA_WINDOW);
}

static struct commit_metadata claimed(struct commit_metadata metadata, uint64_t owner) {
    commit_metadata_claim(&metadata, owner);
    assert_true(metadata.is_open);
    assert_int_equal(metadata.owner, owner);
    return metadata;
}

static void assert_takeovers(
    const struct commit_metadata *metadata, uint32_t takeovers, uint32_t window) {
    assert_int_equal(metadata->takeovers, takeovers);
    assert_int_equal(metadata->window, window);
}

TEST(only_another_owners_open_mark_is_a_takeover) {
    struct commit_metadata first = claimed((struct commit_metadata){0}, 7);
    assert_takeovers(&first, 0, 0);
    struct commit_metadata again = claimed(first, 7);
    assert_takeovers(&again, 0, 0);
    struct commit_metadata other = claimed(first, 8);
    assert_takeovers(&other, 1, COMMIT_METADATA_WINDOW);
    first.is_open = false;
    other = claimed(first, 8);
    assert_takeovers(&other, 0, 0);
    struct commit_metadata nameless = claimed(claimed((struct commit_metadata){0}, 0), 0);
    assert_takeovers(&nameless, 1, COMMIT_METADATA_WINDOW);
}

TEST(takeovers_are_of_one_window_and_a_hand_over_keeps_them) {
    struct commit_metadata metadata = {.is_open = true, .owner = 1, .takeovers = 1, .window = 20};
    metadata = claimed(metadata, 2);
    assert_takeovers(&metadata, 2, 20);
    metadata.is_open = false;
    metadata = claimed(metadata, 3);
    assert_takeovers(&metadata, 2, 20);
    metadata.window = 0; /* all of it is committed */
    metadata = claimed(metadata, 4);
    assert_takeovers(&metadata, 1, COMMIT_METADATA_WINDOW);
    metadata.takeovers = UINT32_MAX;
    metadata = claimed(metadata, 5);
    assert_takeovers(&metadata, UINT32_MAX, COMMIT_METADATA_WINDOW);
}

RUN_TESTS(T(the_text_is_as_documented), T(every_single_bit_comes_back),
    T(random_bitmaps_marks_and_counts_come_back), T(the_longest_text_fits_what_brokers_take),
    T(zero_bytes_at_the_end_take_no_room), T(no_metadata_says_nothing),
    T(fields_that_a_later_version_adds_are_skipped),
    T(what_another_version_or_tool_wrote_is_set_aside), T(damaged_fields_are_set_aside_as_a_whole),
    T(a_text_that_names_another_offset_is_set_aside),
    T(a_text_of_an_earlier_version_is_read_and_names_no_offset),
    T(the_span_ends_behind_the_last_that_is_finished), T(a_bitmap_beyond_the_window_is_set_aside),
    T(only_another_owners_open_mark_is_a_takeover),
    T(takeovers_are_of_one_window_and_a_hand_over_keeps_them),
    T(every_cut_of_a_text_is_read_in_part_or_set_aside))
