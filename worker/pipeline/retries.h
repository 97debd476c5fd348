/**
 * Failed jobs that are tried again here: those whose error says `retry: worker`. While a job waits,
 * it holds nothing on the device; it waits longer after each failure (settings: retry). It keeps
 * its place in its key queue, and still counts as in flight.
 *
 * A job may fail because of trouble of the worker's own (struct error's `trouble`). Such a failure
 * is no answer and does not count as a try: the job waits here until the trouble is over or its
 * deadline has come. But if what the job needs works again and again for others, and never for this
 * job, the failure does count.
 *
 * A worker that stops does not wait for these jobs: it hands them back, uncommitted, for others to
 * try. It does the same with jobs of a partition that leaves or is lost.
 *
 * Lifetime: retries_start() to retries_destroy(). Threads: its own, which sends jobs on when their
 * time has come; each function says who may call it.
 */
#ifndef PIPELINE_RETRIES_H
#define PIPELINE_RETRIES_H

#include "pipeline/stages.h"

struct retries;

struct retries_options {
    /** An error where the job is not to be run any more. Asked with a lock held: never waits. */
    enum err (*still_wanted)(void *context, const struct job *job, struct error *err);
    /** Jobs whose time has come; the callee owns them. From the thread here, which is bound. */
    void (*on_due)(struct stages *stages, struct job *const *jobs, size_t count);
    /** A job that is not tried again here; the callee owns it. */
    void (*on_handed_back)(struct stages *stages, struct job *job);
};

MUST_CHECK enum err retries_start(struct stages *stages, const struct retries_options *options,
    struct retries **ret, struct error *err);

/** Ends the thread and hands back jobs that wait. Call it before the stages that get jobs from here
 * finish. */
void retries_finish(struct retries *retries); /* NULL is fine */

/** When no stage has a job any more. */
void retries_destroy(struct retries *retries); /* NULL is fine */

/**
 * Whether to try a failed job again; that try is counted then. False: answer it as its outcome
 * says. The outcome becomes ERR_DEADLINE_EXCEEDED where another try would come too late. Any
 * thread.
 */
MUST_CHECK bool retries_want(struct retries *retries, struct job *job);

/**
 * Owns a job that retries_want() has accepted and that holds nothing any more. False: no job is
 * tried here any more; the caller still owns the job, and hands it back. Any thread.
 */
MUST_CHECK bool retries_add(struct retries *retries, struct job *job);

/** Sends jobs that wait and are not wanted any more on at once, to be answered. Any thread. */
void retries_check_wanted(struct retries *retries);

/** Hands back the jobs of a partition that this worker has lost. Intake thread. */
void retries_hand_back(struct retries *retries, const char *topic, int32_t partition);

/** Hands back all, now and from now on; returns how many waited. Intake thread, which takes no
 * more. */
size_t retries_hand_back_all(struct retries *retries);

/** Whether retries_hand_back_all() was called, so that no job waits here any more. Any thread. */
bool retries_are_over(struct retries *retries);

size_t retries_count(struct retries *retries);

#endif
