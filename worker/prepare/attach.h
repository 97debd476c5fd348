/**
 * The residents of a job, from before it runs until it has ended. Part of prepare.h.
 *
 * Threads: the job's. Needs key order: nobody else uses the job's residents meanwhile.
 */
#ifndef PREPARE_ATTACH_H
#define PREPARE_ATTACH_H

#include "gpu/residents.h"
#include "plan/plan.h"

/**
 * Attaches all that the job names, creating those that it may; after an error, none. A job that was
 * applied before is marked so: it launches nothing and reads what it left. Where that cannot give
 * all its outputs: ERR_RESIDENT_GENERATION; others as residents_attach().
 */
MUST_CHECK enum err attach_residents(
    struct residents *residents, struct job *job, struct error *err);

/** Detaches them, as the job's `run` says. */
void detach_residents(struct residents *residents, struct job *job);

#endif
