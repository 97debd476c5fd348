/**
 * A sink that publishes to Kafka, over librdkafka's idempotent producer: acknowledged by all
 * in-sync replicas, no duplicates from retries, in order for each partition.
 *
 * A record waits for its brokers as long as it takes (`message.timeout.ms` 0). So an outage loses
 * nothing: on_event reports it, and the worker pauses once enough is in flight. A flush, or a
 * `message.timeout.ms` of the user's, ends the wait. If a topic does not exist and the brokers do
 * not create it, its records are refused after `topic.metadata.propagation.max.ms` (5 s).
 */
#ifndef BROKER_PRODUCER_H
#define BROKER_PRODUCER_H

#include "broker/kafka_options.h"
#include "broker/sink.h"

struct producer_options {
    struct kafka_options kafka;
    const char *results_topic; /* all must outlive the sink; NULL: nothing is sent there */
    const char *dead_letters_topic;
    const char *telemetry_topic;
    const char *progress_topic;
    const char *transactional_id; /* for transaction.h; NULL: records are not in transactions */
    /* How long to wait until it knows the topics; 0: not at all. The first record for a topic that
     * it does not know may wait for a second. */
    int topics_timeout_ms;
};

/** Does not wait for brokers, unless the options say so. Errors: ERR_CONFIG names the setting that
 * librdkafka refuses. */
MUST_CHECK enum err producer_create(
    const struct producer_options *options, struct sink **ret, struct error *err);

#endif
