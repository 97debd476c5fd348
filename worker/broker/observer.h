/**
 * Asks about a group, beside a client that is a member of it, and without waiting: a client and a
 * thread of its own ask. Transactions that are open do not hold up what a group has committed; it
 * tells what was committed before them.
 *
 * The requests of librdkafka's admin interface would need neither, but those to a coordinator abort
 * the process, or keep the client from ever ending, if it goes away before it has answered one, or
 * is slow (tests/broker/orphans_test.c).
 *
 * Only for recreations.c and orphans.c. Lifetime: from observer_create() to observer_destroy().
 * Threads: one calls.
 */
#ifndef BROKER_OBSERVER_H
#define BROKER_OBSERVER_H

#include <librdkafka/rdkafka.h>
#include <stdbool.h>

#include "base/error.h"

struct observer;

/** What is asked: `partitions` becomes the answer within `timeout_ms`. On the observer's thread. */
typedef rd_kafka_resp_err_t observer_question(
    rd_kafka_t *client, rd_kafka_topic_partition_list_t *partitions, int timeout_ms);

/** Of the group of `member`, and with its settings. NULL: there is no memory for it. */
struct observer *observer_create(rd_kafka_t *member, observer_question *question);
void observer_destroy(struct observer *observer); /* waits for some seconds at most; NULL is fine */

/** Asks about these partitions. Each question is answered before the next. */
void observer_ask(struct observer *observer, const rd_kafka_topic_partition_list_t *partitions);

/**
 * False: there is no answer yet; there is one within 2 s. *ret is the caller's; it is NULL if
 * nobody told, and *code says why.
 */
MUST_CHECK bool observer_take(
    struct observer *observer, rd_kafka_topic_partition_list_t **ret, rd_kafka_resp_err_t *code);

#endif
