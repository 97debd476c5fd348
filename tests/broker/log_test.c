/* What the log of a partition does to its reader. Embedded brokers have no markers and no
 * retention. */
#include <stdio.h>
#include <string.h>

#include "broker/kafka_harness.h"
#include "support/at_once.h"
#include "support/wait.h"

TEST(markers_of_transactions_leave_no_lag) {
    struct broker broker;
    struct events events = {0};
    struct position positions[3];
    broker_start(&broker, 1);
    broker_produce_in_transaction(&broker, 0, 3, COMMITTED);
    broker_produce_in_transaction(&broker, 0, 5, ABORTED);
    WAIT_FOR(broker_end(&broker, 0), ==, 3 + 1 + 5 + 1); /* markers come after the answer */
    struct source *source = consumer_start(&broker, &events, NULL);
    consumer_take_many(source, positions, 3);
    broker_wait_for_commit(source, &broker, 0, 0);
    for (int i = 0; i < 3; i++) source_finish(source, &positions[i]);
    broker_wait_for_commit(source, &broker, 0, 10);
    consumer_stop(source);
    broker_stop(&broker);
}

/* Pausing throws away the notice of the end, too. */
TEST(an_end_that_came_while_the_source_was_paused_leaves_no_lag) {
    struct broker broker;
    struct events events = {0};
    struct position positions[3], none;
    broker_start(&broker, 1);
    broker_produce_in_transaction(&broker, 0, 3, COMMITTED);
    struct source *source = consumer_start(&broker, &events, NULL);
    consumer_take_many(source, positions, 3);
    source_pause(source, true);
    for (int i = 0; i < 3; i++) source_finish(source, &positions[i]);
    broker_wait_for_commit(source, &broker, 0, 3);
    source_pause(source, false);
    broker_wait_for_commit(source, &broker, 0, 4);
    assert_false(consumer_take(source, &none));
    consumer_stop(source);
    broker_stop(&broker);
}

enum { COUNT = 30 };

/* A group that has finished the messages with a 1, and the first of which are deleted by now. */
static void overtake(struct broker *broker, const char *finished, int deleted) {
    struct events events = {0};
    struct position positions[COUNT];
    broker_start(broker, 1);
    broker_produce(broker, 0, 0, COUNT);
    struct source *source = consumer_start(broker, &events, NULL);
    consumer_take_many(source, positions, COUNT);
    for (int i = 0; finished[i] != 0; i++)
        if (finished[i] == '1') source_finish(source, &positions[i]);
    consumer_stop(source);
    broker_delete_records(broker, 0, deleted);
}

TEST(messages_that_retention_took_are_counted_and_named) {
    struct broker broker;
    struct events events = {0};
    struct position position;
    char expected[256];
    overtake(&broker, "11111", 20);
    struct source *source = consumer_start(&broker, &events, NULL);
    consumer_take_many(source, &position, 1);
    assert_int_equal(position.offset, 20);
    snprintf(expected, sizeof expected, "%s [0] lost 15 messages to retention, from offset 5 to 19",
        broker.jobs);
    if (strstr(events.last_fact, expected) == NULL) fail_msg("not told: %s", events.last_fact);
    assert_int_equal(events.worst_level, LOG_ERROR);
    assert_int_equal(source_expired_count(source), 15);
    consumer_stop(source);
    broker_stop(&broker);
}

TEST(what_retention_left_is_read_whatever_the_settings_say_of_new_groups) {
    struct broker broker;
    struct events events = {0};
    struct position position;
    struct setting settings[] = {{"auto.offset.reset", "latest"}, {NULL, NULL}};
    overtake(&broker, "11111", 20);
    struct source *source = consumer_start(&broker, &events, settings);
    consumer_take_many(source, &position, 1);
    assert_int_equal(position.offset, 20);
    assert_int_equal(source_expired_count(source), 15);
    consumer_stop(source);
    broker_stop(&broker);
}

TEST(what_was_answered_before_retention_took_it_is_not_lost) {
    struct broker broker;
    struct events events = {0};
    struct position position;
    overtake(&broker, "11111111111111111111", 20);
    struct source *source = consumer_start(&broker, &events, NULL);
    consumer_take_many(source, &position, 1);
    assert_int_equal(position.offset, 20);
    assert_int_equal(source_expired_count(source), 0);
    consumer_stop(source);
    broker_stop(&broker);
}

TEST(what_was_answered_above_the_committed_offset_is_not_lost_either) {
    struct broker broker;
    struct events events = {0};
    struct position position;
    overtake(&broker, "11111001111111111000000001", 20);
    struct source *source = consumer_start(&broker, &events, NULL);
    consumer_take_many(source, &position, 1);
    assert_int_equal(position.offset, 20);
    assert_non_null(strstr(events.last_fact, "lost 5 messages to retention, from offset 5 to 19"));
    assert_int_equal(source_expired_count(source), 5);
    consumer_stop(source);
    broker_stop(&broker);
}

TEST(where_the_settings_forbid_a_reset_an_expired_offset_is_the_end) {
    struct broker broker;
    struct events events = {0};
    struct error err;
    struct setting settings[] = {{"auto.offset.reset", "error"}, {NULL, NULL}};
    overtake(&broker, "11111", 20);
    struct source *source = consumer_start(&broker, &events, settings);
    assert_int_equal(consumer_fail(source, &err), ERR_BROKER);
    assert_int_equal(err.native, RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET);
    source_destroy(source);
    broker_stop(&broker);
}

RUN_TESTS_AT_ONCE(T(markers_of_transactions_leave_no_lag),
    T(an_end_that_came_while_the_source_was_paused_leaves_no_lag),
    T(messages_that_retention_took_are_counted_and_named),
    T(what_retention_left_is_read_whatever_the_settings_say_of_new_groups),
    T(what_was_answered_before_retention_took_it_is_not_lost),
    T(what_was_answered_above_the_committed_offset_is_not_lost_either),
    T(where_the_settings_forbid_a_reset_an_expired_offset_is_the_end))
