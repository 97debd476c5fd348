#include "broker/consumer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/kafka_harness.h"
#include "support/at_once.h"
#include "support/wait.h"

TEST(messages_come_with_payload_key_headers_and_place) {
    struct broker broker;
    struct events events = {0};
    broker_start(&broker, 1);
    struct header headers[] = {{slice_of_text("traceparent"), slice_of_text("00-ab")},
        {slice_of_text("empty"), slice_of("", 0)}};
    struct sent sent = {.record = {.topic = broker.jobs,
                            .has_key = true,
                            .key = slice_of_text("key"),
                            .payload = slice_of("\x01\x00\x02", 3),
                            .header_count = 2,
                            .headers = headers,
                            .on_settled = sent_note}};
    struct sink *sink = producer_start(&broker, &events, NULL);
    sink_send(sink, &sent.record);
    sent_wait(sink, &sent);
    assert_int_equal(sent.code, ERR_OK);
    sink_destroy(sink);

    struct source *source = consumer_start(&broker, &events, NULL);
    struct delivery *delivery = NULL;
    while (delivery == NULL) {
        struct error err;
        bool at_end;
        assert_int_equal(source_poll(source, KAFKA_POLL_MS, &delivery, &at_end, &err), ERR_OK);
    }
    assert_string_equal(delivery->position.topic, broker.jobs);
    assert_int_equal(delivery->position.offset, 0);
    assert_true(slice_equal(delivery->payload, slice_of("\x01\x00\x02", 3)));
    assert_true(delivery->has_key);
    assert_true(slice_is_text(delivery->key, "key"));
    assert_int_equal(delivery->header_count, 2);
    struct slice value;
    assert_true(delivery_header(delivery, "traceparent", &value));
    assert_true(slice_is_text(value, "00-ab"));
    assert_true(delivery_header(delivery, "empty", &value));
    assert_int_equal(value.size, 0);
    source_finish(source, &delivery->position);
    delivery_destroy(delivery);
    consumer_stop(source);
    broker_stop(&broker);
}

TEST(a_restart_takes_what_was_not_finished_and_nothing_else) {
    enum { COUNT = 20, KEPT = 5 };
    struct broker broker;
    struct events events = {0};
    struct position positions[COUNT], again;
    broker_start(&broker, 1);
    broker_produce(&broker, 0, 0, COUNT);
    struct source *source = consumer_start(&broker, &events, kafka_short_session);
    consumer_take_many(source, positions, COUNT);
    broker_wait_for_commit(source, &broker, 0, 0);

    for (int i = COUNT - 1; i >= 0; i--)
        if (i != KEPT) source_finish(source, &positions[i]);
    broker_wait_for_commit(source, &broker, 0, KEPT);
    struct offsets_totals totals;
    source_get_totals(source, &totals);
    assert_int_equal(totals.unfinished_count, 1);
    assert_int_equal(totals.lowest.offset, KEPT);
    consumer_stop(source);
    assert_int_equal(broker_committed(&broker, 0), KEPT);

    source = consumer_start(&broker, &events, NULL);
    consumer_take_many(source, &again, 1);
    assert_int_equal(again.offset, KEPT);
    broker_produce(&broker, 0, COUNT, 1);
    source_finish(source, &again);
    consumer_take_many(source, &again, 1);
    assert_int_equal(again.offset, COUNT);
    broker_wait_for_commit(source, &broker, 0, COUNT);
    consumer_stop(source);
    broker_stop(&broker);
}

/* Takes `count` messages, which are those of `expected` in that order, and finishes none. */
static void take_exactly(struct source *source, const int64_t *expected, size_t count) {
    for (size_t i = 0; i < count; i++) {
        struct position position;
        consumer_take_many(source, &position, 1);
        assert_int_equal(position.offset, expected[i]);
    }
}

