/**
 * Since when each thread is at work on one thing, where another process sees it: one that is for
 * too long hangs, in a file system, a driver or our own code. A thread that waits for work is idle.
 *
 * queue_pop() is where most threads wait: there it is done for them. Without pulse_start() a thread
 * has no pulse, and nothing here does anything. Threads: pulse_keep() before the second one; all
 * others speak of the calling thread.
 */
#ifndef BASE_PULSE_H
#define BASE_PULSE_H

#include <stdatomic.h>
#include <stdint.h>

enum { PULSE_COUNT = 256, PULSE_NAME_SIZE = 16, PULSE_LINE_BYTES = 64 };

/* A line each, so that threads do not meet. */
struct pulse {
    _Alignas(PULSE_LINE_BYTES) _Atomic uint64_t busy_ns; /* since when; 0: it waits for work */
    char name[PULSE_NAME_SIZE];
};

/** Where pulses are kept from now on, all of them idle; PULSE_COUNT of them, as long as threads. */
void pulse_keep(struct pulse *pulses);

/** The thread has a pulse, of this name from now on. */
void pulse_start(const char *name);

/** It begins something that is done soon. */
void pulse_busy(void);

/** It waits for what others bring, or for what others watch. */
void pulse_idle(void);

#endif
