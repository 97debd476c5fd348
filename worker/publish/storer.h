/**
 * Outputs that are too large for results: copied out of the lane's memory at once, then put into
 * the blob store by threads that may wait for a disk or a network, so that no lane does.
 *
 * Lifetime: storer_start() to storer_stop(). Threads: storer_push() from any; on_stored from the
 * storer's own.
 */
#ifndef PUBLISH_STORER_H
#define PUBLISH_STORER_H

#include "batch/outcome.h"
#include "blobs/blobs.h"
#include "decode/job.h"

struct storer;

struct storer_options {
    struct blobs *blobs;
    uint64_t inline_bytes_max; /* larger outputs are stored */
    uint32_t queue_length;     /* at least as many as jobs can be in flight: push never waits */
    /**
     * The job's answer, with an error where its outputs could not be stored. `blobs` has, by index
     * as the outputs, the digest of what was stored, and NULL for what was not. The callee owns
     * `job`; the rest is valid during the call.
     */
    void (*on_stored)(void *context, struct job *job, const struct outcome *outcome,
        const struct digest *const *blobs);
    void *context;
};

MUST_CHECK enum err storer_start(
    const struct storer_options *options, struct storer **ret, struct error *err);

/** Stores all that was pushed, then ends the threads. NULL is fine. */
void storer_stop(struct storer *storer);

/** True where the outcome has an output that must be stored. NULL stores nothing. */
bool storer_wants(
    const struct storer *storer, const struct job *job, const struct outcome *outcome);

/** Copies the outcome, its outputs too. ERR_NO_MEMORY: the job is still the caller's. */
MUST_CHECK enum err storer_push(
    struct storer *storer, struct job *job, const struct outcome *outcome, struct error *err);

#endif
