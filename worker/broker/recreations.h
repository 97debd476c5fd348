/**
 * Finds partitions whose topic was deleted and created anew while they are read. Their offsets mean
 * other messages now, but librdkafka reads on at the old ones, and says nothing.
 *
 * What gives it away: brokers forget what a group has committed for a topic that is deleted. The
 * group has committed something for every partition that is read (ownership.h), so one for which it
 * had something, and has nothing now, has another log. A commit would hide that for ever, and so
 * the group is asked before each (observer.h). Where ids of topics are told (topic_ids.h), each
 * partition has the id that its topic had when it was taken over, and another id says the same,
 * whatever was committed meanwhile. The group is then asked only until the ids are known. A commit
 * that was sent before the topic was deleted may yet arrive after: the id in its text tells the
 * next owner (ownership.c). Transactions make sure by themselves, once their
 * offsets are on their way (transaction.c), and tell what they find.
 *
 * Without an answer nothing is committed: running something again is better than losing it.
 *
 * Only for committer.c, ownership.c and resets.c. Threads: intake thread only.
 */
#ifndef BROKER_RECREATIONS_H
#define BROKER_RECREATIONS_H

#include "broker/client.h"
#include "broker/held.h"
#include "broker/observer.h"
#include "broker/offsets.h"
#include "broker/source.h"
#include "broker/topic_ids.h"

enum look { LOOK_NONE, LOOK_ASKED, LOOK_FAILED, LOOK_TOLD };

struct recreations {
    rd_kafka_t *client;
    struct offsets *offsets;
    struct held *held;
    struct source *source;
    struct client_events *events;
    rd_kafka_queue_t *answers; /* about ids */
    struct topic_ids ids;
    bool are_ids_asked;
    unsigned failed_learning;  /* how often since ids were learned */
    struct observer *observer; /* NULL: the group was never asked */
    bool is_group_asked;
    rd_kafka_topic_partition_list_t *known; /* for which the group had something */
    rd_kafka_topic_partition_list_t *found; /* which have another log, and are not begun anew yet */
    enum look look;                         /* the one under way */
    rd_kafka_topic_partition_list_t *asked; /* by it; NULL: none is under way */
    rd_kafka_topic_partition_list_t *unsure; /* for which the last one could not tell */
    const rd_kafka_topic_partition_t
        *checked; /* its log is shorter than what was read; NULL: none */
    uint64_t next_look_ns;
    bool is_reported; /* that looks fail */
};

void recreations_init(struct recreations *recreations, rd_kafka_t *client, struct offsets *offsets,
    struct held *held, struct source *source, struct client_events *events);
void recreations_fini(struct recreations *recreations); /* a zeroed one is fine */

/** A partition begins to be read. It may take a while until the group tells what was committed. */
void recreations_forget(struct recreations *recreations, const char *topic, int32_t partition);

/**
 * Learns the ids of the topics of partitions that are taken over, for recreations_get_id(). After
 * an error, as a time-out, the call is repeated; but it gives up soon, and then there are no ids.
 * Waits up to `timeout_ms`.
 */
rd_kafka_resp_err_t recreations_learn_ids(struct recreations *recreations,
    const rd_kafka_topic_partition_list_t *partitions, int timeout_ms);

/** The id that was told last, until the next call; "": none was. */
const char *recreations_get_id(const struct recreations *recreations, const char *topic);

/**
 * Asks about partitions that are read, and begins those anew that have another log, at its start.
 * Those whose topic is only deleted so far leave the list. False until there is an answer: the call
 * is repeated, and nothing is committed before.
 */
MUST_CHECK bool recreations_serve(
    struct recreations *recreations, rd_kafka_topic_partition_list_t *partitions);

/** Somebody else has found that this partition has another log: it is begun anew. Waits, not long.
 */
void recreations_note(struct recreations *recreations, const char *topic, int32_t partition);

/**
 * What was read of a partition from `end` on is of an end that its log has lost: whatever is known
 * of it is dropped. Returns where to read on.
 */
int64_t recreations_cut(
    struct recreations *recreations, const char *topic, int32_t partition, int64_t end);

/**
 * Asks about partitions that are given up, and takes those off the list that have another log, so
 * that nothing is committed for it. Waits until `deadline_ns`, but not long. False: there was no
 * answer, and nothing may be committed.
 */
MUST_CHECK bool recreations_take_out(struct recreations *recreations,
    rd_kafka_topic_partition_list_t *partitions, uint64_t deadline_ns);

enum log_identity { LOG_IS_SAME, LOG_IS_OTHER, LOG_IS_UNKNOWN };

/**
 * Asks about one partition whose log is shorter than what was read of it, and waits for the answer,
 * but not long. If it has another log, it is begun anew.
 */
MUST_CHECK enum log_identity recreations_check(
    struct recreations *recreations, const char *topic, int32_t partition);

#endif
