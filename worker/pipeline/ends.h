/**
 * How a job ends: the only way out of the pipeline. Whatever stage a job has come to, job_end()
 * takes from it what it holds on the device, takes it out of its count, ends what others wait for
 * it to bring, and lets the next job of its key pass. So nothing of it is left behind. Private to
 * pipeline/.
 *
 * Threads: any; where a job that waited for this one goes on at once, a bound one.
 */
#ifndef PIPELINE_ENDS_H
#define PIPELINE_ENDS_H

#include "pipeline/stages.h"

enum end {
    /* As its outcome says; it is over once the answer is acknowledged. Where its outputs go to the
     * blob store first, it comes back if they do not get there. */
    END_ANSWERED,
    /* After a while it is planned again; it keeps its place in its key queue. */
    END_RETRIED,
    /* Unanswered, it comes again, here or elsewhere; and so do all that wait behind it in its key
     * queue, since none may overtake it. */
    END_HANDED_BACK,
    /* Unanswered, since the run has failed: it comes again. */
    END_ABANDONED
};

/** Ends the job, owned from now on, in this way; or as abandoned, where it cannot be answered. */
void job_end(struct stages *stages, struct job *job, enum end how);

/** Ends jobs as their outcomes say: they are answered, tried again, or left. */
void jobs_end(struct stages *stages, struct job *const *jobs, size_t count);

/** Ends a job that failed with `err`, in the way that this asks for. */
void job_fail(struct stages *stages, struct job *job, const struct error *err);

/** Answers a job with `err`, whether another try may help or not. */
void job_reject(struct stages *stages, struct job *job, const struct error *err);

/** Puts jobs into a count, or out of theirs. */
void jobs_count(struct stages *stages, struct job *const *jobs, size_t count, enum job_count where);

/* What the stages call; `context` is the struct stages. */

/** What a batch held for so many jobs has come back; jobs_end() left their count to this. */
void ends_on_released(void *context, size_t count);
void ends_on_encoded(void *context, const struct job *job);
void ends_on_not_uploaded(void *context, struct job *job);
void ends_on_queued(void *context, struct key_queue *key_queue, bool is_suspect);
void ends_on_published(void *context, struct job *const *jobs, size_t count);
/** A job whose key queue was left already is not run any more: the run has failed. */
void ends_on_dropped(void *context, struct job *job);
/** The GPU was lost with the job on it: whose fault it was is not known. */
void ends_on_lost(void *context, struct job *job, const struct error *err);

#endif
