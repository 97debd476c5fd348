#include "broker/producer.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "broker/kafka_harness.h"
#include "broker/spread.h"
#include "support/at_once.h"
#include "support/wait.h"

static struct sent result_of(const char *text) {
    return (struct sent){
        .record = {.route = ROUTE_RESULT, .payload = slice_of_text(text), .on_settled = sent_note}};
}

static void expect_code(const struct sent *sent, enum err code) {
    assert_int_equal(sent->settled_count, 1);
    if (sent->code != code) fail_msg("%s: %s", err_code(sent->code), sent->err.message);
}

TEST(a_record_is_settled_when_the_broker_has_it) {
    struct broker broker;
    struct events events = {0};
    struct error err;
    broker_start(&broker, 1);
    struct sink *sink = producer_start(&broker, &events, NULL);
    struct sent sent = result_of("result");
    sink_send(sink, &sent.record);
    assert_int_equal(sent.settled_count, 0);
    assert_int_equal(sink_flush(sink, KAFKA_PATIENCE_MS, &err), ERR_OK);
    expect_code(&sent, ERR_OK);
    assert_int_equal(events.errors, 0);
    sink_destroy(sink);
    broker_stop(&broker);
}

/* The only message of a topic, as a consumer that is not ours reads it. */
static struct position take_only(const struct broker *broker, const char *topic) {
    struct broker read = *broker;
    struct events events = {0};
    struct position position;
    snprintf(read.jobs, sizeof read.jobs, "%s", topic);
    snprintf(read.group, sizeof read.group, "readers of %s", topic); /* which none has just left */
    struct source *source = consumer_start(&read, &events, NULL);
    consumer_take_many(source, &position, 1);
    source_finish(source, &position);
    consumer_stop(source);
    return position;
}

TEST(routes_and_records_name_the_topic) {
    struct broker broker;
    struct events events = {0};
    struct error err;
    broker_start(&broker, 1);
    struct sink *sink = producer_start(&broker, &events, NULL);
    struct sent routed = result_of("routed"), named = result_of("named");
    named.record.topic = broker.jobs;
    sink_send(sink, &routed.record);
    sink_send(sink, &named.record);
    assert_int_equal(sink_flush(sink, KAFKA_PATIENCE_MS, &err), ERR_OK);
    sink_destroy(sink);
    assert_int_equal(take_only(&broker, broker.jobs).offset, 0);
    assert_int_equal(take_only(&broker, broker.results).offset, 0);
    broker_stop(&broker);
}

enum { PARTITIONS = 4, TURNS = 5 };

/* Sends records without a key, one in each turn; counts them by partition. */
static void count_partitions(struct setting *settings, int counts[static PARTITIONS]) {
    struct broker broker;
    struct events events = {0};
    struct error err;
    broker_start(&broker, PARTITIONS);
    struct sink *sink = producer_start(&broker, &events, settings);
    for (int i = 0; i < PARTITIONS * TURNS; i++) {
        struct sent sent = result_of("result");
        sent.record.topic = broker.jobs; /* which has the partitions */
        sink_send(sink, &sent.record);
        assert_int_equal(sink_flush(sink, KAFKA_PATIENCE_MS, &err), ERR_OK);
        expect_code(&sent, ERR_OK);
        assert_in_range(sent.record.partition, 0, PARTITIONS - 1);
        counts[sent.record.partition]++;
        uint64_t over_ns = clock_ns_in(SPREAD_TURN_MS);
        while (clock_ns() < over_ns) sched_yield();
    }
    sink_destroy(sink);
    broker_stop(&broker);
}

/* The first record may be given a partition twice: before its topic is known, and then. */
TEST(partitions_take_turns_with_records_that_have_no_key) {
    int counts[PARTITIONS] = {0};
    count_partitions(NULL, counts);
    for (int i = 0; i < PARTITIONS; i++) assert_in_range(counts[i], TURNS - 1, TURNS + 1);
}