/* Returns the offset that was committed. */
static int64_t wait_for_metadata(
    struct source *source, const struct broker *broker, const char *metadata) {
    char text[4096] = "";
    int64_t offset = -1;
    struct wait wait = wait_begin();
    while (strcmp(text, metadata) != 0) {
        struct position position;
        if (!wait_goes_on(&wait)) fail_msg("committed '%s', not '%s'", text, metadata);
        assert_false(consumer_take(source, &position));
        offset = broker_committed_metadata(broker, 0, text, sizeof text);
    }
    return offset;
}

TEST(what_finished_out_of_order_does_not_run_again_after_a_kill) {
    enum { COUNT = 12 };
    struct broker broker;
    struct events events = {0};
    struct position positions[COUNT];
    const int64_t finished[] = {9, 3, 0, 4, 7}, unfinished[] = {1, 2, 5, 6, 8, 10, 11};
    broker_start(&broker, 1);
    broker_produce(&broker, 0, 0, COUNT);
    struct source *killed = consumer_start(&broker, &events, kafka_short_session);
    consumer_take_many(killed, positions, COUNT);
    for (int i = 0; i < 5; i++) source_finish(killed, &positions[finished[i]]);
    /* from offset 1: 3, 4, 7 and 9 are the bits 2, 3, 6 and 8 */
    assert_int_equal(
        wait_for_metadata(killed, &broker,
            "gpu-worker/1 offset=1 mark=open owner=0000000000000001 takeovers=0 window=0 "
            "finished=TAE="),
        1);
    source_finish(killed, &positions[5]); /* told to nobody any more */
    source_destroy(killed);

    struct source *source = consumer_start(&broker, &events, kafka_short_session);
    take_exactly(source, unfinished, sizeof unfinished / sizeof unfinished[0]);
    source_destroy(source);
    broker_stop(&broker);
}

TEST(closing_commits_what_finished_last) {
    struct broker broker;
    struct events events = {0};
    struct position positions[3];
    broker_start(&broker, 1);
    broker_produce(&broker, 0, 0, 3);
    struct source *source = consumer_start(&broker, &events, NULL);
    consumer_take_many(source, positions, 3);
    for (int i = 0; i < 3; i++) source_finish(source, &positions[i]);
    consumer_stop(source);
    assert_int_equal(broker_committed(&broker, 0), 3);
    broker_stop(&broker);
}

TEST(a_source_that_is_destroyed_without_closing_commits_nothing_more) {
    struct broker broker;
    struct events events = {0};
    struct position positions[3];
    broker_start(&broker, 1);
    broker_produce(&broker, 0, 0, 3);
    struct source *source = consumer_start(&broker, &events, NULL);
    consumer_take_many(source, positions, 3);
    broker_wait_for_commit(source, &broker, 0, 0);
    for (int i = 0; i < 3; i++) source_finish(source, &positions[i]);
    source_destroy(source);
    assert_int_equal(broker_committed(&broker, 0), 0);
    broker_stop(&broker);
}

/* Two members of a group, polled in turn, and what has come to each of their partitions. */
enum { PARTITIONS = 4, EACH = 25 };

struct tally {
    int times[PARTITIONS][EACH];
    int total;
    int distinct;
};

static bool take_one(struct source *source, struct tally *tally, struct position *ret) {
    if (!consumer_take(source, ret)) return false;
    assert_true(ret->partition < PARTITIONS && ret->offset < EACH);
    if (tally->times[ret->partition][ret->offset]++ == 0) tally->distinct++;
    tally->total++;
    return true;
}

/* Takes and finishes until everything is committed. */
static void finish_all(struct source *source, const struct broker *broker, struct tally *tally) {
    struct position position;
    for (int32_t p = 0; p < PARTITIONS; p++)
        WAIT_DOING(broker_committed(broker, p), ==, EACH,
            if (take_one(source, tally, &position)) source_finish(source, &position));
}

static void produce_to_all(const struct broker *broker) {
    for (int32_t p = 0; p < PARTITIONS; p++) broker_produce(broker, p, 0, EACH);
}

