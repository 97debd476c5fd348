/**
 * Who is refused because jobs like theirs ended executors (state/suspensions.h): counts convictions
 * and good ends, and answers for each job whether its key or a program of it is suspended. Private
 * to pipeline/.
 *
 * Threads: as each function says. Without a state file nobody is suspended.
 */
#ifndef PIPELINE_REFUSALS_H
#define PIPELINE_REFUSALS_H

#include "pipeline/stages.h"

/** The message at `delivery` is convicted; `job` is NULL where it was not decoded. Intake thread.
 */
void refusals_note_conviction(
    struct stages *stages, const struct delivery *delivery, const struct job *job);

/** The job ended well. Any thread. */
void refusals_note_success(struct stages *stages, const struct job *job);

/** ERR_SUSPENDED, with until when and who can end it. Any thread. */
MUST_CHECK enum err refusals_check(
    const struct stages *stages, const struct job *job, struct error *err);

#endif