TEST(an_empty_key_is_a_key_whose_records_share_a_partition) {
    struct broker broker;
    struct events events = {0};
    struct sent sent[PARTITIONS * TURNS];
    struct error err;
    int used = 0;
    broker_start(&broker, PARTITIONS);
    struct sink *sink = producer_start(&broker, &events, NULL);
    for (int i = 0; i < PARTITIONS * TURNS; i++) {
        sent[i] = result_of("result");
        sent[i].record.topic = broker.jobs;
        sent[i].record.has_key = true;
        sent[i].record.key = i % 2 == 0 ? slice_of_text("") : (struct slice){0};
        sink_send(sink, &sent[i].record);
    }
    assert_int_equal(sink_flush(sink, KAFKA_PATIENCE_MS, &err), ERR_OK);
    for (int i = 0; i < PARTITIONS; i++) used += broker_end(&broker, i) > 0;
    assert_int_equal(used, 1);
    sink_destroy(sink);
    broker_stop(&broker);
}

TEST(the_users_choice_of_partitions_is_kept) {
    struct setting one_for_long[] = {{"sticky.partitioning.linger.ms", "900000"}, {NULL, NULL}};
    int counts[PARTITIONS] = {0}, used = 0;
    count_partitions(one_for_long, counts);
    for (int i = 0; i < PARTITIONS; i++) used += counts[i] > 0;
    assert_int_equal(used, 1);
}

TEST(a_full_queue_is_waited_for) {
    enum { COUNT = 2000 };
    static struct sent sent[COUNT];
    struct broker broker;
    struct events events = {0};
    struct error err;
    struct setting settings[] = {{"queue.buffering.max.messages", "10"}, {NULL, NULL}};
    broker_start(&broker, 1);
    struct sink *sink = producer_start(&broker, &events, settings);
    for (int i = 0; i < COUNT; i++) {
        sent[i] = result_of("result");
        sink_send(sink, &sent[i].record);
    }
    assert_int_equal(sink_flush(sink, KAFKA_PATIENCE_MS, &err), ERR_OK);
    for (int i = 0; i < COUNT; i++) expect_code(&sent[i], ERR_OK);
    sink_destroy(sink);
    broker_stop(&broker);
}

TEST(a_record_that_is_too_large_is_refused_for_good) {
    struct broker broker;
    struct events events = {0};
    struct setting settings[] = {{"message.max.bytes", "1000"}, {NULL, NULL}};
    char text[2001];
    memset(text, 'x', 2000);
    text[2000] = 0;
    broker_start(&broker, 1);
    struct sink *sink = producer_start(&broker, &events, settings);
    struct sent large = result_of(text), small = result_of("small");
    sink_send(sink, &large.record);
    sink_send(sink, &small.record);
    sent_wait(sink, &large);
    sent_wait(sink, &small);
    expect_code(&large, ERR_PUBLISH_REFUSED);
    expect_code(&small, ERR_OK);
    assert_non_null(strstr(large.err.message, broker.results));
    assert_non_null(strstr(large.err.message, "2000 bytes"));
    sink_destroy(sink);
    broker_stop(&broker);
}

TEST(a_record_that_the_broker_refuses_is_told_without_its_bytes) {
    struct broker broker;
    struct events events = {0};
    char text[2001];
    if (!kafka_is_complete()) skip();
    memset(text, 'x', 2000);
    text[2000] = 0;
    broker_start(&broker, 1);
    char narrow[80];
    snprintf(narrow, sizeof narrow, "narrow-%s", broker.results);
    broker_create_narrow_topic(&broker, narrow, "1000");
    struct sink *sink = producer_start(&broker, &events, NULL);
    struct sent large = result_of(text), small = result_of("small");
    large.record.topic = small.record.topic = narrow;
    sink_send(sink, &large.record);
    sent_wait(sink, &large);
    sink_send(sink, &small.record);
    sent_wait(sink, &small);
    expect_code(&large, ERR_PUBLISH_REFUSED);
    expect_code(&small, ERR_OK);
    assert_non_null(strstr(large.err.message, narrow));
    assert_non_null(strstr(large.err.message, "Message size too large"));
    assert_null(strstr(large.err.message, "xxx"));
    sink_destroy(sink);
    broker_stop(&broker);
}

/* Sends records of 471 bytes at once, and one more; `refuse` makes the broker refuse their batch.
 */
