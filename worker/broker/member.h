/**
 * As which member of its group a consumer has its partitions.
 *
 * librdkafka says that a member has lost its partitions, but not while it is giving some back or
 * joins: what it hears then it forgets, and goes on with what it keeps, under a new name. And a
 * transaction's offsets are taken from anybody who names no generation, if the group is empty. So a
 * consumer remembers as which member it was given its partitions. As another, or as none, it
 * commits nothing, and gives up what it has.
 *
 * Threads: member_get() any, the others one.
 */
#ifndef BROKER_MEMBER_H
#define BROKER_MEMBER_H

#include <librdkafka/rdkafka.h>
#include <stdbool.h>

#include "broker/client.h"

struct member;

/** One that is in no group has its partitions for good. NULL when memory is short. */
struct member *member_create(bool is_in_group);
void member_destroy(struct member *member); /* NULL is fine */

/**
 * The group assigns partitions to the consumer `client`, or none. If it has none from before, all
 * are its own as the member that it is now.
 */
void member_enter(struct member *member, rd_kafka_t *client);

/**
 * What the brokers ask of whoever commits offsets of these partitions (KIP-447); the caller
 * destroys it. NULL: the group has gone on without this member.
 */
MUST_CHECK rd_kafka_consumer_group_metadata_t *member_get(
    struct member *member, rd_kafka_t *client);

/** Whether the group has gone on without this member, as of some milliseconds ago. */
MUST_CHECK bool member_is_over(struct member *member, rd_kafka_t *client);

/**
 * True, once, if it was assigned partitions as another member than it was, and librdkafka has kept
 * some from before: the caller has to leave the group and to join it again, to be rid of them.
 */
MUST_CHECK bool member_has_to_renew(
    struct member *member, rd_kafka_t *client, const struct client_events *events);

typedef void member_on_rebalance(rd_kafka_t *client, rd_kafka_resp_err_t code,
    rd_kafka_topic_partition_list_t *partitions, void *opaque);

/**
 * Makes it leave its group for good by then, whatever its brokers do. `drop_next(opaque)` polls the
 * client for some milliseconds and drops what it gets; `on_rebalance` answers rebalances while the
 * client closes.
 */
void member_leave(rd_kafka_t *client, uint64_t deadline_ns, void (*drop_next)(void *opaque),
    member_on_rebalance *on_rebalance, void *opaque);

#endif
