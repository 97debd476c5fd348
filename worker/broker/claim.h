/**
 * Claims partitions that a consumer was assigned (ownership.h), where results are published in
 * transactions: a transaction of its own commits the claim. A plain commit would be unsafe. If its
 * client has given it up, it could arrive after later transactions, and set the group back behind
 * their commits. The brokers refuse a late request of a transaction.
 *
 * One claim at a time. A transaction also learns here whether its messages are of the logs that are
 * read: offsets of a topic that was created anew mean other messages. It asks the consumer for a
 * look (recreations.h), which counts if it began after the messages were read.
 *
 * Threads: create(), ask(), get_answer(), withdraw(), wants_look() and note_look() are the
 * consumer's, the others the transactions'.
 */
#ifndef BROKER_CLAIM_H
#define BROKER_CLAIM_H

#include <librdkafka/rdkafka.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct claim;

/** For the consumer `client`, which a transaction wakes from its poll. NULL when memory is short.
 */
struct claim *claim_create(rd_kafka_t *client);
void claim_destroy(struct claim *claim); /* NULL is fine */

/**
 * Asks for these offsets to be committed, by the member that has these partitions now. Takes
 * `group`. False while a withdrawn claim is still being committed.
 */
MUST_CHECK bool claim_ask(struct claim *claim, const rd_kafka_topic_partition_list_t *partitions,
    rd_kafka_consumer_group_metadata_t *group);

/**
 * *ret is RD_KAFKA_RESP_ERR__IN_PROGRESS until the claim is answered, then the answer, once. False
 * if there is no claim.
 */
MUST_CHECK bool claim_get_answer(struct claim *claim, rd_kafka_resp_err_t *ret);

/** Withdraws the claim: the consumer does not wait for it any more. */
void claim_withdraw(struct claim *claim);

/** Whether a claim waits to be taken. */
MUST_CHECK bool claim_is_asked(struct claim *claim);

/**
 * Takes the claim: what to commit, and as which member. NULL: there is none. The caller destroys
 * both, and calls claim_answer().
 */
MUST_CHECK rd_kafka_topic_partition_list_t *claim_take(
    struct claim *claim, rd_kafka_consumer_group_metadata_t **group);

/** Says how the commit of the claim that was taken has ended. Does nothing if none was taken. */
void claim_answer(struct claim *claim, rd_kafka_resp_err_t code);

/** Whether a transaction waits for a look. */
MUST_CHECK bool claim_wants_look(struct claim *claim);

/** All topics that are read were those that they had been, at clock_ns() `seen_ns`. */
void claim_note_look(struct claim *claim, uint64_t seen_ns);

/** Whether that was so at clock_ns() `since_ns`, or later. If it is not known, asks for a look. */
MUST_CHECK bool claim_knows_topics(struct claim *claim, uint64_t since_ns);

#endif
