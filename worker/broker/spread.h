/**
 * Chooses the partitions of records without a key: one for a turn of SPREAD_TURN_MS, so that
 * batches form, and then the one with the fewest records that are not settled, the next one among
 * equals.
 *
 * Why not librdkafka's own choice, which is random: an idempotent producer has one batch at a time
 * under way to a partition, if it is of five records or more. While more records wait for that
 * partition than have lingered, its thread polls without a pause until the brokers answer. A
 * partition with nothing under way needs no wait.
 *
 * Lifetime: owned by a producer. Threads: any; the client chooses in the thread that sends, and in
 * one of its own for records that came before it knew their topic.
 */
#ifndef BROKER_SPREAD_H
#define BROKER_SPREAD_H

#include <librdkafka/rdkafka.h>
#include <pthread.h>
#include <stdint.h>

enum { SPREAD_TURN_MS = 1, SPREAD_PARTITIONS = 1024 };

struct spread {
    pthread_mutex_t lock; /* guards what follows */
    int32_t current;
    uint64_t turn_until_ns;
    /* Records that are not settled, by partition modulo SPREAD_PARTITIONS, of all topics: results
     * are most of them. */
    uint32_t unsettled[SPREAD_PARTITIONS];
};

/** As rd_kafka_topic_partition_available(): whether a partition of `topic` has a leader. */
typedef int spread_available_fn(const rd_kafka_topic_t *topic, int32_t partition);

void spread_init(struct spread *spread);
void spread_fini(struct spread *spread);

/**
 * The partition for another record, of `count`, which is at least 1. If none is available, any. The
 * record counts until spread_settle() is called.
 */
int32_t spread_choose(struct spread *spread, uint64_t now_ns, const rd_kafka_topic_t *topic,
    int32_t count, spread_available_fn *is_available);

/** A record that was given `partition` is settled, or will be given another one. */
void spread_settle(struct spread *spread, int32_t partition);

#endif
