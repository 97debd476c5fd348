#include "broker/ownership.h"

#include <string.h>

#include "broker/commit_list.h"
#include "broker/kafka_harness.h"
#include "support/at_once.h"
#include "support/wait.h"

#define FIRST "owner=0000000000000001 "
#define SECOND "owner=0000000000000002 "

static bool is_committed(const struct broker *broker, const char *metadata) {
    char text[4096];
    (void)broker_committed_metadata(broker, 0, text, sizeof text);
    return strcmp(text, metadata) == 0;
}

TEST(a_group_is_told_who_has_a_partition_before_a_message_comes) {
    struct broker broker;
    struct events events = {0};
    struct position positions[3];
    broker_start(&broker, 1);
    broker_produce(&broker, 0, 0, 3);
    struct source *killed = consumer_start(&broker, &events, kafka_short_session);
    consumer_take_many(killed, positions, 1);
    assert_true(is_committed(
        &broker, "gpu-worker/1 offset=0 mark=open " FIRST "takeovers=0 window=0 finished="));
    source_destroy(killed);

    struct source *source = consumer_start(&broker, &events, kafka_short_session);
    consumer_take_many(source, positions, 1);
    assert_true(is_committed(
        &broker, "gpu-worker/1 offset=0 mark=open " SECOND "takeovers=1 window=16384 finished="));
    consumer_take_many(source, positions, 2);
    /* at the end of the partition it is known how many there were */
    WAIT_DOING(is_committed(&broker,
                   "gpu-worker/1 offset=0 mark=open " SECOND "takeovers=1 window=3 finished="),
        ==, true, assert_false(consumer_take(source, positions)));
    consumer_stop(source);
    assert_true(is_committed(
        &broker, "gpu-worker/1 offset=0 mark=clean " SECOND "takeovers=1 window=3 finished="));
    broker_stop(&broker);
}

static void note_next(void *context, const char *topic, int32_t partition, int64_t next) {
    int64_t *highest = context;
    if (next > *highest) *highest = next;
}

/* So much of the partition is not read again, when it is claimed with what is committed. */
static int64_t forgotten_with(int64_t committed) {
    struct broker broker;
    struct events events = {0};
    struct position position;
    int64_t highest = -1;
    broker_start(&broker, 1);
    broker_produce(&broker, 0, 0, 3);
    if (committed > 0) broker_commit(&broker, 0, committed, "");
    struct source *source = consumer_start(&broker, &events, NULL);
    source_watch_committed(source, note_next, &highest);
    consumer_take_many(source, &position, 1);
    source_destroy(source);
    broker_stop(&broker);
    return highest;
}

TEST(what_is_known_of_messages_is_forgotten_where_a_group_has_committed_nothing) {
    assert_int_equal(forgotten_with(2), 2);
    assert_int_equal(forgotten_with(0), INT64_MAX); /* they were of an earlier log */
}

TEST(a_partition_without_a_place_to_start_fails_as_configured) {
    struct broker broker;
    struct events events = {0};
    struct error err;
    const struct setting settings[] = {{"auto.offset.reset", "error"}, {NULL, NULL}};
    broker_start(&broker, 1);
    broker_produce(&broker, 0, 0, 1);
    struct source *source = consumer_start(&broker, &events, settings);
    assert_int_equal(consumer_fail(source, &err), ERR_BROKER);
    assert_int_equal(err.native, RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET);
    consumer_stop(source);
    broker_stop(&broker);
}

TEST(a_partition_that_is_gone_holds_up_no_other) {
    struct broker broker;
    broker_start(&broker, 1);
    broker_produce(&broker, 0, 0, 1);
    rd_kafka_t *client =
        kafka_client(RD_KAFKA_CONSUMER, broker.bootstrap, "group.id", broker.group);
    rd_kafka_topic_partition_list_t *partitions = rd_kafka_topic_partition_list_new(2);
    rd_kafka_topic_partition_list_add(partitions, broker.jobs, 5);
    rd_kafka_topic_partition_list_add(partitions, broker.jobs, 0);
    WAIT_FOR(commit_list_locate(client, partitions, true, 5000), ==, RD_KAFKA_RESP_ERR_NO_ERROR);
    assert_int_equal(partitions->elems[0].offset, RD_KAFKA_OFFSET_INVALID);
    assert_int_equal(partitions->elems[1].offset, 0);
    rd_kafka_topic_partition_list_destroy(partitions);
    rd_kafka_destroy(client);
    broker_stop(&broker);
}

static void tell_at(struct ownership_wait *wait, struct events *events, uint64_t seconds) {
    const struct client_events told = {
        .on_event = events_note, .context = events, .name = "kafka consumer"};
    rd_kafka_topic_partition_list_t *partitions = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(partitions, "jobs", 3);
    ownership_tell_waiting(
        wait, &told, partitions, RD_KAFKA_RESP_ERR__TIMED_OUT, (1 + seconds) * 1000000000ull);
    rd_kafka_topic_partition_list_destroy(partitions);
}

TEST(a_long_wait_for_what_is_committed_is_told_once_with_the_partitions_and_what_to_look_for) {
    struct ownership_wait wait = {0};
    struct events events = {0};
    for (uint64_t seconds = 0; seconds < 60; seconds++) tell_at(&wait, &events, seconds);
    assert_int_equal(events.count, 1);
    assert_int_equal(events.warnings, 0);
    for (uint64_t seconds = 60; seconds < 200; seconds++) tell_at(&wait, &events, seconds);
    assert_int_equal(events.count, 2);
    assert_int_equal(events.warnings, 1);
    assert_non_null(strstr(events.last_fact, "jobs [3]"));
    assert_non_null(strstr(events.last_fact, "find-hanging"));
}

RUN_TESTS_AT_ONCE(
    T(a_long_wait_for_what_is_committed_is_told_once_with_the_partitions_and_what_to_look_for),
    T(a_group_is_told_who_has_a_partition_before_a_message_comes),
    T(what_is_known_of_messages_is_forgotten_where_a_group_has_committed_nothing),
    T(a_partition_without_a_place_to_start_fails_as_configured),
    T(a_partition_that_is_gone_holds_up_no_other))
