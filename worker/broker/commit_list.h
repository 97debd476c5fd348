/**
 * Converts what a group has committed between our offsets and librdkafka's lists. Only for use
 * inside broker/.
 */
#ifndef BROKER_COMMIT_LIST_H
#define BROKER_COMMIT_LIST_H

#include "broker/client.h"
#include "broker/offsets.h"

/** Sets an element of a list to what is committed. False, and unchanged, when memory is short. */
MUST_CHECK bool commit_list_set(
    rd_kafka_topic_partition_t *element, const struct offsets_commit *commit);

/** Adds a commit with its metadata, marked as known unless it is the first. False, and not added,
 * when memory is short. */
MUST_CHECK bool commit_list_add(rd_kafka_topic_partition_list_t *list, const char *topic,
    int32_t partition, const struct offsets_commit *commit);

/**
 * Asks the group what is committed for `partitions` and fills it in: offsets, and metadata for
 * commit_list_get(). While a transaction with these offsets is open, brokers do not answer; that is
 * an error, as is a time-out, and the call may be repeated. Waits up to `timeout_ms`.
 */
rd_kafka_resp_err_t commit_list_fetch(
    rd_kafka_t *client, rd_kafka_topic_partition_list_t *partitions, int timeout_ms);

/**
 * Marks the partitions that have an offset as those for which the group has something, and the
 * others not. The mark stays with them, also in copies of the list.
 */
void commit_list_mark_known(rd_kafka_topic_partition_list_t *partitions);
MUST_CHECK bool commit_list_is_known(const rd_kafka_topic_partition_t *element);

/**
 * Asks the group, and marks those for which it has something by now. Errors and waits: as
 * commit_list_fetch(), and an error if it has nothing more for one that is marked.
 */
rd_kafka_resp_err_t commit_list_find_known(
    rd_kafka_t *client, rd_kafka_topic_partition_list_t *partitions, int timeout_ms);

/**
 * Gives partitions without a committed offset the offset where reading starts: the start of their
 * log if they have RD_KAFKA_OFFSET_BEGINNING instead of one, or where
 * `auto.offset.reset` says, if the group is new to their topic (with `error` they stay without), or
 * else the start of their log, since they were added later. A group is new to a topic if it has
 * committed nothing for its other partitions, unless it `is_known` not to be. Partitions that do
 * not exist stay without: a member that was given one, because its topic was created anew with
 * fewer, must not hold up its group. Errors and waits: as commit_list_fetch().
 */
rd_kafka_resp_err_t commit_list_locate(
    rd_kafka_t *client, rd_kafka_topic_partition_list_t *partitions, bool is_known, int timeout_ms);

/**
 * Gives partitions the offsets at which their logs end. Errors and waits: as commit_list_fetch().
 */
rd_kafka_resp_err_t commit_list_find_ends(
    rd_kafka_t *client, rd_kafka_topic_partition_list_t *partitions, int timeout_ms);

/**
 * False if this version cannot read the metadata, or it belongs to another offset; *ret then has
 * only the offset.
 */
bool commit_list_get(const rd_kafka_topic_partition_t *element, struct offsets_commit *ret);

/** True if neither is NULL and both would commit the same. */
bool commit_list_is_same(const rd_kafka_topic_partition_t *a, const rd_kafka_topic_partition_t *b);

#endif
