/**
 * librdkafka's assignment: the partitions that a group member has, and how they change. Only for
 * consumer.c.
 */
#ifndef BROKER_ASSIGNMENT_H
#define BROKER_ASSIGNMENT_H

#include <librdkafka/rdkafka.h>
#include <stdbool.h>

#include "broker/client.h"
#include "broker/offsets.h"
#include "broker/source.h"

/** Subscribes to topics.jobs. */
MUST_CHECK enum err assignment_subscribe(
    rd_kafka_t *client, char *const *topics, size_t count, struct error *err);

/**
 * Whether the group moves only some partitions at a time (cooperative); known once it has assigned
 * any.
 */
bool assignment_is_cooperative(rd_kafka_t *client);

enum assignment_change { ASSIGNMENT_ADD, ASSIGNMENT_REMOVE };

/** If the group is not cooperative, the assignment becomes `partitions`, or nothing. */
rd_kafka_resp_err_t assignment_change(rd_kafka_t *client, bool is_cooperative,
    enum assignment_change change, const rd_kafka_topic_partition_list_t *partitions);

/**
 * For partitions that are not going to be read. Without an offset, librdkafka would first ask what
 * is committed for them, and wait for the answer.
 */
void assignment_place_at_end(rd_kafka_topic_partition_list_t *partitions);

/** Reads on at this offset, and drops what was fetched before. */
rd_kafka_resp_err_t assignment_seek(
    rd_kafka_t *client, const char *topic, int32_t partition, int64_t offset);

rd_kafka_resp_err_t assignment_pause(
    rd_kafka_t *client, const rd_kafka_topic_partition_list_t *partitions, bool paused);

/**
 * Leaves the group and joins it again, so that it hands out all partitions anew. Ours are asked
 * back as in any rebalance.
 */
void assignment_renew(rd_kafka_t *client, struct client_events *events);

/** The partitions that are ours now; the caller destroys the list. */
rd_kafka_topic_partition_list_t *assignment_get(rd_kafka_t *client);

/** Marks partitions as leaving: no message of them starts any more. */
void assignment_leave(struct offsets *offsets, const rd_kafka_topic_partition_list_t *partitions);

/** Gives up partitions and their messages; `source` tells it. */
void assignment_revoke(struct offsets *offsets, const struct source *source,
    const rd_kafka_topic_partition_list_t *partitions);

/** How many messages of these partitions were taken and are not finished, and how many of those
 * have started. */
struct assignment_counts {
    size_t unfinished, started;
};
struct assignment_counts assignment_count(
    struct offsets *offsets, const rd_kafka_topic_partition_list_t *partitions);

/** What the group asks back, and what became of it: `code` says how the last commit ended. */
void assignment_tell_leaving(const struct client_events *events, struct offsets *offsets,
    const rd_kafka_topic_partition_list_t *partitions);
void assignment_tell_left(const struct client_events *events, struct offsets *offsets,
    const rd_kafka_topic_partition_list_t *partitions, rd_kafka_resp_err_t code);

/** "jobs [0], jobs [3]", for events; cut if `text` is too small. */
void assignment_text(const rd_kafka_topic_partition_list_t *partitions, char *text, size_t size);

#endif
