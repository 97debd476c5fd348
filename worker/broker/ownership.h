/**
 * Claims and releases partitions: their owner is kept by the group beside the committed offset
 * (commit_metadata.h). Only for consumer.c.
 *
 * Threads: intake thread only, but for what a source does for any thread.
 */
#ifndef BROKER_OWNERSHIP_H
#define BROKER_OWNERSHIP_H

#include "broker/claim.h"
#include "broker/committer.h"

/**
 * Reads what is committed for partitions (if nothing is, where reading starts), and commits the
 * same with `owner` as the owner. The list then has both. No message of these partitions may begin
 * before this. The call may be repeated after a failure: finding our own mark changes nothing.
 * Waits up to `timeout_ms` for each of four requests. With a `claim`, a transaction makes the
 * commit: returns RD_KAFKA_RESP_ERR__IN_PROGRESS until it is called again with the same list and
 * there is an answer.
 */
rd_kafka_resp_err_t ownership_claim(struct committer *committer, struct claim *claim,
    uint64_t owner, rd_kafka_topic_partition_list_t *partitions, int timeout_ms);

/** As in source.h; `source` is a consumer. Any thread. */
bool ownership_keeps(const struct source *source, const struct position *position);
bool ownership_start(struct source *source, const struct position *position);
void ownership_put_back(struct source *source, const struct position *position);

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
