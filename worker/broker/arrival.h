/**
 * Partitions that a group has assigned, until they are read: first the group says what is committed
 * for them, and that they are ours. Only for consumer.c.
 *
 * Lifetime: zero it at first; arrival_end() frees what it holds. Threads: intake thread only.
 */
#ifndef BROKER_ARRIVAL_H
#define BROKER_ARRIVAL_H

#include "broker/consumer_options.h"
#include "broker/ownership.h"

struct arrival {
    rd_kafka_topic_partition_list_t *partitions; /* NULL: none arrive */
    bool is_claimed;        /* it is known what is committed; some may be on trial */
    uint64_t next_fetch_ns; /* when it is asked again */
    struct ownership_wait wait;
};

/** Nothing arrives yet. The list is copied. */
void arrival_begin(struct arrival *arrival, const rd_kafka_topic_partition_list_t *partitions);

/** All partitions arrive, as if a group had given them to its only member. */
void arrival_take_all(
    struct arrival *arrival, const struct consumer_options *options, struct source *source);

/** Nothing arrives any more. */
void arrival_end(struct arrival *arrival);

/**
 * Asks the group for partitions that arrive and are not claimed, if it is time to. Returns
 * RD_KAFKA_RESP_ERR_NO_ERROR once they are claimed, and RD_KAFKA_RESP_ERR__IN_PROGRESS while there
 * is no answer; else the client is lost or is outside of the group.
 */
rd_kafka_resp_err_t arrival_claim(
    struct arrival *arrival, struct committer *committer, struct claim *claim, uint64_t owner);

#endif