TEST(a_partition_changes_hands_only_when_its_started_messages_are_finished) {
    struct broker broker;
    struct events first_events = {0}, second_events = {0};
    static struct position taken[PARTITIONS * EACH];
    struct tally first_tally = {0}, second_tally = {0};
    struct position position;
    struct offsets_totals totals;
    broker_start(&broker, PARTITIONS);
    produce_to_all(&broker);
    struct source *first = consumer_start(&broker, &first_events, kafka_short_session);
    consumer_take_many(first, taken, PARTITIONS * EACH);
    for (int i = 0; i < PARTITIONS * EACH; i++) assert_true(source_start(first, &taken[i]));

    /* The second member joins; the first has been asked to give partitions back, and holds on. */
    struct source *second = consumer_start(&broker, &second_events, kafka_short_session);
    int polls_since = 0;
    WAIT_DOING(polls_since, ==, 20, {
        if (strstr(first_events.last_fact, "revoking ") != NULL) polls_since++;
        assert_false(take_one(first, &first_tally, &position));
        assert_false(take_one(second, &second_tally, &position));
    });
    source_get_totals(second, &totals);
    assert_int_equal(totals.partition_count, 0);

    for (int i = 0; i < PARTITIONS * EACH; i++) source_finish(first, &taken[i]);
    WAIT_DOING(totals.partition_count, >, 0, {
        take_one(first, &first_tally, &position);
        take_one(second, &second_tally, &position);
        source_get_totals(second, &totals);
    });

    /* A real broker takes commits while members rejoin, so that nothing comes twice. What stays
     * with the first member, in a cooperative group, may be committed later than what has moved. */
    for (int32_t p = 0; kafka_is_complete() && p < PARTITIONS; p++)
        WAIT_DOING(broker_committed(&broker, p), ==, EACH, {
            assert_false(take_one(first, &first_tally, &position));
            assert_false(take_one(second, &second_tally, &position));
        });
    consumer_stop(first);
    consumer_stop(second);
    broker_stop(&broker);
}

/* The partitions' owner may drain for long, and what it finishes meanwhile would run again if it
 * died. */
TEST(partitions_that_stay_are_committed_while_others_wait_to_be_given_back) {
    struct broker broker;
    struct events first_events = {0}, second_events = {0};
    static struct position taken[PARTITIONS * EACH];
    struct tally tally = {0};
    struct position position;
    /* older ones give all partitions back; embedded brokers refuse commits while members join */
    if (!kafka_is_complete() || rd_kafka_version() < 0x020a0000) skip();
    broker_start(&broker, PARTITIONS);
    produce_to_all(&broker);
    struct source *first = consumer_start(&broker, &first_events, NULL);
    consumer_take_many(first, taken, PARTITIONS * EACH);
    for (int i = 0; i < PARTITIONS * EACH; i++)
        if (taken[i].offset == EACH - 1) assert_true(source_start(first, &taken[i]));

    struct source *second = consumer_start(&broker, &second_events, NULL);
    WAIT_DOING(strstr(first_events.last_fact, "revoking ") != NULL, ==, true, {
        assert_false(take_one(first, &tally, &position));
        assert_false(take_one(second, &tally, &position));
    });
    bool stays[PARTITIONS] = {false};
    for (int i = 0; i < PARTITIONS * EACH; i++)
        if (taken[i].offset < EACH - 1 && source_keeps(first, &taken[i])) {
            stays[taken[i].partition] = true;
            source_finish(first, &taken[i]);
        }
    for (int32_t p = 0; p < PARTITIONS; p++)
        if (stays[p]) broker_wait_for_commit(first, &broker, p, EACH - 1);
    assert_non_null(strstr(first_events.last_fact, "revoking ")); /* still */
    assert_int_equal(stays[0] + stays[1] + stays[2] + stays[3], PARTITIONS / 2);

    for (int i = 0; i < PARTITIONS * EACH; i++) source_finish(first, &taken[i]);
    consumer_stop(first);
    consumer_stop(second);
    broker_stop(&broker);
}

