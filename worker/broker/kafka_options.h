/**
 * The options that a Kafka consumer and a Kafka producer have in common. They are read only while
 * the client is created; only `context` must live longer.
 */
#ifndef BROKER_KAFKA_OPTIONS_H
#define BROKER_KAFKA_OPTIONS_H

#include <stdbool.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"

/**
 * Reports something that an operator may want to know and that the client recovers from: a broker
 * is away, partitions were assigned or revoked, a commit failed. `err` is NULL if nothing is wrong.
 * Called by the thread that polls the source or owns the sink, inside its calls.
 */
typedef void kafka_event_fn(
    void *context, enum log_level level, const char *what, const struct error *err);

struct kafka_options {
    const char *bootstrap_servers;
    size_t setting_count; /* passed to librdkafka unchanged; they override our defaults */
    char *const *setting_keys;
    char *const *setting_values;
    kafka_event_fn *on_event; /* NULL: events are dropped */
    void *context;
};

/** Whether the user has set `key`. */
static inline bool kafka_options_have(const struct kafka_options *options, const char *key) {
    for (size_t i = 0; i < options->setting_count; i++)
        if (strcmp(options->setting_keys[i], key) == 0) return true;
    return false;
}

#endif
