/**
 * Claims partitions that a consumer was assigned (ownership.h), where results are published in
 * transactions: a transaction of its own commits the claim. A plain commit would be unsafe. If its
 * client has given it up, it could arrive after later transactions, and set the group back behind
 * their commits. The brokers refuse a late request of a transaction.
 *
 * One claim at a time. Threads: ask(), get_answer() and withdraw() are the consumer's, the others
 * the transactions'.
 */
#ifndef BROKER_CLAIM_H
#define BROKER_CLAIM_H

#include <librdkafka/rdkafka.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct claim;

/** NULL when memory is short. */
struct claim *claim_create(void);
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

#endif
