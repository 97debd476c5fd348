/**
 * Claims partitions that a group has assigned, before they are read, and releases those that it
 * asks back: their owner is kept by the group beside the committed offset (commit_metadata.h). Only
 * for consumer.c.
 *
 * Threads: intake thread only.
 */
#ifndef BROKER_OWNERSHIP_H
#define BROKER_OWNERSHIP_H

#include "broker/claim.h"
#include "broker/committer.h"
#include "broker/consumer_options.h"

/** Since when the group has not said what is committed for new partitions. Zero it at first. */
struct ownership_wait {
    uint64_t since_ns; /* clock_ns(); 0: it has not been asked */
    bool is_long;      /* and this was reported */
};

/**
 * Reports that the group did not answer, with `code` as the reason: the first time, and once more
 * if it takes longer than any transaction of a worker can last, because a broker may have left one
 * open for ever.
 */
void ownership_tell_waiting(struct ownership_wait *wait, const struct client_events *events,
    const rd_kafka_topic_partition_list_t *partitions, rd_kafka_resp_err_t code, uint64_t now_ns);

/** Partitions that arrive, until they are read. Zero it at first; arrival_end() frees what it
 * holds.
 */
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

/**
 * Makes the last commits of partitions that are given up, which hand them over. With
 * `only_settled`, partitions with messages that have started are left out: if commits are made in
 * transactions, one under way may count some as finished, and must not be overtaken. Nothing is
 * committed for a topic that was created anew.
 *
 * These are plain commits, even if claims are made in transactions (claim.h). A late release does
 * no harm: before another member commits, the group has a new generation or has dropped this
 * member's id, and brokers refuse requests with the old one. A late claim would come from a current
 * member of that generation, and brokers would accept it.
 */
rd_kafka_resp_err_t ownership_release(struct committer *committer,
    const rd_kafka_topic_partition_list_t *partitions, bool only_settled, uint64_t deadline_ns);

#endif
