/**
 * A first word with the brokers, before anything depends on them: do they take our certificate,
 * user and password, and is a topic there? Through a client of its own, which is gone at the
 * end; joins no group, creates and writes nothing.
 *
 * Threads: one call at a time.
 */
#ifndef BROKER_PREFLIGHT_H
#define BROKER_PREFLIGHT_H

#include "broker/kafka_options.h"

struct preflight_options {
    struct kafka_options kafka; /* on_event is not called */
    const char *section;        /* where its settings stand, such as "kafka.consumer" */
    const char *topic;          /* NULL: none is asked for */
    int timeout_ms;
};

/**
 * ERR_OK: a broker answered, and knows the topic. ERR_TIMEOUT: none is there, it seems. ERR_BROKER:
 * they refuse us, or the topic. ERR_CONFIG: the setting that librdkafka refuses.
 */
MUST_CHECK enum err preflight(const struct preflight_options *options, struct error *err);

#endif
