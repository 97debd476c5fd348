/**
 * The options of a member of a consumer group (consumer.h). They are read only while it is created,
 * except for what kafka_options.h says.
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
    uint64_t owner;             /* identifies the owner of a state folder; 0: there is none */
    uint64_t fetch_ahead_bytes; /* how much the client may fetch ahead */
    uint32_t fetch_wait_ms;     /* how long brokers hold a fetch that finds nothing; 0: their own */
    size_t topic_count;
    char *const *topics;
    uint32_t partitions; /* it takes so many of each topic itself, and is in no group; 0: what its
                            group gives it */
    bool commits_elsewhere; /* offsets are committed in transactions (transaction.h), never by the
                               consumer */
    uint32_t commit_interval_ms;
    uint32_t drain_timeout_ms;
    uint64_t poll_interval_ms; /* for at least so long the group waits for this member to give
                                  partitions back; the settings' max.poll.interval.ms goes first */
};

#endif
