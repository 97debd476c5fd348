/**
 * Crash attribution: what an executor's death means for the messages that it had in hand. They
 * become suspects. A message that ran alone is convicted, if there is evidence that it caused the
 * death.
 *
 * There is evidence if a culprit was recorded while a job ran alone (STATE_ALONE): by a sticky
 * error of the driver, by the watchdog, or by a fatal signal. A death without evidence (kill -9,
 * the out-of-memory killer) gives the job up to ATTRIBUTION_TRIES_MAX more tries. Two kinds of
 * death count against no message: a stop that was asked for, however it ended, and the worker's own
 * trouble. A fault of the device (memory errors) counts against the device, which is then given up
 * (supervise/), and not against the job.
 *
 * Of an array that ran alone the death convicts only the instances that were on the device, as long
 * as culprits.h can find out which.
 *
 * A convicted message is still decoded, and answered with an error. If a thread has it in hand at
 * ATTRIBUTION_TRIES_MAX further crashes, it gets a dead letter alone, like a message that crashed
 * its decoder.
 *
 * Threads: the one that opened the state, between state_open() and state_begin().
 */
#ifndef QUARANTINE_ATTRIBUTION_H
#define QUARANTINE_ATTRIBUTION_H

#include "state/state.h"

enum { ATTRIBUTION_TRIES_MAX = 3 };

struct attribution {
    struct state_death death;
    const struct state_suspect *convicted; /* by this death; NULL: none */
    uint64_t alone_ns; /* when the message was taken that ran alone; 0: none did */
    bool has_narrowed; /* it was of some instances of an array that ran alone (culprits.h) */
    size_t suspects;   /* in the table now */
    size_t overlooked; /* messages that were left but did not fit into the table */
};

/** Updates the table of suspects from what the last life left. */
struct attribution attribution_apply(struct state *state);

#endif
