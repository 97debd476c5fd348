/**
 * Partitions that are read alone first, since executors may have died of reading them, and
 * partitions that are not read at all. A fetch guard (source.h) says which.
 *
 * A trial assigns one partition to the client, reads it as far ahead as the client would, and drops
 * what it reads: it only tests whether the process survives. No message is taken meanwhile.
 *
 * Only for consumer.c; its thread's.
 */
#ifndef BROKER_TRIALS_H
#define BROKER_TRIALS_H

#include <librdkafka/rdkafka.h>
#include <stdbool.h>
#include <stdint.h>

#include "broker/client.h"
#include "broker/source.h"

struct trials {
    const struct source *source; /* whose guard is asked */
    const struct client_events *events;
    uint64_t bytes_max;                       /* of one trial */
    rd_kafka_topic_partition_list_t *waiting; /* for their trials; NULL: none */
    rd_kafka_topic_partition_list_t *current; /* one; NULL: none */
    rd_kafka_topic_partition_list_t *aside;   /* NULL: none */
    /* the current one's */
    uint64_t bytes, deadline_ns, resident_bytes; /* of the process, at its beginning */
    bool has_inflated, is_over;
    uint64_t next_look_ns;
};

void trials_init(struct trials *trials, const struct source *source,
    const struct client_events *events, uint64_t bytes_max);
void trials_fini(struct trials *trials);

/** Asks the guard about partitions that are ours now, with the offsets to read them from. */
void trials_sort(struct trials *trials, const rd_kafka_topic_partition_list_t *partitions);

/** Goes on with the trials; true once there is none to wait for. */
MUST_CHECK bool trials_serve(struct trials *trials, rd_kafka_t *client, bool is_cooperative);

/** Forgets what still waits, and the trial that runs, without an outcome. */
void trials_drop(struct trials *trials);

/** True where the message, or event of a partition, is for the trial that runs. It stays the
 * caller's. */
MUST_CHECK bool trials_take(struct trials *trials, const rd_kafka_message_t *message);

bool trials_is_aside(const struct trials *trials, const char *topic, int32_t partition);

/** What is set aside is assigned at its end: librdkafka pauses only what it has been assigned, and
 * may have asked for messages by then. */
void trials_skip_aside(const struct trials *trials, rd_kafka_topic_partition_list_t *partitions);

/** Once they are assigned, so that nothing of them is read. */
void trials_pause_aside(const struct trials *trials, rd_kafka_t *client);

/** A partition that was set aside and may be read again, and is back at its place; NULL: none. The
 * caller destroys the list. */
rd_kafka_topic_partition_list_t *trials_take_lifted(struct trials *trials, rd_kafka_t *client);

/** Partitions that are not ours any more. */
void trials_forget(struct trials *trials, const rd_kafka_topic_partition_list_t *partitions);

#endif
