/* A topic of jobs that is created anew, or gets partitions, while it is read. Embedded brokers
 * cannot do that. */
#include "base/clock.h"
#include "broker/kafka_harness.h"
#include "broker/reader.h"
#include "broker/topic_ids.h"
#include "support/at_once.h"

enum { OLD = 5, NEW = 20, PARTITIONS_MAX = 4 };

/* Takes and finishes until all of `partitions` was taken at least once, and is committed. */
static void take_all(struct source *source, const struct broker *broker, int partitions) {
    bool is_taken[PARTITIONS_MAX][NEW] = {{false}};
    int missing = partitions * NEW;
    uint64_t deadline_ns = clock_ns_in(KAFKA_PATIENCE_MS);
    while (missing > 0) {
        struct position position;
        if (clock_ns() > deadline_ns) fail_msg("%d messages have not come", missing);
        if (!consumer_take(source, &position)) continue;
        source_finish(source, &position);
        missing -= !is_taken[position.partition][position.offset];
        is_taken[position.partition][position.offset] = true;
    }
    for (int32_t i = 0; i < partitions; i++)
        while (broker_committed(broker, i) != NEW) {
            struct position position;
            if (clock_ns() > deadline_ns) fail_msg("it is not committed");
            if (consumer_take(source, &position)) source_finish(source, &position);
        }
}

static void recreate(int from_partitions, int to_partitions) {
    struct broker broker;
    struct events events = {0};
    broker_start(&broker, from_partitions);
    for (int32_t i = 0; i < from_partitions; i++) broker_produce(&broker, i, 0, OLD);
    struct source *source = consumer_start(&broker, &events, NULL);
    for (int taken = 0; taken < from_partitions * OLD;) {
        struct position position;
        if (!consumer_take(source, &position)) continue;
        source_finish(source, &position);
        taken++;
    }
    for (int32_t i = 0; i < from_partitions; i++) broker_wait_for_commit(source, &broker, i, OLD);
    source_pause(source, true); /* it is read again once all new messages are there */
    broker_recreate_jobs(&broker, to_partitions);
    for (int32_t i = 0; i < to_partitions; i++) broker_produce(&broker, i, 0, NEW);
    source_pause(source, false);
    take_all(source, &broker, to_partitions);
    /* librdkafka 2.0.2 never destroys a client that has had partitions that are gone */
    if (to_partitions >= from_partitions || rd_kafka_version() >= 0x020a0000) consumer_stop(source);
    broker_stop(&broker);
}

TEST(a_topic_that_was_created_anew_is_read_from_its_start) {
    recreate(1, 1);
}

TEST(so_is_one_that_has_more_partitions_now_and_one_that_has_fewer) {
    recreate(2, 4);
    recreate(4, 2);
}

TEST(partitions_that_are_added_are_read_from_their_start_whatever_the_settings_say_of_new_groups) {
    struct broker broker;
    struct events events = {0};
    struct setting settings[] = {{"auto.offset.reset", "latest"},
        {"topic.metadata.refresh.interval.ms", "1000"}, {NULL, NULL}};
    broker_start(&broker, 1);
    struct source *source = consumer_start(&broker, &events, settings);
    broker_wait_for_commit(source, &broker, 0, 0);
    broker_add_partitions(&broker, PARTITIONS_MAX);
    for (int32_t i = 0; i < PARTITIONS_MAX; i++) broker_produce(&broker, i, 0, NEW);
    take_all(source, &broker, PARTITIONS_MAX);
    consumer_stop(source);
    broker_stop(&broker);
}

/* False: this librdkafka tells no ids. */
static bool ask_id(const struct broker *broker, struct topic_ids *ids) {
    rd_kafka_queue_t *answers = rd_kafka_queue_new(broker->client);
    rd_kafka_topic_partition_list_t *asked = rd_kafka_topic_partition_list_new(2);
    rd_kafka_topic_partition_list_add(asked, broker->jobs, 0);
    rd_kafka_topic_partition_list_add(asked, broker->jobs, 1);
    bool is_asked = topic_ids_ask(broker->client, asked, KAFKA_PATIENCE_MS, answers);
    if (is_asked) {
        rd_kafka_event_t *event = rd_kafka_queue_poll(answers, KAFKA_PATIENCE_MS);
        assert_non_null(event);
        assert_true(topic_ids_take(ids, broker->client, event));
        rd_kafka_event_destroy(event);
    }
    rd_kafka_topic_partition_list_destroy(asked);
    rd_kafka_queue_destroy(answers);
    return is_asked;
}

