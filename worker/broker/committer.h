/**
 * Commits to the group what the offsets say, one request at a time, each answered in a queue of its
 * own: periodic commits are not waited for, the last ones of a partition are. Only for consumer.c.
 *
 * Lifetime: the client and the offsets outlive it. Threads: intake thread only.
 */
#ifndef BROKER_COMMITTER_H
#define BROKER_COMMITTER_H

#include "broker/client.h"
#include "broker/offsets.h"
#include "broker/source.h"

struct committer {
    rd_kafka_t *client;
    struct offsets *offsets;
    struct client_events *events;
    const struct source *source; /* which tells what is committed */
    rd_kafka_queue_t *answers;
    rd_kafka_topic_partition_list_t *requested; /* on its way; NULL: none */
    rd_kafka_resp_err_t last_answer;
    rd_kafka_resp_err_t reported; /* the failure since the last commit that worked; 0: none */
};

void committer_init(struct committer *committer, rd_kafka_t *client, struct offsets *offsets,
    struct client_events *events, const struct source *source);
void committer_fini(struct committer *committer); /* a zeroed one is fine */

/** Refused only because members rejoin: the same commit works once this one has, too. */
bool committer_is_rebalancing(rd_kafka_resp_err_t answer);

/** Refused because the group goes on without us: no commit works before we have joined again. */
bool committer_is_outside(rd_kafka_resp_err_t answer);

/** Takes in an answer that has come. A failure is reported until a commit works, each kind once;
 * its offsets are due again. */
void committer_serve(struct committer *committer);

/** Asks for what is due of `partitions`, unless a request is on its way. */
void committer_start(
    struct committer *committer, const rd_kafka_topic_partition_list_t *partitions);

/** Commits `list` as it is and waits for the answer: its code, or RD_KAFKA_RESP_ERR__TIMED_OUT
 * (clock_ns()). */
rd_kafka_resp_err_t committer_commit_list(
    struct committer *committer, const rd_kafka_topic_partition_list_t *list, uint64_t deadline_ns);

/** The same with the last commits of `partitions`, which are given back. */
rd_kafka_resp_err_t committer_commit_last(struct committer *committer,
    const rd_kafka_topic_partition_list_t *partitions, uint64_t deadline_ns);

#endif
