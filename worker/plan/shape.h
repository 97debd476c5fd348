/**
 * The shape of a job: which kernels it launches, how often and how wide, whatever its data. Jobs of
 * one shape take about the same time on the device, and can share coalesced launches. Threads:
 * pure.
 */
#ifndef PLAN_SHAPE_H
#define PLAN_SHAPE_H

#include "plan/plan.h"

/** Equal shapes have equal keys; the key is never 0. */
uint64_t plan_shape_key(const struct plan *plan);
bool plan_same_shape(const struct plan *a, const struct plan *b);

#endif
