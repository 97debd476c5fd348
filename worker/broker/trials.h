/**
 * Partitions that are first read alone, because executors may have died of reading them, and
 * partitions that are not read at all. A fetch guard (source.h) decides which.
 *
 * A trial assigns one partition to the client, reads it as far ahead as the client would, and drops
 * what it reads: it only tests whether the process survives. No message is taken meanwhile.
 *
 * Only for consumer.c, on its thread.
 */
#ifndef BROKER_TRIALS_H
#define BROKER_TRIALS_H

#include <librdkafka/rdkafka.h>
#include <stdbool.h>
#include <stdint.h>

#include "broker/client.h"
#include "broker/source.h"

struct trials {
    const struct source *source; /* whose guard decides */
    const struct client_events *events;
    uint64_t bytes_max;                       /* of one trial */
    rd_kafka_topic_partition_list_t *waiting; /* wait for their trials; NULL: none */
    rd_kafka_topic_partition_list_t *current; /* the one on trial; NULL: none */
    rd_kafka_topic_partition_list_t *aside;   /* NULL: none */
    /* of the current trial */
    uint64_t bytes, deadline_ns, resident_bytes; /* of the process, at its beginning */
    bool has_inflated, is_over;
    uint64_t next_look_ns;
};

void trials_init(struct trials *trials, const struct source *source,
    const struct client_events *events, uint64_t bytes_max);
void trials_fini(struct trials *trials);

/** Asks the guard about newly assigned partitions, with the offsets to read them from. */
void trials_sort(struct trials *trials, const rd_kafka_topic_partition_list_t *partitions);

/** Continues the trials; true once there are none to wait for. */
MUST_CHECK bool trials_serve(struct trials *trials, rd_kafka_t *client, bool is_cooperative);

/** Ends all trials, those that wait and the one that runs, without an outcome. */
void trials_drop(struct trials *trials);

/**
 * True if the message, or event of a partition, belongs to the trial that runs. The caller still
 * owns it.
 */
MUST_CHECK bool trials_take(struct trials *trials, const rd_kafka_message_t *message);

bool trials_is_aside(const struct trials *trials, const char *topic, int32_t partition);

/**
 * Assigns partitions that are set aside at their end. librdkafka can pause only what is assigned,
 * and may already have asked for messages by then.
 */
void trials_skip_aside(const struct trials *trials, rd_kafka_topic_partition_list_t *partitions);

/** Pauses them, once they are assigned, so that they are not read. */
void trials_pause_aside(const struct trials *trials, rd_kafka_t *client);

/**
 * Takes partitions that were set aside and may be read again, back at their offsets; NULL: none.
 * The caller destroys the list.
 */
rd_kafka_topic_partition_list_t *trials_take_lifted(struct trials *trials, rd_kafka_t *client);

/** Forgets partitions that do not belong to this worker any more. */
void trials_forget(struct trials *trials, const rd_kafka_topic_partition_list_t *partitions);

#endif
