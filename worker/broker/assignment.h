/** librdkafka's assignment: what a group member has, and how it changes. Only for consumer.c. */
#ifndef BROKER_ASSIGNMENT_H
#define BROKER_ASSIGNMENT_H

#include <librdkafka/rdkafka.h>
#include <stdbool.h>

#include "broker/offsets.h"

/** Asks for partitions of topics.jobs. */
MUST_CHECK enum err assignment_subscribe(
    rd_kafka_t *client, char *const *topics, size_t count, struct error *err);

/** Whether the group gives and takes partitions in parts; known once it has assigned any. */
bool assignment_is_cooperative(rd_kafka_t *client);

enum assignment_change { ASSIGNMENT_ADD, ASSIGNMENT_REMOVE };

/** Where it is not cooperative, the assignment becomes `partitions`, or nothing. */
rd_kafka_resp_err_t assignment_change(rd_kafka_t *client, bool is_cooperative,
    enum assignment_change change, const rd_kafka_topic_partition_list_t *partitions);

/** For partitions of which nothing will be read: librdkafka would first ask what is committed of
 * those without a place, and wait for the answer. */
void assignment_place_at_end(rd_kafka_topic_partition_list_t *partitions);

rd_kafka_resp_err_t assignment_pause(
    rd_kafka_t *client, const rd_kafka_topic_partition_list_t *partitions, bool paused);

/** The partitions that are ours now; the caller destroys the list. */
rd_kafka_topic_partition_list_t *assignment_get(rd_kafka_t *client);

/** Messages of these partitions that were taken and have not finished. */
size_t assignment_unfinished_count(
    struct offsets *offsets, const rd_kafka_topic_partition_list_t *partitions);

/** "jobs [0], jobs [3]", for events; cut where `text` is full. */
void assignment_text(const rd_kafka_topic_partition_list_t *partitions, char *text, size_t size);

#endif