/* The first member finishes what it began of the partitions that it keeps, and the second all that
 * it gets: so each message is finished by one of them. */
TEST(messages_that_have_not_started_go_to_the_new_owner_at_once) {
    enum { STARTED = 3 }; /* of each partition, the last ones */
    struct broker broker;
    struct events events = {0};
    static struct position taken[PARTITIONS * EACH];
    struct tally first_tally = {0}, second_tally = {0};
    struct position position;
    if (!kafka_is_complete()) skip(); /* embedded brokers refuse commits while members join */
    broker_start(&broker, PARTITIONS);
    produce_to_all(&broker);
    struct source *first = consumer_start(&broker, &events, NULL);
    consumer_take_many(first, taken, PARTITIONS * EACH);
    for (int i = 0; i < PARTITIONS * EACH; i++)
        if (taken[i].offset >= EACH - STARTED) assert_true(source_start(first, &taken[i]));

    struct source *second = consumer_start(&broker, &events, NULL);
    bool has_left = false;
    WAIT_DOING(has_left, ==, true, {
        assert_false(take_one(first, &first_tally, &position));
        assert_false(take_one(second, &second_tally, &position)); /* those that started are out */
        for (int i = 0; i < PARTITIONS * EACH; i++)
            has_left = has_left || !source_keeps(first, &taken[i]);
    });
    for (int i = 0; i < PARTITIONS * EACH; i++)
        if (taken[i].offset >= EACH - STARTED) source_finish(first, &taken[i]);
    /* No more of the others has to end: the first member would wait for it for ever. */
    WAIT_DOING(second_tally.total, >=, 2 * (EACH - STARTED), {
        if (take_one(first, &first_tally, &position)) source_finish(first, &position);
        if (take_one(second, &second_tally, &position)) source_finish(second, &position);
    });
    for (int i = 0; i < PARTITIONS * EACH; i++) source_finish(first, &taken[i]); /* of those kept */
    assert_int_equal(second_tally.total, 2 * (EACH - STARTED));
    consumer_stop(first);
    finish_all(second, &broker, &second_tally);
    consumer_stop(second);
    broker_stop(&broker);
}

TEST(after_the_drain_timeout_unfinished_messages_go_to_the_new_owner) {
    struct broker broker;
    struct events events = {0};
    static struct position taken[PARTITIONS * EACH];
    struct tally first_tally = {0}, second_tally = {0};
    struct position position;
    if (!kafka_is_complete()) skip(); /* embedded brokers take half a minute over it */
    broker_start(&broker, PARTITIONS);
    produce_to_all(&broker);
    struct source *first = consumer_start_draining(&broker, &events, 100);
    consumer_take_many(first, taken, PARTITIONS * EACH);
    for (int i = 0; i < PARTITIONS * EACH; i++) assert_true(source_start(first, &taken[i]));

    struct source *second = consumer_start(&broker, &events, NULL);
    WAIT_DOING(second_tally.total, >=, 2 * EACH, {
        /* An eager group moves all partitions, so the first member reads its own again. */
        if (take_one(first, &first_tally, &position)) source_finish(first, &position);
        if (take_one(second, &second_tally, &position)) source_finish(second, &position);
    });
    /* Late answers from before the rebalance change nothing for the new owner. */
    for (int i = 0; i < PARTITIONS * EACH; i++) source_finish(first, &taken[i]);
    assert_int_equal(second_tally.total, 2 * EACH);
    consumer_stop(first);
    finish_all(second, &broker, &second_tally);
    consumer_stop(second);
    broker_stop(&broker);
}