static void send_crowd(struct broker *broker, char *topic, void (*refuse)(struct broker *broker),
    struct slice another, enum err code_of_another) {
    enum { COUNT = 300 };
    static uint8_t bytes[471];
    static struct sent crowd[COUNT], one;
    struct events events = {0};
    struct setting settings[] = {{"linger.ms", "200"}, {NULL, NULL}};
    struct sink *sink = producer_start(broker, &events, settings);
    if (refuse != NULL) refuse(broker);
    for (int i = 0; i < COUNT; i++) {
        crowd[i] = result_of("");
        crowd[i].record.payload = slice_of(bytes, sizeof bytes);
        crowd[i].record.topic = topic;
        sink_send(sink, &crowd[i].record);
        if (i != COUNT / 2) continue;
        one = result_of("");
        one.record.payload = another;
        one.record.topic = topic;
        sink_send(sink, &one.record);
    }
    for (int i = 0; i < COUNT; i++) {
        sent_wait(sink, &crowd[i]);
        expect_code(&crowd[i], ERR_OK);
    }
    sent_wait(sink, &one);
    expect_code(&one, code_of_another);
    sink_destroy(sink);
}

static void refuse_once(struct broker *broker) {
    broker_refuse(broker, REQUEST_PRODUCE, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, 1);
}

TEST(a_batch_that_is_refused_is_sent_again_in_smaller_ones) {
    struct broker broker;
    char narrow[80];
    broker_start(&broker, 1);
    snprintf(narrow, sizeof narrow, "narrow-%s", broker.results);
    if (kafka_is_complete()) broker_create_narrow_topic(&broker, narrow, "10000");
    send_crowd(&broker, kafka_is_complete() ? narrow : NULL,
        kafka_is_complete() ? NULL : refuse_once, slice_of_text("small"), ERR_OK);
    broker_stop(&broker);
}

TEST(only_what_is_refused_alone_is_refused) {
    struct broker broker;
    static uint8_t large[20000];
    char narrow[80];
    if (!kafka_is_complete()) skip();
    broker_start(&broker, 1);
    snprintf(narrow, sizeof narrow, "narrow-%s", broker.results);
    broker_create_narrow_topic(&broker, narrow, "10000");
    send_crowd(&broker, narrow, NULL, slice_of(large, sizeof large), ERR_PUBLISH_REFUSED);
    broker_stop(&broker);
}

TEST(a_topic_that_does_not_exist_is_refused_headers_and_all) {
    struct broker broker;
    struct events events = {0};
    struct setting settings[] = {{"topic.metadata.propagation.max.ms", "200"}, {NULL, NULL}};
    struct header header = {slice_of_text("name"), slice_of_text("value")};
    char missing[] = "no such topic"; /* a name that a real broker does not even create */
    broker_start(&broker, 1);
    broker_hide_topic(&broker, missing, true);
    struct sink *sink = producer_start(&broker, &events, settings);
    /* The first waits for the topic to appear; the others fail while they are being sent. */
    for (int i = 0; i < 5; i++) {
        struct sent sent = result_of("result");
        sent.record.topic = missing;
        sent.record.headers = &header;
        sent.record.header_count = 1;
        sink_send(sink, &sent.record);
        sent_wait(sink, &sent);
        expect_code(&sent, ERR_PUBLISH_REFUSED);
        assert_non_null(strstr(sent.err.message, missing));
    }
    sink_destroy(sink);
    broker_stop(&broker);
}

static struct sink *chained_sink;
static struct sent chained;

static void send_another(struct record *record, enum err code, const struct error *err) {
    sent_note(record, code, err);
    sink_send(chained_sink, &chained.record);
}

TEST(settling_a_record_may_send_another) {
    struct broker broker;
    struct events events = {0};
    struct error err;
    struct setting settings[] = {{"message.max.bytes", "1000"}, {NULL, NULL}};
    char text[2001];
    memset(text, 'x', 2000);
    text[2000] = 0;
    broker_start(&broker, 1);
    chained_sink = producer_start(&broker, &events, settings);
    chained = result_of("small");
    struct sent large = result_of(text);
    large.record.on_settled = send_another;
    sink_send(chained_sink, &large.record);
    assert_int_equal(sink_flush(chained_sink, KAFKA_PATIENCE_MS, &err), ERR_OK);
    expect_code(&large, ERR_PUBLISH_REFUSED);
    expect_code(&chained, ERR_OK);
    sink_destroy(chained_sink);
    broker_stop(&broker);
}

