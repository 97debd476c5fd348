/* Requests that fail, and brokers that go, of a broker that does as it is told. */
#include <string.h>

#include "broker/consumer.h"
#include "broker/kafka_harness.h"
#include "support/at_once.h"
#include "support/wait.h"

TEST(a_member_that_stops_outside_its_group_ends_well) {
    struct broker broker;
    struct events events = {0};
    struct position position;
    if (!kafka_obeys()) skip(); /* real brokers do not refuse at will */
    broker_start(&broker, 1);
    broker_produce(&broker, 0, 0, 1);
    struct source *source = consumer_start(&broker, &events, NULL);
    consumer_take_many(source, &position, 1);
    broker_refuse(&broker, REQUEST_OFFSET_COMMIT, RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID, 100);
    source_finish(source, &position);
    consumer_stop(source);
    broker_stop(&broker);
}

TEST(a_commit_that_fails_is_reported_once_and_made_again) {
    struct broker broker;
    struct events events = {0};
    struct position position;
    broker_start(&broker, 1);
    broker_produce(&broker, 0, 0, 1);
    struct source *source = consumer_start(&broker, &events, NULL);
    consumer_take_many(source, &position, 1);
    broker_wait_for_commit(source, &broker, 0, 0);
    broker_refuse(&broker, REQUEST_OFFSET_COMMIT, RD_KAFKA_RESP_ERR_INVALID_COMMIT_OFFSET_SIZE, 2);
    source_finish(source, &position);
    broker_wait_for_commit(source, &broker, 0, 1);
    assert_int_equal(events.errors, 1);
    assert_int_equal(events.last_native, RD_KAFKA_RESP_ERR_INVALID_COMMIT_OFFSET_SIZE);
    consumer_stop(source);
    broker_stop(&broker);
}

/* As a frozen process does, or one whose broker was away. */
TEST(who_is_put_out_of_its_group_while_it_takes_partitions_over_joins_again) {
    struct broker broker;
    struct events events = {0};
    struct position position;
    broker_start(&broker, 1);
    broker_produce(&broker, 0, 0, 1);
    /* The consumer cannot take over for longer than its group waits for it. */
    broker_refuse(&broker, REQUEST_OFFSET_COMMIT, RD_KAFKA_RESP_ERR_INVALID_COMMIT_OFFSET_SIZE, 30);
    broker_refuse(&broker, REQUEST_HEARTBEAT, RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID, 1);
    struct source *source = consumer_start(&broker, &events, kafka_short_session);
    consumer_take_many(source, &position, 1);
    source_finish(source, &position);
    broker_wait_for_commit(source, &broker, 0, 1);
    consumer_stop(source);
    broker_stop(&broker);
}

/* Until the group tells what it has committed, a topic may have been created anew. */
static struct source *start_with_a_silent_group(struct broker *broker, struct events *events) {
    struct position positions[2];
    broker_start(broker, 1);
    broker_hide_ids(broker);
    broker_produce(broker, 0, 0, 2);
    struct source *source = consumer_start(broker, events, NULL);
    consumer_take_many(source, positions, 2);
    source_finish(source, &positions[0]);
    broker_wait_for_commit(source, broker, 0, 1);
    broker_refuse(broker, REQUEST_OFFSET_FETCH, RD_KAFKA_RESP_ERR_INVALID_REQUEST, 100);
    source_finish(source, &positions[1]);
    return source;
}

TEST(nothing_is_committed_before_the_group_tells_that_its_topic_is_the_same) {
    struct broker broker;
    struct events events = {0};
    struct position position;
    struct source *source = start_with_a_silent_group(&broker, &events);
    WAIT_DOING(events.errors, ==, 1, assert_false(consumer_take(source, &position)));
    assert_int_equal(events.last_native, RD_KAFKA_RESP_ERR_INVALID_REQUEST);
    broker_accept(&broker, REQUEST_OFFSET_FETCH);
    assert_int_equal(broker_committed(&broker, 0), 1);
    broker_wait_for_commit(source, &broker, 0, 2);
    assert_int_equal(events.errors, 1);
    consumer_stop(source);
    broker_stop(&broker);
}

TEST(nor_when_its_partitions_are_given_back) {
    struct broker broker;
    struct events events = {0};
    struct error err;
    struct source *source = start_with_a_silent_group(&broker, &events);
    assert_int_equal(source_close(source, KAFKA_PATIENCE_MS, &err), ERR_BROKER);
    source_destroy(source);
    broker_accept(&broker, REQUEST_OFFSET_FETCH);
    assert_int_equal(broker_committed(&broker, 0), 1);
    broker_stop(&broker);
}

TEST(a_group_that_may_not_be_joined_is_the_end) {
    struct broker broker;
    struct events events = {0};
    broker_start(&broker, 1);
    broker_refuse(&broker, REQUEST_JOIN_GROUP, RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED, 1);
    struct source *source = consumer_start(&broker, &events, NULL);
    struct error err;
    assert_int_equal(consumer_fail(source, &err), ERR_BROKER);
    assert_int_equal(err.native, RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED);
    source_destroy(source);
    broker_stop(&broker);
}

TEST(an_outage_is_reported_and_over_when_the_broker_is_back) {
    struct broker broker;
    struct events events = {0};
    struct position position;
    struct setting settings[] = {{"reconnect.backoff.max.ms", "100"}, {NULL, NULL}};
    broker_start(&broker, 1);
    broker_produce(&broker, 0, 0, 1);
    struct source *source = consumer_start(&broker, &events, settings);
    consumer_take_many(source, &position, 1);
    source_finish(source, &position);
    broker_wait_for_commit(source, &broker, 0, 1);

    broker_go_down(&broker);
    WAIT_DOING(events.worst_level, >=, LOG_ERROR, assert_false(consumer_take(source, &position)));
    broker_come_up(&broker);
    broker_produce(&broker, 0, 1, 1);
    do consumer_take_many(source, &position, 1);
    while (position.offset < 1);
    source_finish(source, &position);
    broker_wait_for_commit(source, &broker, 0, 2);
    consumer_stop(source);
    broker_stop(&broker);
}

TEST(closing_without_a_broker_gives_up_in_time) {
    struct broker broker;
    struct events events = {0};
    struct position position;
    struct error err;
    broker_start(&broker, 1);
    broker_produce(&broker, 0, 0, 1);
    struct source *source = consumer_start(&broker, &events, NULL);
    consumer_take_many(source, &position, 1);
    broker_wait_for_commit(source, &broker, 0, 0);
    broker_go_down(&broker);
    source_finish(source, &position);
    assert_int_equal(source_close(source, 200, &err), ERR_BROKER);
    source_destroy(source);
    broker_stop(&broker);
}

RUN_TESTS_AT_ONCE(T(a_member_that_stops_outside_its_group_ends_well),
    T(a_commit_that_fails_is_reported_once_and_made_again),
    T(who_is_put_out_of_its_group_while_it_takes_partitions_over_joins_again),
    T(a_group_that_may_not_be_joined_is_the_end),
    T(nothing_is_committed_before_the_group_tells_that_its_topic_is_the_same),
    T(nor_when_its_partitions_are_given_back),
    T(an_outage_is_reported_and_over_when_the_broker_is_back),
    T(closing_without_a_broker_gives_up_in_time))
