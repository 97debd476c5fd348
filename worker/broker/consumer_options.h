/**
 * What a member of a consumer group is told (consumer.h). Read while it is created, and free to go
 * afterwards, but for what kafka_options.h says.
 */
#ifndef BROKER_CONSUMER_OPTIONS_H
#define BROKER_CONSUMER_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

#include "broker/kafka_options.h"

struct consumer_options {
    struct kafka_options kafka;
    const char *group;
    const char *instance_id;    /* of a static member; "" or NULL: a dynamic one */
    uint64_t owner;             /* who this is where it finds its own state again; 0: nowhere */
    uint64_t fetch_ahead_bytes; /* how much the client holds of messages that were not polled yet */
    size_t topic_count;
    char *const *topics;
    bool commits_elsewhere; /* in transactions (transaction.h), never here */
    uint32_t commit_interval_ms;
    uint32_t drain_timeout_ms;
};

#endif
