/**
 * The residents of a job, from before it runs until it has ended. Part of prepare.h.
 *
 * Threads: the job's. Needs key order, so that no other job uses these residents meanwhile.
 */
#ifndef PREPARE_ATTACH_H
#define PREPARE_ATTACH_H

#include "gpu/residents.h"
#include "plan/plan.h"

/**
 * Attaches all residents that the job names, and creates those that it may; after an error, none is
 * attached. A job that was applied before is marked so: it launches nothing and only reads its
 * outputs. ERR_RESIDENT_GENERATION: not all of them can be read; other codes as residents_attach().
 */
MUST_CHECK enum err attach_residents(
    struct residents *residents, struct job *job, struct error *err);

/** Detaches them, as the job's `run` says. */
void detach_residents(struct residents *residents, struct job *job);

#endif