TEST(members_that_come_and_go_lose_nothing) {
    struct broker broker;
    struct events events = {0};
    struct tally tally = {0};
    struct source *members[3] = {NULL};
    if (!kafka_is_complete()) skip(); /* embedded brokers take half a minute over it */
    broker_start(&broker, PARTITIONS);
    members[0] = consumer_start(&broker, &events, NULL);
    int produced = 0, round = 0;
    WAIT_DOING(tally.distinct, ==, PARTITIONS * EACH, {
        if (round % 12 == 0 && produced < EACH) {
            for (int32_t p = 0; p < PARTITIONS; p++) broker_produce(&broker, p, produced, 1);
            produced++;
        }
        if (round == 60) members[1] = consumer_start(&broker, &events, NULL);
        if (round == 120) members[2] = consumer_start(&broker, &events, NULL);
        if (round == 220) {
            consumer_stop(members[1]);
            members[1] = NULL;
        }
        for (int m = 0; m < 3; m++) {
            struct position position;
            if (members[m] == NULL || !take_one(members[m], &tally, &position)) continue;
            source_finish(members[m], &position);
        }
        round++;
    });
    consumer_stop(members[2]);
    finish_all(members[0], &broker, &tally);
    consumer_stop(members[0]);
    for (int32_t p = 0; p < PARTITIONS; p++)
        for (int i = 0; i < EACH; i++)
            if (kafka_is_complete()) assert_int_equal(tally.times[p][i], 1);
    broker_stop(&broker);
}

TEST(a_paused_source_brings_nothing_until_it_is_resumed) {
    enum { COUNT = 50 };
    struct broker broker;
    struct events events = {0};
    struct position position;
    broker_start(&broker, 2);
    struct source *source = consumer_start(&broker, &events, NULL);
    source_pause(source, true);
    struct offsets_totals totals;
    do {
        assert_false(consumer_take(source, &position));
        source_get_totals(source, &totals);
    } while (totals.partition_count < 2);

    broker_produce(&broker, 0, 0, COUNT);
    broker_produce(&broker, 1, 0, COUNT);
    struct broker other = broker;
    snprintf(other.group, sizeof other.group, "%.50s-other", broker.group);
    struct source *witness = consumer_start(&other, &events, NULL);
    for (int i = 0; i < 2 * COUNT;) {
        if (consumer_take(witness, &position)) i++;
        assert_false(consumer_take(source, &position));
    }
    consumer_stop(witness);

    source_pause(source, false);
    int64_t next[2] = {0, 0};
    for (int i = 0; i < 2 * COUNT; i++) {
        /* Pausing throws fetched messages away; not one may be skipped or come twice. */
        if (i % 10 == 3) source_pause(source, true);
        if (i % 10 == 3) source_pause(source, false);
        consumer_take_many(source, &position, 1);
        assert_int_equal(position.offset, next[position.partition]++);
        source_finish(source, &position);
    }
    broker_wait_for_commit(source, &broker, 0, COUNT);
    broker_wait_for_commit(source, &broker, 1, COUNT);
    consumer_stop(source);
    broker_stop(&broker);
}

TEST(no_message_comes_further_than_the_window_above_the_lowest_unfinished_one) {
    enum { COUNT = OFFSETS_WINDOW + 500 };
    static struct position positions[COUNT];
    struct position position;
    struct broker broker;
    struct events events = {0};
    broker_start(&broker, 1);
    broker_produce(&broker, 0, 0, COUNT);
    struct source *source = consumer_start(&broker, &events, NULL);
    consumer_take_many(source, positions, OFFSETS_WINDOW);
    for (int polls = 0; polls < 20; polls++) assert_false(consumer_take(source, &position));

    /* All but the lowest: nothing moves. Then everything does, in order. */
    for (int i = 1; i < OFFSETS_WINDOW; i++) source_finish(source, &positions[i]);
    for (int polls = 0; polls < 20; polls++) assert_false(consumer_take(source, &position));
    source_finish(source, &positions[0]);
    consumer_take_many(source, positions + OFFSETS_WINDOW, COUNT - OFFSETS_WINDOW);
    for (int i = 0; i < COUNT; i++) assert_int_equal(positions[i].offset, i);
    for (int i = OFFSETS_WINDOW; i < COUNT; i++) source_finish(source, &positions[i]);
    broker_wait_for_commit(source, &broker, 0, COUNT);
    consumer_stop(source);
    broker_stop(&broker);
}

