/**
 * What a group has committed, between our offsets and librdkafka's lists. Only for use inside
 * broker/.
 */
#ifndef BROKER_COMMIT_LIST_H
#define BROKER_COMMIT_LIST_H

#include "broker/client.h"
#include "broker/offsets.h"

/** Makes an element of a list say what is committed. False, and unchanged, when memory is short. */
MUST_CHECK bool commit_list_set(
    rd_kafka_topic_partition_t *element, const struct offsets_commit *commit);

/** Adds a commit with its metadata. False, and not added, when memory is short. */
MUST_CHECK bool commit_list_add(rd_kafka_topic_partition_list_t *list, const char *topic,
    int32_t partition, const struct offsets_commit *commit);

/**
 * Asks the group for what is committed of `partitions` and fills it in: offsets, and metadata for
 * commit_list_get(). Offsets of a transaction that is open are not told: that is an error, as is
 * time up, and the same may be asked again. Waits up to `timeout_ms`.
 */
rd_kafka_resp_err_t commit_list_fetch(
    rd_kafka_t *client, rd_kafka_topic_partition_list_t *partitions, int timeout_ms);

/**
 * Gives those partitions of which nothing is committed the offset where `auto.offset.reset` says
 * that reading starts; with `error` they stay without. As commit_list_fetch().
 */
rd_kafka_resp_err_t commit_list_locate(
    rd_kafka_t *client, rd_kafka_topic_partition_list_t *partitions, int timeout_ms);

/** False where the metadata is none that this version reads: then *ret has the offset alone. */
bool commit_list_get(const rd_kafka_topic_partition_t *element, struct offsets_commit *ret);

/** True where both are there and would commit the same. */
bool commit_list_is_same(const rd_kafka_topic_partition_t *a, const rd_kafka_topic_partition_t *b);

#endif