TEST(a_topic_that_was_created_anew_has_another_id) {
    struct broker broker;
    struct topic_ids ids = {0};
    char first[TOPIC_ID_SIZE], second[TOPIC_ID_SIZE];
    broker_start(&broker, 2);
    if (ask_id(&broker, &ids)) {
        assert_int_equal(ids.count, 1);
        snprintf(first, sizeof first, "%s", topic_ids_get(&ids, broker.jobs));
        assert_true(strcspn(first, "@") > 0 && strlen(strchr(first, '@')) > 1);
        assert_true(ask_id(&broker, &ids));
        assert_false(topic_ids_differ(first, topic_ids_get(&ids, broker.jobs)));
        broker_recreate_jobs(&broker, 2);
        while (!topic_ids_differ(first, topic_ids_get(&ids, broker.jobs)))
            assert_true(ask_id(&broker, &ids));
        snprintf(second, sizeof second, "%s", topic_ids_get(&ids, broker.jobs));
        assert_true(ask_id(&broker, &ids));
        assert_string_equal(second, topic_ids_get(&ids, broker.jobs));
    } else {
        assert_true(rd_kafka_version() < 0x02030000);
    }
    topic_ids_fini(&ids);
    broker_stop(&broker);
}

TEST(ids_differ_only_where_both_are_known_and_not_of_two_clusters) {
    assert_true(topic_ids_differ("a@x", "b@x"));
    assert_true(topic_ids_differ("a@x", "ab@x"));
    assert_true(topic_ids_differ("a@", "b@x"));
    assert_false(topic_ids_differ("a@x", "a@x"));
    assert_false(topic_ids_differ("a@", "a@x"));
    assert_false(topic_ids_differ("a@x", "b@y"));
    assert_false(topic_ids_differ("", "b@y"));
    assert_false(topic_ids_differ("a@x", ""));
}

static struct reader *read_old(const struct broker *broker, struct events *events) {
    const struct kafka_options options = {
        .bootstrap_servers = broker->bootstrap, .on_event = events_note, .context = events};
    struct reader *reader;
    struct error err;
    for (int32_t i = 0; i < 2; i++) broker_produce(broker, i, 0, OLD);
    if (reader_create(&options, broker->jobs, READER_FROM_NOW, KAFKA_PATIENCE_MS, &reader, &err) !=
        ERR_OK)
        fail_msg("%s", err.message);
    return reader;
}

/* Until all of these partitions has come, from their starts on and in order. Before it has seen
 * that the topic is another one, a reader may go on in the middle of it. */
static void read_new(struct reader *reader, int from, int to) {
    int64_t next[PARTITIONS_MAX] = {0};
    uint64_t deadline_ns = clock_ns_in(KAFKA_PATIENCE_MS);
    for (int missing = (to - from) * NEW; missing > 0;) {
        struct delivery *delivery;
        struct error err;
        (void)!reader_poll(reader, KAFKA_POLL_MS, &delivery, &err); /* it may be away now */
        if (clock_ns() > deadline_ns) fail_msg("%d messages have not come", missing);
        if (delivery == NULL) continue;
        const struct position at = delivery->position;
        delivery_destroy(delivery);
        assert_in_range(at.partition, from, to - 1);
        if (next[at.partition] == 0 && at.offset > 0) continue;
        assert_int_equal(at.offset, next[at.partition]++);
        missing--;
    }
    reader_destroy(reader);
}

TEST(a_reader_without_a_group_reads_partitions_that_are_added) {
    struct broker broker;
    struct events events = {0};
    broker_start(&broker, 2);
    struct reader *reader = read_old(&broker, &events);
    broker_add_partitions(&broker, PARTITIONS_MAX);
    for (int32_t i = 2; i < PARTITIONS_MAX; i++) broker_produce(&broker, i, 0, NEW);
    read_new(reader, 2, PARTITIONS_MAX);
    broker_stop(&broker);
}

TEST(nor_does_it_miss_what_stands_in_a_topic_that_was_created_anew) {
    struct broker broker;
    struct events events = {0};
    struct topic_ids ids = {0};
    broker_start(&broker, 2);
    if (!ask_id(&broker, &ids)) skip();
    topic_ids_fini(&ids);
    struct reader *reader = read_old(&broker, &events);
    broker_recreate_jobs(&broker, 2);
    for (int32_t i = 0; i < 2; i++) broker_produce(&broker, i, 0, NEW);
    read_new(reader, 0, 2);
    broker_stop(&broker);
}

RUN_TESTS_AT_ONCE(T(a_topic_that_was_created_anew_is_read_from_its_start),
    T(a_topic_that_was_created_anew_has_another_id),
    T(ids_differ_only_where_both_are_known_and_not_of_two_clusters),
    T(so_is_one_that_has_more_partitions_now_and_one_that_has_fewer),
    T(partitions_that_are_added_are_read_from_their_start_whatever_the_settings_say_of_new_groups),
    T(a_reader_without_a_group_reads_partitions_that_are_added),
    T(nor_does_it_miss_what_stands_in_a_topic_that_was_created_anew))
