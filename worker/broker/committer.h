/**
 * Commits offsets to the group, one request at a time, each answered in a queue of its own. It
 * waits for the last commits of a partition, but not for periodic ones. Nothing is committed for a
 * topic that was created anew, before it is read from its start. Only for consumer.c.
 *
 * Lifetime: what it is given outlives it. Threads: intake thread only.
 */
#ifndef BROKER_COMMITTER_H
#define BROKER_COMMITTER_H

#include "broker/client.h"
#include "broker/member.h"
#include "broker/offsets.h"
#include "broker/recreations.h"
#include "broker/source.h"

struct committer {
    rd_kafka_t *client;
    struct member *member; /* nothing is committed once the group has gone on without it */
    struct offsets *offsets;
    struct client_events *events;
    const struct source *source; /* which is told what was committed */
    struct recreations recreations;
    bool has_claimed; /* so that the group is not new */
    rd_kafka_queue_t *answers;
    rd_kafka_topic_partition_list_t *requested; /* the request under way; NULL: none */
    rd_kafka_resp_err_t last_answer;
    rd_kafka_resp_err_t
        reported; /* the failure that was reported since the last good commit; 0: none */
};

void committer_init(struct committer *committer, rd_kafka_t *client, struct member *member,
    struct offsets *offsets, struct held *held, struct client_events *events,
    struct source *source);
void committer_fini(struct committer *committer); /* a zeroed one is fine */

/**
 * True if the commit was refused only because members rejoin; it works once this member has
 * rejoined.
 */
bool committer_is_rebalancing(rd_kafka_resp_err_t answer);

/**
 * True if the commit was refused because the group goes on without this member; no commit works
 * before it has joined again.
 */
bool committer_is_outside(rd_kafka_resp_err_t answer);

/**
 * Handles an answer, if there is one. Each kind of failure is reported once until a commit works;
 * the offsets of a failed commit are due again.
 */
void committer_serve(struct committer *committer);

/**
 * Looks for topics that were created anew, and then commits what is due for `partitions`, unless
 * that is left to transactions. False until both are done or under way: the call is repeated.
 */
MUST_CHECK bool committer_start(
    struct committer *committer, rd_kafka_topic_partition_list_t *partitions, bool in_transactions);

/** Commits `list` as it is and waits for the answer: its code, or RD_KAFKA_RESP_ERR__TIMED_OUT
 * (clock_ns()). */
rd_kafka_resp_err_t committer_commit_list(
    struct committer *committer, const rd_kafka_topic_partition_list_t *list, uint64_t deadline_ns);

/**
 * The same for the last commits of `partitions` that are given up; those of which nothing is to be
 * committed leave the list. Nothing is, if no broker tells in time whether their topics were
 * created anew.
 */
rd_kafka_resp_err_t committer_commit_last(
    struct committer *committer, rd_kafka_topic_partition_list_t *partitions, uint64_t deadline_ns);

#endif
