/**
 * A dead letter: a message that failed for good, with headers that say why and where it came from.
 * It carries the message's own bytes, key and headers, but for those with a name of the worker's,
 * then the worker's:
 *
 *     content-type, gpu-worker-job-id, gpu-worker-status, gpu-worker-source   as on every answer
 *     dlq.*                                                                   the names below
 *
 * Lifetime: slices point into the delivery. Threads: pure.
 */
#ifndef BROKER_DEAD_LETTER_H
#define BROKER_DEAD_LETTER_H

#include <stdbool.h>

#include "broker/delivery.h"

#define DEAD_LETTER_CODE "dlq.error.code"
#define DEAD_LETTER_MESSAGE "dlq.error.message"
#define DEAD_LETTER_ATTEMPTS "dlq.attempts"
#define DEAD_LETTER_TOPIC "dlq.source.topic"
#define DEAD_LETTER_PARTITION "dlq.source.partition"
#define DEAD_LETTER_OFFSET "dlq.source.offset"
#define DEAD_LETTER_WORKER "dlq.worker"
#define DEAD_LETTER_TRUNCATED "dlq.truncated" /* what was left out: payload, key, headers */

/**
 * On a job that is sent again from its dead letter: topic/partition/offset of the first message.
 */
#define REPLAYED_FROM "gpu-worker-replayed-from"

struct dead_letter {
    struct slice code;
    struct slice id;    /* empty: the message could not be decoded */
    struct slice topic; /* the job's topic */
    bool is_truncated;
};

/** Whether a header of that name is the worker's own, besides content-type. */
bool dead_letter_owns(struct slice name);

/** False if the message is not a worker's dead letter. */
bool dead_letter_read(const struct delivery *delivery, struct dead_letter *ret);

/**
 * The job's message as it was sent, plus REPLAYED_FROM unless it has one already. A new delivery;
 * NULL when memory is short.
 */
struct delivery *dead_letter_create_job(const struct delivery *delivery);

#endif
