/**
 * Asks a group what it has committed, beside a client that is a member of it, and without waiting:
 * a client and a thread of its own ask. Transactions that are open do not hold up the answer; it
 * tells what was committed before them.
 *
 * The requests of librdkafka's admin interface would need neither, but abort the process, or keep
 * the client from ever ending, if a coordinator goes away before it has answered one.
 *
 * Only for recreations.c. Lifetime: from observer_create() to observer_destroy(). Threads: one
 * calls.
 */
#ifndef BROKER_OBSERVER_H
#define BROKER_OBSERVER_H

#include <librdkafka/rdkafka.h>
#include <stdbool.h>

#include "base/error.h"

struct observer;

/** Of the group of `member`, and with its settings. NULL: there is no memory for it. */
struct observer *observer_create(rd_kafka_t *member);
void observer_destroy(struct observer *observer); /* waits for some seconds at most; NULL is fine */

/** Asks for these partitions. Each question is answered before the next. */
void observer_ask(struct observer *observer, const rd_kafka_topic_partition_list_t *partitions);

/**
 * False: there is no answer yet; there is one within 2 s. *ret is the caller's; it is NULL if the
 * group did not tell, and *code says why.
 */
MUST_CHECK bool observer_take(
    struct observer *observer, rd_kafka_topic_partition_list_t **ret, rd_kafka_resp_err_t *code);

#endif
