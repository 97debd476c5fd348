/**
 * Encodes results and dead letters (schemas/result.schema.json). Both have these headers:
 *
 *     content-type             application/msgpack
 *     gpu-worker-job-id        of decodable jobs
 *     gpu-worker-status        ok | partial | error | dead
 *     gpu-worker-source        topic/partition/offset of the job
 *     traceparent, tracestate  copied from the job; of a job that is traced here (job/trace.h),
 *                              its own traceparent
 *
 * A dead letter carries the job's own bytes, key and headers, and on top dlq.error.code,
 * dlq.error.message, dlq.attempts, dlq.source.topic, dlq.source.partition, dlq.source.offset,
 * dlq.worker, and where something had to be left out dlq.truncated, which says what: payload, key,
 * headers, or several of them with commas in between.
 *
 * Lifetime: a message lies in the arena of its job, and borrows key, bytes and headers of the job's
 * delivery; outputs are copied, unless they have their places in the job's result room (job/job.h).
 * A message that cannot be decoded is a job without an id. Threads: the job's. Functions return
 * NULL only when memory is short.
 */
#ifndef PUBLISH_MESSAGE_H
#define PUBLISH_MESSAGE_H

#include "broker/sink.h"
#include "job/job.h"
#include "metrics/report.h"
#include "plan/plan.h"
#include "publish/answer.h"

struct message {
    struct record record; /* what the sink gets; first, so that on_settled finds the message */
    enum answer answer;
    struct job *job;
    size_t text_used, text_max, headers_max;
    char *text; /* header values and the topic live here */
    size_t payload_max;
    uint8_t *payload;  /* of a result: all of it, or what stands before the outputs in job->room */
    size_t outputs_at; /* where these begin there */
    struct header headers[];
};

/** Bytes of a result, besides the job's own, that name `count` instances that have failed. */
static inline size_t message_failed_bytes(size_t count) {
    return count * (sizeof(((struct error *)NULL)->message) + 128);
}

/** Reserves room for a result of up to `payload_max` bytes: writing it then allocates nothing. */
struct message *message_reserve_result(struct job *job, size_t payload_max);

/**
 * The same for a job whose outputs get places in a room of their own (job->room), which is had here
 * for an array, and with the outputs for another job. What stands before them is written when it is
 * known, right before them.
 */
struct message *message_reserve_around(
    struct job *job, const struct plan *plan, size_t payload_max);

/**
 * Encodes the outcome of the message's job into its room. It may be called again when the sink has
 * finished with the bytes of the last call. `answer` is ANSWER_RESULT, or a lesser one that is a
 * result. Outputs in the blob store are named by their digest. ERR_INTERNAL: the room is too small.
 */
MUST_CHECK enum err message_write_result(struct message *message, enum answer answer,
    const struct identity *identity, struct error *err);

/** What a long job shows when a chunk is over (publish/feed.h): the bytes that it takes at most,
 * and the message. Returns its size. */
size_t message_progress_size(const struct job *job);
size_t message_write_progress(const struct job *job, uint8_t *ret, size_t size_max);

/** Why the job has failed, with as much of the sender's data as `answer`, a letter, takes. */
struct message *message_of_dead_letter(
    struct job *job, enum answer answer, const struct identity *identity);

#endif
