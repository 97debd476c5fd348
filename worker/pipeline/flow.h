/**
 * How a job moves from stage to stage once it is taken: what the stages call back, what becomes of
 * failures, and the counts that hold the intake back. Private to pipeline/.
 *
 * Threads: any.
 */
#ifndef PIPELINE_FLOW_H
#define PIPELINE_FLOW_H

#include "pipeline/stages.h"

/**
 * The job is over: those that waited for a static that it carried go on, or learn that nobody
 * brings it. Where it `is_left` unanswered, to come again, those of its partition are left too.
 */
void flow_end_carrying(struct stages *stages, struct job *job, bool is_left);

/** Answers `job`, owned from now on, with an error. */
void flow_reject(struct stages *stages, struct job *job, const struct error *err);

/** Answers a message that is no job with a dead letter alone. */
void flow_reject_undecodable(
    struct stages *stages, struct delivery *delivery, const struct error *err);

/** Jobs that are moved together take one turn of each lock. */
enum { FLOW_GROUP_MAX = 64 };

/**
 * Plans jobs that nothing of their key keeps back, FLOW_GROUP_MAX at most, unless they were planned
 * before, and hands them on. Owns them. A bound thread's.
 */
void flow_plan(struct stages *stages, struct job *const *jobs, size_t count);

/**
 * Lets go of a job that is not answered here, and of all that wait behind it in its key queue,
 * since none may overtake it: they come again, here or elsewhere. It gets no more jobs meanwhile.
 */
void flow_hand_back(struct stages *stages, struct job *job);

/** Lets go of a job that nobody answers, after stages_fail(): it comes again. */
void flow_drop(struct stages *stages, struct prepared *prepared);

/* What the stages call; `context` is the struct stages. */
MUST_CHECK enum err flow_still_wanted(void *context, const struct job *job, struct error *err);
void flow_on_begin(void *context, const struct job *job);
void flow_on_end(void *context);
void flow_on_ready(void *context, struct prepared *prepared);
void flow_on_prepare_failed(void *context, struct prepared *prepared, const struct error *err);
void flow_on_waiting(void *context, struct prepared *prepared);
void flow_on_resumed(void *context);
void flow_on_dropped(void *context, struct prepared *prepared);
void flow_on_not_stored(void *context, const struct error *err);
void flow_on_not_cached(void *context, const struct error *err);
void flow_on_done(void *context, const struct batch_item *items, size_t count);
void flow_on_released(void *context, size_t count);
void flow_on_starved(void *context, struct prepared *prepared, const struct error *err);
/** The narrow path: its job has run; was refused, or was running when the GPU was lost. */
void flow_on_narrow_done(void *context, struct prepared *prepared, const struct outcome *outcome);
void flow_on_narrow_refused(void *context, struct prepared *prepared, const struct error *err);
void flow_on_lost(void *context, struct prepared **jobs, size_t count, const struct error *err);
void flow_on_encoded(void *context, const struct outcome *outcome);
void flow_on_not_stored_outputs(void *context, struct job *job, const struct outcome *outcome);
void flow_on_queued(void *context, struct key_queue *key_queue, bool is_suspect);
void flow_on_published(void *context, const struct published *items, size_t count);
void flow_on_publish_failed(void *context, const struct error *err);

#endif
