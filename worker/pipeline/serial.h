/**
 * The serial fallback: one thread that runs one job at a time.
 *
 * A job comes here when there was no memory for it while others held some. It first gives back all
 * that it holds, waits, and runs as soon as there is room. A suspect (quarantine/suspects.h) comes
 * here as well: the intake takes nothing beside it, so it runs alone, and guarded.
 *
 * Nothing deadlocks. A job that waits here holds nothing, and while one waits the intake takes no
 * more, so the others finish and free what they hold. A job that finds no room while no other job
 * holds anything can never fit, and is refused.
 *
 * Lifetime: serial_start() to serial_stop(), which finishes the jobs that it has. Threads:
 * serial_push() from any.
 */
#ifndef PIPELINE_SERIAL_H
#define PIPELINE_SERIAL_H

#include "pipeline/stages.h"

struct serial_options {
    /** A job, or a slice of an array, is about to run: an error where it must not. */
    enum err (*start)(void *context, struct job *job, struct error *err);
    /** Jobs have run, as their outcomes say; the callee owns them. Outputs are valid during the
     * call. */
    void (*on_done)(void *context, struct job *const *jobs, size_t count);
    /** A long job has run a chunk, as batch/lane.h says. */
    void (*on_progress)(void *context, const struct job *job);
    /** The job was refused, or it was running when the GPU was lost; the callee owns it. */
    void (*on_failed)(void *context, struct job *job, const struct error *err);
    void *context;
};

MUST_CHECK enum err serial_start(struct stages *stages, const struct serial_options *options,
    struct serial **ret, struct error *err);
void serial_stop(struct serial *serial); /* NULL is fine */

/** Owns `job`, which holds nothing any more. Never waits. */
void serial_push(struct serial *serial, struct job *job);

#endif
