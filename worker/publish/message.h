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
 * dlq.worker, and dlq.truncated where the bytes had to be left out.
 *
 * Lifetime: a message borrows key, bytes and headers of its delivery, which must outlive it;
 * outputs are copied. Threads: pure; any number at once. All return NULL only when memory is short.
 */
#ifndef PUBLISH_MESSAGE_H
#define PUBLISH_MESSAGE_H

#include "broker/sink.h"
#include "decode/job.h"
#include "execute/outcome.h"

/** Who speaks. The strings outlive every message. */
struct identity {
    const char *host;
    const char *device; /* such as "NVIDIA H200" */
    uint32_t device_index;
    const char *version;
};

struct message {
    struct record record; /* what the sink gets; first, so that on_settled finds the message */
    bool is_error;        /* a result that tells of a failure */
    bool is_truncated;    /* a dead letter without the job's bytes */
    void *payload;        /* owned; NULL where the record borrows its payload */
    void *owner;          /* the publisher's */
    size_t text_used, text_max;
    char *text; /* header values and the topic live here */
    struct header headers[];
};

/**
 * `blobs` has, by index as the job's outputs, the digests of those that the blob store holds and
 * the result names, and NULL for the others; `blobs` NULL: all outputs are in the result.
 */
struct message *message_of_result(const struct job *job, const struct outcome *outcome,
    const struct digest *const *blobs, const struct identity *identity);

struct message *message_of_dead_letter(const struct delivery *delivery, const struct job *job,
    const struct error *err, uint32_t attempts, bool truncated, const struct identity *identity);

void message_destroy(struct message *message); /* NULL is fine */

#endif
