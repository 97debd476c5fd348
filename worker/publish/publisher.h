/**
 * The one thread that owns the sink. What answers a message is a result, a dead letter, or both;
 * when all of it is acknowledged, the message may be committed.
 *
 * What the sink refuses for good is replaced by the next lesser answer (answer.h). Where nothing is
 * left to say, or the sink is lost, on_failed is called once and the sink ends: what is not
 * acknowledged by then is not reported, and comes again after a restart.
 *
 * Lifetime: publisher_start() to publisher_stop(); the sink is owned from the start on, also where
 * that fails. Threads: publisher_push() from any; on_published and on_failed come from the
 * publisher's thread.
 */
#ifndef PUBLISH_PUBLISHER_H
#define PUBLISH_PUBLISHER_H

#include "base/queue.h"
#include "blobs/blobs.h"
#include "publish/message.h"

struct publisher;

struct publisher_options {
    struct sink *sink;
    const struct identity *identity;
    struct blobs *blobs;       /* where larger outputs go; NULL: nowhere */
    uint64_t inline_bytes_max; /* with `blobs` */
    struct state *state;       /* where what is being encoded is noted; NULL: nowhere */
    uint32_t queue_length;     /* at least as many as jobs can be in flight: push never waits */
    /** The answer to a job is encoded; once a job. From whichever thread does. */
    void (*on_encoded)(void *context, const struct job *job);
    /** The outputs of a job could not be stored: it has failed as its outcome says, and is not
     * answered yet. The callee owns it. From a thread that uploads. */
    void (*on_not_uploaded)(void *context, struct job *job);
    /**
     * The answer to a job that stood in this key queue, and does no more, is in the sink's queue:
     * answers go out in the order of these calls. From whichever thread pushed it; NULL: it stood
     * in none.
     */
    void (*on_queued)(void *context, struct key_queue *key_queue, bool is_suspect);
    /**
     * These jobs are over; the callee owns them. All that answers them is acknowledged, but where
     * job->is_dropped (ERR_REVOKED of the sink: nobody saw an answer of ours) or job->is_lost (they
     * are not answered).
     */
    void (*on_published)(void *context, struct job *const *jobs, size_t count);
    void (*on_failed)(void *context, const struct error *err);
    void *context;
};

MUST_CHECK enum err publisher_start(
    const struct publisher_options *options, struct publisher **ret, struct error *err);

/**
 * Waits up to `timeout_ms` (-1: for ever) for what was pushed to be acknowledged, then ends the
 * thread. ERR_TIMEOUT: something was not, and was not reported by on_published. NULL is fine.
 */
MUST_CHECK enum err publisher_stop(struct publisher *publisher, int timeout_ms, struct error *err);

/**
 * Takes memory for the answer to a planned job, of up to `result_bytes_max` encoded: from here on
 * its answer needs no more, unless it is an error. Where nothing was reserved there is room for an
 * error. Part of the job, and ends with it. ERR_NO_MEMORY.
 */
MUST_CHECK enum err publisher_reserve(struct job *job, size_t result_bytes_max, struct error *err);

/**
 * Encodes what became of the job: the result, and where it failed the dead letter (a job that was
 * cancelled has not failed); of a message that has no id the dead letter alone. It is to be pushed
 * where it `is_encoded`; else its outputs go to the blob store first, and it is not the caller's
 * any more. ERR_NO_MEMORY, ERR_INTERNAL: it is the caller's, without an answer.
 */
MUST_CHECK enum err publisher_encode(
    struct publisher *publisher, struct job *job, bool *is_encoded, struct error *err);

/** Hands over jobs that are encoded, in order; they leave their key queues. */
void publisher_push(struct publisher *publisher, struct job *const *jobs, size_t count);

#endif
