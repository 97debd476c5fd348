/* Topics of results that refuse some of them. Against a real Kafka alone (CMakeLists.txt). */
#include <stdio.h>
#include <string.h>

#include "broker/kafka_harness.h"
#include "broker/preflight.h"
#include "support/at_once.h"

enum { RESULT_BYTES = 1000000, TIMEOUT_MS = 60000 };

static enum err check(const struct broker *broker, const char *topic, struct error *err) {
    const struct preflight_options options = {
        .kafka = {.bootstrap_servers = (char *)(uintptr_t)broker->bootstrap},
        .section = "kafka.producer",
        .topic = topic,
        .result_bytes = RESULT_BYTES,
        .timeout_ms = TIMEOUT_MS};
    return preflight(&options, err);
}

TEST(a_topic_that_is_too_narrow_for_results_is_found) {
    struct broker broker;
    struct error err;
    char narrow[80];
    broker_start(&broker, 1);
    snprintf(narrow, sizeof narrow, "narrow-%s", broker.results);
    broker_create_narrow_topic(&broker, narrow, "100000");
    assert_int_equal(check(&broker, broker.results, &err), ERR_OK);
    assert_int_equal(check(&broker, narrow, &err), ERR_BROKER);
    assert_non_null(strstr(err.message, "takes messages of 100000 bytes at most"));
    broker_stop(&broker);
}

TEST(a_compacted_topic_is_found_and_refuses_only_what_has_no_key) {
    enum { COUNT = 20 };
    struct broker broker;
    struct events events = {0};
    struct error err;
    struct sent sent[COUNT];
    struct setting settings[] = {{"linger.ms", "200"}, {NULL, NULL}};
    char compacted[80];
    broker_start(&broker, 1);
    snprintf(compacted, sizeof compacted, "compacted-%s", broker.results);
    broker_create_compacted_topic(&broker, compacted);
    assert_int_equal(check(&broker, compacted, &err), ERR_BROKER);
    assert_non_null(strstr(err.message, "is compacted"));

    struct sink *sink = producer_start(&broker, &events, settings);
    for (int i = 0; i < COUNT; i++) {
        sent[i] = (struct sent){.record = {.topic = compacted,
                                    .has_key = i != 7,
                                    .key = slice_of_text("key"),
                                    .payload = slice_of_text("result"),
                                    .on_settled = sent_note}};
        sink_send(sink, &sent[i].record);
    }
    for (int i = 0; i < COUNT; i++) {
        sent_wait(sink, &sent[i]);
        assert_int_equal(sent[i].code, i == 7 ? ERR_PUBLISH_REFUSED : ERR_OK);
    }
    sink_destroy(sink);
    broker_stop(&broker);
}

RUN_TESTS_AT_ONCE(T(a_topic_that_is_too_narrow_for_results_is_found),
    T(a_compacted_topic_is_found_and_refuses_only_what_has_no_key))
