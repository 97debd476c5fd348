/**
 * Finds partitions whose topic was deleted and created anew while they are read. Their offsets mean
 * other messages now, but librdkafka reads on at the old ones, and says nothing.
 *
 * What gives it away: brokers forget what a group has committed for a topic that is deleted. The
 * group has committed something for every partition that is read (ownership.h), so one for which it
 * had something, and has nothing now, has another log. A commit would hide that for ever, and so
 * the group is asked before each. Where ids of topics are told (topic_ids.h), another id says the
 * same, whatever was committed meanwhile, as in transactions, which do not wait for this.
 *
 * Where ids can be asked for, they are asked for first, and the group only if a broker answers and
 * does not tell them, as that of a topic that is deleted: librdkafka from 2.3 on may abort, or
 * never destroy a client, if a coordinator goes away before it has answered such a request.
 *
 * Only for committer.c and resets.c. Threads: intake thread only.
 */
#ifndef BROKER_RECREATIONS_H
#define BROKER_RECREATIONS_H

#include "broker/client.h"
#include "broker/held.h"
#include "broker/offsets.h"
#include "broker/source.h"
#include "broker/topic_ids.h"

struct recreations {
    rd_kafka_t *client;
    struct offsets *offsets;
    struct held *held;
    struct source *source;
    const struct client_events *events;
    rd_kafka_queue_t *answers;
    rd_kafka_topic_partition_list_t *known; /* for which the group had something */
    struct topic_ids ids;
    int asked_count;                                /* requests without an answer yet */
    rd_kafka_topic_partition_list_t *asked, *found; /* by those; NULL: none is under way */
};

void recreations_init(struct recreations *recreations, rd_kafka_t *client, struct offsets *offsets,
    struct held *held, struct source *source, const struct client_events *events);
void recreations_fini(struct recreations *recreations); /* a zeroed one is fine */

/** A partition begins to be read. It may take a while until the group tells what was committed. */
void recreations_forget(struct recreations *recreations, const char *topic, int32_t partition);

/**
 * Asks about partitions that are read, and begins those anew that have another log, at its start.
 * Those whose topic is only deleted so far leave the list. False until there is an answer: the call
 * is repeated, and nothing is committed before.
 */
MUST_CHECK bool recreations_serve(
    struct recreations *recreations, rd_kafka_topic_partition_list_t *partitions);

/**
 * Asks about partitions that are given up, and takes those off the list that have another log, so
 * that nothing is committed for it. Waits until `deadline_ns`, but not long; without an answer, all
 * stay.
 */
void recreations_take_out(struct recreations *recreations,
    rd_kafka_topic_partition_list_t *partitions, uint64_t deadline_ns);

/**
 * Asks about one partition, and waits for the answer, but not long. True: it has another log, and
 * is begun anew.
 */
MUST_CHECK bool recreations_check(
    struct recreations *recreations, const char *topic, int32_t partition);

#endif
