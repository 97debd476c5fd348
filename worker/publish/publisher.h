/**
 * The one thread that owns the sink. A publication is all that answers one message: a result, a
 * dead letter, or both; when every part of it is acknowledged, the message may be committed.
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
struct publication;

/** A message that is answered, or that others answer by now. */
struct published {
    const struct delivery *delivery;
    enum err code;   /* how the job has ended: ERR_OK, or what its answer says */
    bool is_dropped; /* ERR_REVOKED of the sink: nobody saw an answer of ours */
};

struct publisher_options {
    struct sink *sink;
    const struct identity *identity;
    struct blobs *blobs;       /* where larger outputs go; NULL: nowhere */
    uint64_t inline_bytes_max; /* with `blobs` */
    struct state *state;       /* where what is being encoded is noted; NULL: nowhere */
    uint32_t queue_length;     /* at least as many as jobs can be in flight: push never waits */
    /** The answer to a job is encoded with this outcome; once a job. From whichever thread does. */
    void (*on_encoded)(void *context, const struct outcome *outcome);
    /** The outputs of a job, which is the callee's from now on, could not be stored: it has failed
     * as `outcome` says, and is not answered yet. From a thread that stores. */
    void (*on_not_stored)(void *context, struct job *job, const struct outcome *outcome);
    /**
     * The answer to a job whose key has this line stands in the sink's queue: answers go out in the
     * order of these calls. From whichever thread pushed it; NULL: its message has no line.
     */
    void (*on_queued)(void *context, struct key_queue *key_queue, bool is_suspect);
    /** Everything that answers these is acknowledged; they are destroyed after this call. */
    void (*on_published)(void *context, const struct published *items, size_t count);
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
MUST_CHECK enum err publisher_reserve(
    struct publisher *publisher, struct job *job, size_t result_bytes_max, struct error *err);

/**
 * Encodes the answer to `job`, owned from now on: the result, and where it failed the dead letter
 * (a job that was cancelled has not failed).
 * `ret` is to be pushed. It is NULL where outputs over `inline_bytes_max` must be in the blob store
 * before a result names them: that waits elsewhere, and is pushed from there. ERR_NO_MEMORY,
 * ERR_INTERNAL: the job is still the caller's.
 */
MUST_CHECK enum err publisher_encode(struct publisher *publisher, struct job *job,
    const struct outcome *outcome, struct publication **ret, struct error *err);

/** Hands over what was encoded, in order; NULLs are left out. */
void publisher_push(
    struct publisher *publisher, struct publication *const *publications, size_t count);

/** Encodes and pushes for a message that has no id: a dead letter alone. Owns `delivery`. */
MUST_CHECK enum err publisher_push_undecodable(struct publisher *publisher,
    struct delivery *delivery, const struct error *reason, struct error *err);

#endif