TEST(an_empty_partition_is_committed_at_its_end) {
    struct broker broker;
    struct events events = {0};
    broker_start(&broker, 1);
    struct source *source = consumer_start(&broker, &events, NULL);
    broker_wait_for_commit(source, &broker, 0, 0);
    consumer_stop(source);
    broker_stop(&broker);
}

TEST(a_topic_that_does_not_exist_yet_is_reported_and_read_once_it_does) {
    struct broker broker;
    struct events events = {0};
    struct position position;
    struct setting settings[] = {
        {"topic.metadata.refresh.interval.ms", "300"}, kafka_short_session[0], {NULL, NULL}};
    broker_start(&broker, 0);
    broker_hide_topic(&broker, broker.jobs, true);
    struct source *source = consumer_start(&broker, &events, settings);
    WAIT_DOING(events.errors, >, 0, assert_false(consumer_take(source, &position)));
    assert_non_null(strstr(events.last_error, broker.jobs));
    assert_int_equal(events.worst_level, LOG_WARN);
    if (kafka_is_complete()) broker_create_topic(&broker, broker.jobs, 1);
    else broker_hide_topic(&broker, broker.jobs, false);
    broker_produce(&broker, 0, 0, 1);
    consumer_take_many(source, &position, 1);
    source_finish(source, &position);
    consumer_stop(source);
    broker_stop(&broker);
}

static void expect_refused(const struct setting *setting, const char *part) {
    char *topics[] = {"jobs"};
    struct consumer_options options = {.kafka = {.bootstrap_servers = "127.0.0.1:1",
                                           .setting_count = setting != NULL,
                                           .setting_keys = &(char *){setting->key},
                                           .setting_values = &(char *){setting->value}},
        .group = "group",
        .topic_count = 1,
        .topics = topics,
        .commit_interval_ms = 50};
    struct source *source = NULL;
    struct error err;
    assert_int_equal(consumer_create(&options, &source, &err), ERR_CONFIG);
    if (strstr(err.message, part) == NULL) fail_msg("no \"%s\" in: %s", part, err.message);
}

TEST(a_setting_that_librdkafka_refuses_is_named) {
    expect_refused(&(struct setting){"no.such.key", "1"}, "kafka.consumer.no.such.key");
    expect_refused(
        &(struct setting){"session.timeout.ms", "never"}, "kafka.consumer.session.timeout.ms");
    if (rd_kafka_version() < 0x020a0000)
        expect_refused(&(struct setting){"partition.assignment.strategy", "cooperative-sticky"},
            "kafka.consumer.partition.assignment.strategy");
}

RUN_TESTS_AT_ONCE(T(messages_come_with_payload_key_headers_and_place),
    T(a_restart_takes_what_was_not_finished_and_nothing_else),
    T(what_finished_out_of_order_does_not_run_again_after_a_kill),
    T(closing_commits_what_finished_last),
    T(a_source_that_is_destroyed_without_closing_commits_nothing_more),
    T(a_partition_changes_hands_only_when_its_started_messages_are_finished),
    T(partitions_that_stay_are_committed_while_others_wait_to_be_given_back),
    T(messages_that_have_not_started_go_to_the_new_owner_at_once),
    T(after_the_drain_timeout_unfinished_messages_go_to_the_new_owner),
    T(members_that_come_and_go_lose_nothing), T(a_paused_source_brings_nothing_until_it_is_resumed),
    T(no_message_comes_further_than_the_window_above_the_lowest_unfinished_one),
    T(an_empty_partition_is_committed_at_its_end),
    T(a_topic_that_does_not_exist_yet_is_reported_and_read_once_it_does),
    T(a_setting_that_librdkafka_refuses_is_named))
