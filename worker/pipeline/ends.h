/**
 * How a job ends: job_end() is the only way out of the pipeline. At whatever stage the job is,
 * job_end() gives back what it holds on the device, takes it out of its count, tells the jobs that
 * wait for its statics, and lets the next job of its key pass. So nothing of the job is left
 * behind. Private to pipeline/.
 *
 * Threads: any. A job that waited for this one may go on at once, on the same thread: then it must
 * be bound to the device.
 */
#ifndef PIPELINE_ENDS_H
#define PIPELINE_ENDS_H

#include "pipeline/stages.h"

enum end {
    /* Answered as its outcome says; it is over once the answer is acknowledged. Outputs for the
     * blob store are stored first; if that fails, the job is ended again, by its new outcome. */
    END_ANSWERED,
    /* Planned again after a while; it keeps its place in its key queue. */
    END_RETRIED,
    /* Left unanswered: this worker or another reads it again. The same holds for the jobs behind it
     * in its key queue, since none may overtake it. */
    END_HANDED_BACK,
    /* Left unanswered, since the run has failed: it is read again after the restart. */
    END_ABANDONED
};

/** Ends the job in this way, and owns it. A job that cannot be answered is abandoned. */
void job_end(struct stages *stages, struct job *job, enum end how);

/** Ends jobs as their outcomes say: they are answered, tried again, or left. */
void jobs_end(struct stages *stages, struct job *const *jobs, size_t count);

/** Ends a job that failed with `err`; the error decides in which way. */
void job_fail(struct stages *stages, struct job *job, const struct error *err);

/** Answers a job with `err`, even where another try might help. */
void job_reject(struct stages *stages, struct job *job, const struct error *err);

/** A job that was to run waits again: its partition, if it leaves, does not wait for it. */
void job_put_back(struct stages *stages, struct job *job);

/** Gives back what the job holds on the device and in the store. It may be prepared again. */
void job_release(struct stages *stages, struct job *job);

/* What the stages call; `context` is the struct stages. */

/** A batch has given back what it held for `count` jobs. They leave their count here, not in
 * jobs_end(). */
void ends_on_released(void *context, size_t count);
void ends_on_encoded(void *context, const struct job *job);
void ends_on_not_uploaded(void *context, struct job *job);
void ends_on_queued(void *context, struct key_queue *key_queue, bool is_suspect);
void ends_on_published(void *context, struct job *const *jobs, size_t count);
/** A job whose key queue was left already is not run any more: the run has failed. */
void ends_on_dropped(void *context, struct job *job);
/** The GPU was lost with the job on it; it is not known which job caused that. */
void ends_on_lost(void *context, struct job *job, const struct error *err);

#endif
