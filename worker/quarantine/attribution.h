/**
 * What a death means for the messages that the dead executor had in hand: those become suspects,
 * and one that ran alone is convicted if the death can be laid at its door.
 *
 * A job is convicted by a death while it ran alone (STATE_ALONE) of which somebody recorded a
 * culprit: a sticky error of the driver, the watchdog, or a fatal signal. A death that nobody can
 * explain (kill -9, the out-of-memory killer) gives it ATTRIBUTION_TRIES_MAX more tries. A stop
 * that was asked for, however it ended, and the worker's own trouble say nothing of any message:
 * nobody is suspected or tried less often for them. One that the device itself is to blame for
 * (memory errors) says nothing of the job: it is the device that is given up then (supervise/).
 *
 * What is convicted is still decoded and answered with an error. One that is in a thread's hands
 * at further crashes, ATTRIBUTION_TRIES_MAX of them, is dropped to a dead letter, as one that
 * crashed its decoder is.
 *
 * Threads: the one that has opened the state, between state_open() and state_begin().
 */
#ifndef QUARANTINE_ATTRIBUTION_H
#define QUARANTINE_ATTRIBUTION_H

#include "state/state.h"

enum { ATTRIBUTION_TRIES_MAX = 3 };

struct attribution {
    struct state_death death;
    const struct state_suspect *convicted; /* by this death; NULL: nobody */
    size_t suspects;                       /* in the table now */
    size_t overlooked;                     /* left, but the table had no room for them */
};

/** Brings the table of suspects up to date with what the life before left. */
struct attribution attribution_apply(struct state *state);

#endif
