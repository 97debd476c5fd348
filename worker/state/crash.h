/**
 * Signal handlers with which a crashing executor records what it died of; the signal then ends the
 * process as usual. Two kinds of crashes are the worker's own fault (STATE_DEATH_OWN) and no
 * evidence against a job: that of a thread that never holds a message, and that of a store into the
 * state file when its disk is full.
 *
 * Threads: call crash_watch() before any thread starts that may hold a message; a handler runs on
 * the thread that crashes.
 */
#ifndef STATE_CRASH_H
#define STATE_CRASH_H

#include "state/state.h"

/** Installs the handlers. `state` must live as long as the process; NULL is fine. */
void crash_watch(struct state *state);

/** Whether it is a signal with which a process crashes: SEGV, BUS, ABRT, ILL, FPE. */
bool crash_is_signal(int number);

/** Declares that the calling thread never holds a message. */
void crash_is_no_evidence(void);

#endif
