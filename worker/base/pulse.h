/**
 * Shows another process since when each thread has worked on one thing. A thread that does so for
 * too long hangs in a file system, in a driver or in our own code. A thread that waits for work is
 * idle. A thread that reaches outside of the worker says so, because no job is to blame if it hangs
 * there.
 *
 * Most threads wait in queue_pop(), which calls pulse_idle() and pulse_busy() for them. A thread
 * that has not called pulse_start() has no pulse, and these calls do nothing. Threads: call
 * pulse_keep() before any other with a pulse starts; the other functions are about the calling
 * thread.
 */
#ifndef BASE_PULSE_H
#define BASE_PULSE_H

#include <stdatomic.h>
#include <stdint.h>

enum { PULSE_COUNT = 256, PULSE_NAME_SIZE = 16, PULSE_LINE_BYTES = 64 };

/* Each has a cache line of its own, against false sharing. */
struct pulse {
    _Alignas(PULSE_LINE_BYTES) _Atomic uint64_t busy_ns; /* since when; 0: it waits for work */
    char name[PULSE_NAME_SIZE];
    _Atomic uint32_t is_outside; /* with `busy_ns`: it reads or writes a file, or asks a service */
};

/**
 * Sets where pulses are kept from now on, all idle: an array of PULSE_COUNT that outlives the
 * threads.
 */
void pulse_keep(struct pulse *pulses);

/** Gives the thread a pulse with this name. */
void pulse_start(const char *name);

/** The thread begins something that should be done soon. */
void pulse_busy(void);

/** As pulse_busy(), outside of the worker: in a file system or a service. Until the next call. */
void pulse_outside(void);

/** The thread waits for others, or for something that others watch. */
void pulse_idle(void);

#endif
