/**
 * Sends answers to the sink. The answer to a message is a result, a dead letter, or both. When all
 * of it is acknowledged, the message may be committed.
 *
 * A thread of its own sends, and serves the sink. A result that is pushed alone is sent by the
 * thread that pushes it, if the sink takes it at once (broker/sink.h) and no other answer is on its
 * way: waking up another thread would take longer.
 *
 * If the sink refuses an answer for good, the publisher sends the next lesser one (answer.h). If
 * there is none, or if the sink is lost, on_failed is called once and the sink ends. Messages that
 * are not acknowledged by then are not reported; they are read again after a restart.
 *
 * Lifetime: publisher_start() to publisher_stop(). publisher_start() owns the sink, also after an
 * error. Threads: publisher_push() from any; on_published and on_failed come from the publisher's
 * thread or from one that pushes, one call at a time.
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
    struct blobs *blobs;       /* where larger outputs go; NULL: there is no store */
    uint64_t inline_bytes_max; /* with `blobs` */
    struct state *state;       /* where what is being encoded is noted; NULL: nowhere */
    uint32_t queue_length;     /* at least as many as jobs can be in flight: push never waits */
    /** The answer to a job is encoded; once for each job. From the thread that encodes. */
    void (*on_encoded)(void *context, const struct job *job);
    /** The outputs of a job could not be stored: the job has failed, as its outcome says, and has
     * no answer yet. The callee owns it. From a thread that uploads, or within publisher_encode().
     */
    void (*on_not_uploaded)(void *context, struct job *job);
    /**
     * The answer to a job is in the sink's queue, and the job has left this key queue; NULL: it was
     * in none. Answers go out in the order of these calls. From the thread that pushed the job.
     */
    void (*on_queued)(void *context, struct key_queue *key_queue, bool is_suspect);
    /**
     * These jobs are over; the callee owns them. All of their answers are acknowledged, except with
     * job->is_dropped (ERR_REVOKED of the sink: no reader saw our answer) or job->is_lost (the job
     * is not answered).
     */
    void (*on_published)(void *context, struct job *const *jobs, size_t count);
    void (*on_failed)(void *context, const struct error *err);
    void *context;
};

MUST_CHECK enum err publisher_start(
    const struct publisher_options *options, struct publisher **ret, struct error *err);

/**
 * Waits up to `timeout_ms` (-1: for ever) until all that was pushed is acknowledged, then ends the
 * thread. ERR_TIMEOUT: some was not, and on_published did not report it. NULL is fine.
 */
MUST_CHECK enum err publisher_stop(struct publisher *publisher, int timeout_ms, struct error *err);

/**
 * Reserves memory for the result of a planned job, of up to `result_bytes_max` encoded. Without it
 * there is room only for an error. `has_room`: the outputs get their places in job->room, as those
 * of arrays do always. The memory is part of the job and ends with it. ERR_NO_MEMORY.
 */
MUST_CHECK enum err publisher_reserve(struct job *job, const struct plan *plan,
    size_t result_bytes_max, bool has_room, struct error *err);

/**
 * Encodes the job's outcome: a result, and if the job failed a dead letter (a cancelled job has not
 * failed). A message without an id gets only a dead letter. *is_encoded true: the caller pushes the
 * job. False: its outputs go to the blob store first, or found no memory for that, and the caller
 * does not own it any more.
 * ERR_NO_MEMORY, ERR_INTERNAL: the caller still owns the job, which has no answer.
 */
MUST_CHECK enum err publisher_encode(
    struct publisher *publisher, struct job *job, bool *is_encoded, struct error *err);

/** Sends the answers of encoded jobs, in order. The jobs leave their key queues. */
void publisher_push(struct publisher *publisher, struct job *const *jobs, size_t count);

#endif
