/**
 * Who has a partition, as its group keeps it beside the committed offset (commit_metadata.h). Only
 * for consumer.c.
 *
 * Threads: intake thread only.
 */
#ifndef BROKER_OWNERSHIP_H
#define BROKER_OWNERSHIP_H

#include "broker/claim.h"
#include "broker/committer.h"

/**
 * Finds out what is committed of partitions, with nothing committed where reading starts, and
 * commits the same for `owner`; both are in the list then. Before this, nothing of them may begin.
 * What fails may be asked again: our own mark, where only its answer was lost, changes nothing.
 * Waits up to `timeout_ms` for each of three requests. With a `claim` its transaction commits:
 * RD_KAFKA_RESP_ERR__IN_PROGRESS until this is asked again with the same list and has its answer.
 */
rd_kafka_resp_err_t ownership_claim(struct committer *committer, struct claim *claim,
    uint64_t owner, rd_kafka_topic_partition_list_t *partitions, int timeout_ms);

/** How long the group has not said what is committed of partitions that arrive; begins zeroed. */
struct ownership_wait {
    uint64_t since_ns; /* clock_ns(); 0: it has not been asked */
    bool is_long;      /* and that was told */
};

/**
 * Tells that it has just not said so, with `code` for a reason: the first time, and once more where
 * that takes longer than any transaction of a worker may. A broker may have left one open for ever.
 */
void ownership_tell_waiting(struct ownership_wait *wait, const struct client_events *events,
    const rd_kafka_topic_partition_list_t *partitions, rd_kafka_resp_err_t code, uint64_t now_ns);

/**
 * Makes the last commits of partitions that are given back, which hand them over. With
 * `only_finished` not of those with unfinished messages: where other commits are made in
 * transactions, one on its way may count some as finished, and must not be overtaken.
 *
 * They are plain commits there, too, while claims are transactions (claim.h). A release that is
 * late does no harm: before anybody else commits there the group has a new generation, or has lost
 * this member's id, and brokers refuse what comes with the old one. A late claim comes from who
 * still is a member of that generation, and brokers would take it.
 */
rd_kafka_resp_err_t ownership_release(struct committer *committer,
    const rd_kafka_topic_partition_list_t *partitions, bool only_finished, uint64_t deadline_ns);

#endif
