/**
 * The launch signature of a job: which kernels it launches, how often and how wide, whatever its
 * data. Jobs of one signature take about the same time on the device, and can share coalesced
 * launches. Threads: pure.
 */
#ifndef PLAN_SIGNATURE_H
#define PLAN_SIGNATURE_H

#include "plan/plan.h"

/** A hash of the signature, never 0. */
uint64_t plan_signature(const struct plan *plan);
/** Whether both signatures are equal, compared value by value and not by hash. */
bool plan_same_signature(const struct plan *a, const struct plan *b);

#endif
