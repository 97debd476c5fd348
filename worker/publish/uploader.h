/**
 * Stores outputs that are too large for results. They are copied out of the lane's memory at once,
 * or are spooled already (blobs/spool.h). Threads of the uploader put them into the blob store, so
 * that no lane waits for a disk or network.
 *
 * Lifetime: uploader_start() to uploader_stop(). Threads: uploader_push() from any; on_uploaded
 * from the uploader's own.
 */
#ifndef PUBLISH_UPLOADER_H
#define PUBLISH_UPLOADER_H

#include "blobs/blobs.h"
#include "job/job.h"

struct uploader;

struct uploader_options {
    struct blobs *blobs;
    uint64_t inline_bytes_max; /* larger outputs are uploaded */
    uint32_t queue_length;     /* at least as many as jobs can be in flight: push never waits */
    /** The job's outputs are in the store, or the job has failed, as its outcome says. The callee
     * owns the job, and ends the upload. */
    void (*on_uploaded)(void *context, struct job *job);
    void *context;
};

MUST_CHECK enum err uploader_start(
    const struct uploader_options *options, struct uploader **ret, struct error *err);

/** Uploads all that was pushed, then ends the threads. NULL is fine. */
void uploader_stop(struct uploader *uploader);

/** True where the job has an output that must be uploaded. NULL uploads nothing. */
bool uploader_wants(const struct uploader *uploader, const struct job *job);

/** Copies the outputs, to which the outcome points from then on. ERR_NO_MEMORY: the job is still
 * the caller's. */
MUST_CHECK enum err uploader_push(struct uploader *uploader, struct job *job, struct error *err);

/** The digest that names the output in the blob store; NULL: the output is not there. The job may
 * have no upload. */
const struct digest *upload_digest(const struct job *job, size_t output);

/** Ends the job's upload, if it has one, and its outputs with it, also those that are spooled. */
void upload_end(struct job *job);

#endif
