/**
 * The narrow path: jobs that run one at a time. Those for which there was no memory while others
 * held some give back all they hold, wait here, and run as soon as there is room for them. A
 * suspect (quarantine/suspects.h) comes here alone, since the intake lets nobody else in, and runs
 * guarded.
 *
 * Nothing deadlocks: who waits holds nothing, and while somebody waits the intake takes no more, so
 * that what the others hold comes free. A job that finds no room when nobody else holds anything
 * can never fit, and is refused.
 *
 * Lifetime: narrow_start() to narrow_stop(), which finishes what is in it. Threads: narrow_push()
 * from any.
 */
#ifndef PIPELINE_NARROW_H
#define PIPELINE_NARROW_H

#include "pipeline/stages.h"

struct narrow_options {
    /** Asked before a job runs: an error where it is not to be run any more. */
    enum err (*still_wanted)(void *context, const struct job *job, struct error *err);
    /** Jobs have run, as their outcomes say; the callee owns them. Outputs are valid during the
     * call. */
    void (*on_done)(void *context, struct job *const *jobs, size_t count);
    /** The job was refused, or was running when the GPU was lost; the callee owns it. */
    void (*on_failed)(void *context, struct job *job, const struct error *err);
    void *context;
};

MUST_CHECK enum err narrow_start(struct stages *stages, const struct narrow_options *options,
    struct narrow **ret, struct error *err);
void narrow_stop(struct narrow *narrow); /* NULL is fine */

/** Owns `job`, which holds nothing any more. Never waits. */
void narrow_push(struct narrow *narrow, struct job *job);

#endif
