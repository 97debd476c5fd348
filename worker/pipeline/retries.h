/**
 * Failed jobs that are tried again here: those whose error says `retry: worker`. They hold nothing
 * on the device while they wait, longer after each failure (settings: retry), and keep their place
 * in their key queue. They still count as in flight.
 *
 * A job that met trouble of the worker's own (struct error's `trouble`) waits among them until that
 * is over or its deadline has come: it is not answered with it, and it does not count as a try.
 * Where what the job needs works for others again and again, and never for the job, it does.
 *
 * A worker that stops waits for none of them: it hands them back, uncommitted, for others to try.
 * So it does with those of a partition that is not ours any more; while that is still being
 * drained, they are tried as before.
 *
 * Lifetime: retries_start() to retries_destroy(). Threads: its own, which sends jobs on when their
 * time has come; the functions say who may call them.
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

/** Ends the thread and hands back what waits. Before the stages that jobs are sent on to. */
void retries_finish(struct retries *retries); /* NULL is fine */

/** Once no stage has a job any more. */
void retries_destroy(struct retries *retries); /* NULL is fine */

/**
 * Whether a job that failed is to be tried again. False: it is to be answered as its outcome says,
 * which has become ERR_DEADLINE_EXCEEDED where another try would come too late. Any thread.
 */
MUST_CHECK bool retries_want(struct retries *retries, struct job *job);

/**
 * Owns a job that retries_want() and that holds nothing any more. False: nothing is tried here any
 * more, and it is the caller's still, to be handed back. Any thread.
 */
MUST_CHECK bool retries_add(struct retries *retries, struct job *job);

/** Those that wait and are not wanted any more are sent on at once, to be answered. Any thread. */
void retries_check_wanted(struct retries *retries);

/** Hands back those of a partition that is not ours any more. Intake thread. */
void retries_hand_back(struct retries *retries, const char *topic, int32_t partition);

/** Hands back all, now and from now on; returns how many waited. Intake thread, which takes no
 * more. */
size_t retries_hand_back_all(struct retries *retries);

/** Whether retries_hand_back_all() was called: nothing is waited for here any more. Any thread. */
bool retries_are_over(struct retries *retries);

size_t retries_count(struct retries *retries);

#endif
