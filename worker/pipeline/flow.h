/**
 * How a job moves from stage to stage, from when it is decoded until it has run; ends.h says how it
 * ends. Private to pipeline/.
 *
 * Threads: any.
 */
#ifndef PIPELINE_FLOW_H
#define PIPELINE_FLOW_H

#include "pipeline/stages.h"

/**
 * Plans jobs that nothing of their key keeps back, STAGES_GROUP_MAX at most, unless they were
 * planned before, and hands them on. Owns them. A bound thread's.
 */
void flow_plan(struct stages *stages, struct job *const *jobs, size_t count);

/* What the stages call; `context` is the struct stages. */

MUST_CHECK enum err flow_still_wanted(void *context, const struct job *job, struct error *err);
/** What a preparer has in hand when it crashes, or hangs. */
void flow_on_begin(void *context, const struct job *job);
void flow_on_end(void *context);
void flow_on_waiting(void *context, struct job *job);
void flow_on_resumed(void *context, struct job *job);
void flow_on_ready(void *context, struct job *job);
/** There is no memory for it now. */
void flow_on_memory_short(void *context, struct job *job, const struct error *err);
/** It is not run, or not to its end. */
void flow_on_failed(void *context, struct job *job, const struct error *err);
/** These have run. */
void flow_on_done(void *context, struct job *const *jobs, size_t count);
void flow_on_not_stored(void *context, const struct error *err);
void flow_on_not_cached(void *context, const struct error *err);
void flow_on_publish_failed(void *context, const struct error *err);

#endif
