/**
 * Asks the brokers, before anything depends on them, whether they accept our certificate, user and
 * password, whether a topic exists, and whether results suit it. It uses a client of its own, joins
 * no group, and creates and writes nothing.
 *
 * Threads: one call at a time.
 */
#ifndef BROKER_PREFLIGHT_H
#define BROKER_PREFLIGHT_H

#include "broker/kafka_options.h"

struct preflight_options {
    struct kafka_options kafka; /* on_event is not called */
    const char *section;        /* the section of its settings, such as "kafka.consumer" */
    const char *topic;          /* NULL: asks for none */
    uint64_t result_bytes;      /* 0: it is no topic for results; else their limit */
    int timeout_ms;
};

/**
 * ERR_OK: a broker answered, and has the topic. ERR_TIMEOUT: no broker answered. ERR_BROKER: they
 * refuse the worker, or the topic, or would refuse or drop results; that is not found where the
 * worker may not read the topic's configuration. ERR_CONFIG names the setting that librdkafka
 * refuses.
 */
MUST_CHECK enum err preflight(const struct preflight_options *options, struct error *err);

#endif
