/**
 * A call of an entry point: counted, admitted and, where the fault script says so, made to fail.
 * The lock is held from call_begin() to call_end().
 */
#ifndef CPU_DRIVER_CALL_H
#define CPU_DRIVER_CALL_H

#include "cpu_driver/state.h"

enum needs { NEEDS_NOTHING, NEEDS_INIT, NEEDS_CONTEXT };

struct call {
    struct cpu_device *device; /* current on this thread; never NULL if a context is needed */
    struct cpu_fault fault;    /* for what the call enqueues */
    CUresult result;
};

/** Takes the lock and counts the call. False: call_end() has its result already. */
bool call_begin(struct call *call, enum cpu_entry entry, enum needs needs);

CUresult call_end(const struct call *call);

#endif
