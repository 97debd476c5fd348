/* Runs against the embedded broker. */
#include "broker/ownership.h"

#include <string.h>

#include "broker/kafka_harness.h"
#include "testing.h"

#define NOBODY "owner=0000000000000000 "

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
    struct source *killed = consumer_start(&broker, &events, NULL);
    consumer_take_many(killed, positions, 1);
    assert_true(
        is_committed(&broker, "gpu-worker/1 mark=open " NOBODY "takeovers=0 window=0 finished="));
    source_destroy(killed);

    struct source *source = consumer_start(&broker, &events, NULL);
    consumer_take_many(source, positions, 1);
    assert_true(is_committed(
        &broker, "gpu-worker/1 mark=open " NOBODY "takeovers=1 window=16384 finished="));
    consumer_take_many(source, positions, 2);
    /* at the end of the partition it is known how many there were */
    for (int polls = KAFKA_PATIENCE_MS / KAFKA_POLL_MS;
         !is_committed(&broker, "gpu-worker/1 mark=open " NOBODY "takeovers=1 window=3 finished=");
         polls--) {
        assert_true(polls > 0);
        assert_false(consumer_take(source, positions));
    }
    consumer_stop(source);
    assert_true(
        is_committed(&broker, "gpu-worker/1 mark=clean " NOBODY "takeovers=1 window=3 finished="));
    broker_stop(&broker);
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

RUN_TESTS(T(a_group_is_told_who_has_a_partition_before_a_message_comes),
    T(a_partition_without_a_place_to_start_fails_as_configured))
