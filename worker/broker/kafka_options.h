/**
 * What a Kafka consumer and a Kafka producer are told alike. Everything but `context` is read while
 * they are created, and is free to go afterwards.
 */
#ifndef BROKER_KAFKA_OPTIONS_H
#define BROKER_KAFKA_OPTIONS_H

#include "base/error.h"
#include "base/log.h"

/**
 * Something that an operator may want to know, and after which the client goes on: a broker is
 * away, partitions come or go, a commit failed. `err` is NULL where nothing is wrong.
 * Called by the thread that polls the source or owns the sink, from inside its calls.
 */
typedef void kafka_event_fn(
    void *context, enum log_level level, const char *what, const struct error *err);

struct kafka_options {
    const char *bootstrap_servers;
    size_t setting_count; /* go to librdkafka over our defaults, as they are */
    char *const *setting_keys;
    char *const *setting_values;
    kafka_event_fn *on_event; /* NULL: nobody listens */
    void *context;
};

#endif
