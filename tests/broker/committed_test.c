/* What a consumer makes of what its group has committed. */
#include "broker/consumer.h"

#include <string.h>

#include "broker/committed.h"
#include "broker/kafka_harness.h"
#include "support/at_once.h"
#include "support/wait.h"

/* Takes `count` messages, which are those of `expected` in that order, and finishes none. */
static void take_exactly(struct source *source, const int64_t *expected, size_t count) {
    for (size_t i = 0; i < count; i++) {
        struct position position;
        consumer_take_many(source, &position, 1);
        assert_int_equal(position.offset, expected[i]);
    }
}

TEST(metadata_of_somebody_else_is_set_aside_with_one_warning) {
    enum { COUNT = 3 };
    struct broker broker;
    struct events events = {0};
    const int64_t expected[] = {1, 2};
    broker_start(&broker, 1);
    broker_produce(&broker, 0, 0, COUNT);
    broker_commit(&broker, 0, 1, "gpu-worker/2 finished=Bg==");
    struct source *source = consumer_start(&broker, &events, NULL);
    take_exactly(source, expected, 2);
    assert_int_equal(events.worst_level, LOG_WARN);
    assert_int_equal(events.warnings, 1);
    source_destroy(source);
    broker_stop(&broker);
}

/* Starts at a log of ten messages with this commit, takes what is expected, and returns how often
 * was warned. */
static int take_after_commit(
    int64_t offset, const char *text, const int64_t *expected, size_t count) {
    struct broker broker;
    struct events events = {0};
    broker_start(&broker, 1);
    broker_produce(&broker, 0, 0, 10);
    broker_commit(&broker, 0, offset, text);
    struct source *source = consumer_start(&broker, &events, NULL);
    take_exactly(source, expected, count);
    source_destroy(source);
    broker_stop(&broker);
    return events.warnings;
}

TEST(metadata_of_another_offset_is_set_aside_with_one_warning) {
    const int64_t all[] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, left[] = {4, 9};
    const char *text = "gpu-worker/1 offset=4 mark=clean finished=Hg=="; /* 5 to 8 */
    assert_int_equal(take_after_commit(1, text, all, 9), 1);
    assert_int_equal(take_after_commit(4, text, left, 2), 0);
}

TEST(metadata_that_names_no_offset_is_trusted_unless_it_reaches_beyond_the_end_of_the_log) {
    const int64_t all[] = {6, 7, 8, 9}, left[] = {5, 6};
    const char *text = "gpu-worker/1 mark=clean finished=HA=="; /* the third to the fifth */
    assert_int_equal(take_after_commit(6, text, all, 4), 1);
    assert_int_equal(take_after_commit(5, text, left, 2), 0);
}

/* The end is where only a group begins that has committed nothing of the topic. */
TEST(a_partition_that_was_added_is_read_from_its_start_and_a_new_group_begins_as_it_is_told) {
    struct broker broker;
    struct events events = {0};
    struct position position;
    const struct setting settings[] = {{"auto.offset.reset", "latest"}, {NULL, NULL}};
    broker_start(&broker, 2);
    broker_produce(&broker, 1, 0, 3);
    struct source *source = consumer_start(&broker, &events, settings);
    broker_wait_for_commit(source, &broker, 1, 3);
    source_destroy(source);

    broker.group[0] = (char)(broker.group[0] + 1); /* another one */
    broker_commit(&broker, 0, 0, "");
    source = consumer_start(&broker, &events, settings);
    for (int offset = 0; offset < 3; offset++) {
        consumer_take_many(source, &position, 1);
        assert_int_equal(position.partition, 1);
        assert_int_equal(position.offset, offset);
    }
    source_destroy(source);
    broker_stop(&broker);
}

/* As after the election of a leader that does not have all messages. */
TEST(a_log_that_ends_below_the_committed_offset_is_read_on_at_its_end) {
    struct broker broker;
    struct events events = {0};
    struct position position;
    broker_start(&broker, 1);
    broker_produce(&broker, 0, 0, 10);
    broker_commit(&broker, 0, 12, "gpu-worker/1 offset=12 mark=clean finished=Ag==");
    struct source *source = consumer_start(&broker, &events, NULL);
    WAIT_DOING(events.worst_level, >=, LOG_ERROR, assert_false(consumer_take(source, &position)));
    assert_non_null(strstr(events.last_fact, "[0] ends at offset 10, and had been read up to 12"));
    broker_wait_for_commit(source, &broker, 0, 10);
    broker_produce(&broker, 0, 10, 4);
    const int64_t expected[] = {10, 11, 12, 13};
    take_exactly(source, expected, 4);
    source_destroy(source);
    broker_stop(&broker);
}

/* Where the message at this offset of a partition stands in what the group has committed. */
static struct committed ask(const struct broker *broker, int32_t partition, int64_t offset) {
    const struct kafka_options options = {.bootstrap_servers = broker->bootstrap};
    const struct position position = {
        .topic = broker->jobs, .partition = partition, .offset = offset};
    struct committed committed;
    struct error err;
    WAIT_FOR(
        committed_read(&options, broker->group, &position, KAFKA_PATIENCE_MS, &committed, &err), ==,
        ERR_OK);
    return committed;
}

TEST(anybody_can_ask_how_far_a_group_has_come) {
    static const struct {
        int64_t offset;
        bool is_finished;
        uint64_t earlier;
    } cases[] = {{3, true, 0}, {4, false, 0}, {5, true, 1}, {8, true, 1}, {9, false, 1},
        {4 + COMMIT_METADATA_WINDOW, false, COMMIT_METADATA_WINDOW - 4}};
    struct broker broker;
    broker_start(&broker, 2);
    broker_produce(&broker, 0, 0, 10);
    broker_commit(&broker, 0, 4, "gpu-worker/1 offset=4 mark=clean finished=Hg=="); /* 5 to 8 */
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct committed committed = ask(&broker, 0, cases[i].offset);
        assert_true(committed.is_any);
        assert_int_equal(committed.is_finished, cases[i].is_finished);
        assert_int_equal(committed.earlier, cases[i].earlier);
    }
    assert_false(ask(&broker, 1, 0).is_any);
    broker_stop(&broker);
}

RUN_TESTS_AT_ONCE(T(anybody_can_ask_how_far_a_group_has_come),
    T(metadata_of_somebody_else_is_set_aside_with_one_warning),
    T(metadata_of_another_offset_is_set_aside_with_one_warning),
    T(metadata_that_names_no_offset_is_trusted_unless_it_reaches_beyond_the_end_of_the_log),
    T(a_partition_that_was_added_is_read_from_its_start_and_a_new_group_begins_as_it_is_told),
    T(a_log_that_ends_below_the_committed_offset_is_read_on_at_its_end))
