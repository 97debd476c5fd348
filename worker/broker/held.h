/**
 * Fetched messages that wait for room in their partition's window. There are only a few for each
 * partition, because it is paused while any of them waits. Only for consumer.c.
 *
 * Lifetime: owns its messages. Threads: intake thread only.
 */
#ifndef BROKER_HELD_H
#define BROKER_HELD_H

#include <librdkafka/rdkafka.h>

#include "broker/offsets.h"

struct held {
    size_t count;
    rd_kafka_message_t **messages; /* each partition's in order */
};

void held_fini(struct held *held); /* zeroes it; a zeroed one is fine */

/** True if a message of this partition waits. */
bool held_has(const struct held *held, const char *topic, int32_t partition);

/** Takes `message`. False when memory is short; the caller then still owns it. */
MUST_CHECK bool held_add(struct held *held, rd_kafka_message_t *message);

/** Takes a message whose partition has half of its window free again; NULL if there is none. */
rd_kafka_message_t *held_take(struct held *held, struct offsets *offsets);

/** Destroys the waiting messages of a partition, or of several. */
void held_drop_of(struct held *held, const char *topic, int32_t partition);
void held_drop(struct held *held, const rd_kafka_topic_partition_list_t *partitions);

#endif
