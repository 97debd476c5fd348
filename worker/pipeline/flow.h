/**
 * Moves a job from stage to stage, from when it is decoded until it has run; ends.h says how it
 * ends. Private to pipeline/.
 *
 * Threads: any.
 */
#ifndef PIPELINE_FLOW_H
#define PIPELINE_FLOW_H

#include "pipeline/stages.h"

/**
 * Plans jobs whose turn in their key has come, and hands them on; a job that has a plan keeps it.
 * STAGES_GROUP_MAX jobs at most, owned here. From a thread that is bound to the device.
 */
void flow_plan(struct stages *stages, struct job *const *jobs, size_t count);

/* What the stages call; `context` is the struct stages. */

/** ERR_OK: nothing is known that speaks against running it. */
MUST_CHECK enum err flow_still_wanted(void *context, const struct job *job, struct error *err);
/** As flow_still_wanted(), for a job or a slice that is run now: its partition waits for it. */
MUST_CHECK enum err flow_start(void *context, struct job *job, struct error *err);
/** Notes the job that a preparation thread has in hand, in case the thread crashes or hangs. */
void flow_on_begin(void *context, const struct job *job);
void flow_on_end(void *context);
void flow_on_waiting(void *context, struct job *job);
void flow_on_resumed(void *context, struct job *job);
void flow_on_ready(void *context, struct job *job);
/** There is no memory for the job now. */
void flow_on_memory_short(void *context, struct job *job, const struct error *err);
/** The job is not run, or not to its end. */
void flow_on_failed(void *context, struct job *job, const struct error *err);
/** Ends jobs that have run. */
void flow_on_done(void *context, struct job *const *jobs, size_t count);
/** A long job shows how far it is. */
void flow_on_progress(void *context, const struct job *job);
void flow_on_not_stored(void *context, const struct error *err);
void flow_on_not_cached(void *context, const struct error *err);
/** What long jobs show could not be published. */
void flow_on_not_shown(const struct error *err);
void flow_on_publish_failed(void *context, const struct error *err);

#endif
