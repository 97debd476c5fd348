/**
 * What the worker says: results and dead letters, encoded (schemas/result.schema.json, and the
 * headers below on everything).
 *
 *     content-type             application/msgpack
 *     gpu-worker-job-id        of decodable jobs
 *     gpu-worker-status        ok | error | dead
 *     gpu-worker-source        topic/partition/offset of the job
 *     traceparent, tracestate  copied from the job
 *
 * A dead letter carries the job's own bytes, key and headers, and on top dlq.error.code,
 * dlq.error.message, dlq.attempts, dlq.source.topic, dlq.source.partition, dlq.source.offset,
 * dlq.worker, and where something had to be left out dlq.truncated, which says what: payload, key,
 * headers, or several of them with commas in between.
 *
 * Lifetime: a message stands in the arena of its job, and borrows key, bytes and headers of the
 * job's delivery; outputs are copied. A message that is no job is answered as a job without an id.
 * Threads: the job's. NULL is returned only when memory is short.
 */
#ifndef PUBLISH_MESSAGE_H
#define PUBLISH_MESSAGE_H

#include "broker/sink.h"
#include "job/job.h"
#include "metrics/report.h"
#include "publish/answer.h"

struct message {
    struct record record; /* what the sink gets; first, so that on_settled finds the message */
    enum answer answer;
    struct job *job;
    size_t text_used, text_max, headers_max;
    char *text; /* header values and the topic live here */
    size_t payload_max;
    uint8_t *payload; /* of a result */
    struct header headers[];
};

/** Room for a result of up to `payload_max` bytes, so that whoever writes it allocates nothing. */
struct message *message_reserve_result(struct job *job, size_t payload_max);

/**
 * Encodes what became of the message's job into its room; again, where the sink is done with what
 * was there before. `answer` is ANSWER_RESULT, or a lesser one that is a result. Outputs that the
 * blob store has are named by their digest. ERR_INTERNAL: the room is too small.
 */
MUST_CHECK enum err message_write_result(struct message *message, enum answer answer,
    const struct identity *identity, struct error *err);

/** What the job has failed of, with as much of the sender's as `answer`, a letter, takes. */
struct message *message_of_dead_letter(
    struct job *job, enum answer answer, const struct identity *identity);

#endif
