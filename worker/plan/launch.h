/**
 * The part of planning that is about steps: programs, arguments, launch shapes. See plan.h.
 * Threads: pure.
 */
#ifndef PLAN_LAUNCH_H
#define PLAN_LAUNCH_H

#include "plan/plan.h"

/** Plans step `step_index` of `job` into `ret`. */
MUST_CHECK enum err plan_step(const struct job *job, size_t step_index,
    const struct registry *registry, const struct gpu_limits *device, struct plan_launch *ret,
    struct error *err);

/** Bytes that the launch's arguments take as kernel parameters. */
uint64_t plan_launch_param_bytes(const struct plan_launch *launch);

#endif