TEST(a_flush_that_takes_too_long_says_what_is_left) {
    struct broker broker;
    struct events events = {0};
    struct error err;
    struct broker nobody = {.bootstrap = "127.0.0.1:1", .results = "results"};
    broker_start(&broker, 1);
    struct sink *sink = producer_start(&nobody, &events, NULL);
    struct sent sent = result_of("result");
    sink_send(sink, &sent.record);
    assert_int_equal(sink_flush(sink, 10, &err), ERR_TIMEOUT);
    assert_non_null(strstr(err.message, "1 message"));
    assert_int_equal(sent.settled_count, 0);
    sink_destroy(sink);
    expect_code(&sent, ERR_BROKER);
    broker_stop(&broker);
}

TEST(an_outage_is_reported_and_loses_nothing) {
    struct broker broker;
    struct events events = {0};
    struct setting settings[] = {{"reconnect.backoff.max.ms", "100"}, {NULL, NULL}};
    if (!kafka_obeys()) skip();
    broker_start(&broker, 1);
    struct sink *sink = producer_start(&broker, &events, settings);
    struct sent before = result_of("before"), during = result_of("during");
    sink_send(sink, &before.record);
    sent_wait(sink, &before);
    broker_go_down(&broker);
    sink_send(sink, &during.record);
    WAIT_DOING(events.worst_level, >=, LOG_ERROR, sink_serve(sink, KAFKA_POLL_MS));
    assert_int_equal(during.settled_count, 0);
    broker_come_up(&broker);
    sent_wait(sink, &during);
    expect_code(&during, ERR_OK);
    sink_destroy(sink);
    broker_stop(&broker);
}

TEST(a_fatal_error_settles_everything_as_a_lost_sink) {
    struct broker broker;
    struct events events = {0};
    if (!kafka_obeys()) skip();
    broker_start(&broker, 1);
    struct sink *sink = producer_start(&broker, &events, NULL);
    struct sent first = result_of("first"), second = result_of("second");
    sink_send(sink, &first.record);
    sent_wait(sink, &first);
    broker_refuse(&broker, REQUEST_PRODUCE, RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED, 1);
    sink_send(sink, &second.record);
    sent_wait(sink, &second);
    expect_code(&second, ERR_BROKER);
    sink_destroy(sink);
    broker_stop(&broker);
}

TEST(a_setting_that_librdkafka_refuses_is_named) {
    char *key = "linger.ms", *value = "soon";
    struct producer_options options = {.kafka = {.bootstrap_servers = "127.0.0.1:1",
                                           .setting_count = 1,
                                           .setting_keys = &key,
                                           .setting_values = &value}};
    struct sink *sink = NULL;
    struct error err;
    assert_int_equal(producer_create(&options, &sink, &err), ERR_CONFIG);
    assert_non_null(strstr(err.message, "kafka.producer.linger.ms"));
    options.kafka.bootstrap_servers = NULL;
    assert_int_equal(producer_create(&options, &sink, &err), ERR_CONFIG);
    assert_non_null(strstr(err.message, "kafka.bootstrap_servers"));
}

RUN_TESTS_AT_ONCE(T(a_record_is_settled_when_the_broker_has_it),
    T(routes_and_records_name_the_topic), T(partitions_take_turns_with_records_that_have_no_key),
    T(an_empty_key_is_a_key_whose_records_share_a_partition),
    T(the_users_choice_of_partitions_is_kept), T(a_full_queue_is_waited_for),
    T(a_record_that_is_too_large_is_refused_for_good),
    T(a_record_that_the_broker_refuses_is_told_without_its_bytes),
    T(a_batch_that_is_refused_is_sent_again_in_smaller_ones),
    T(only_what_is_refused_alone_is_refused),
    T(a_topic_that_does_not_exist_is_refused_headers_and_all),
    T(settling_a_record_may_send_another), T(a_flush_that_takes_too_long_says_what_is_left),
    T(an_outage_is_reported_and_loses_nothing), T(a_fatal_error_settles_everything_as_a_lost_sink),
    T(a_setting_that_librdkafka_refuses_is_named))
