/**
 * What an executor that crashes says of itself, before it dies of the signal as it would anyway: a
 * crash of a thread that never holds a message, or of a store into the state file that the disk had
 * no room for, is the worker's own trouble (STATE_DEATH_OWN) and no evidence against a job.
 *
 * Threads: crash_watch() before the second one; the handlers on whichever thread crashes.
 */
#ifndef STATE_CRASH_H
#define STATE_CRASH_H

#include "state/state.h"

/** From now on; `state` lives as long as the process. NULL is fine. */
void crash_watch(struct state *state);

/** The calling thread never holds a message. */
void crash_is_no_evidence(void);

#endif
