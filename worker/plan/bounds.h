/**
 * The part of planning that keeps launches inside their buffers, as manifests demand. See plan.h.
 * Threads: pure.
 */
#ifndef PLAN_BOUNDS_H
#define PLAN_BOUNDS_H

#include "plan/plan.h"

/**
 * Checks `launch`, of step `step_index`, which must be complete except for the place of its
 * parameter block, against the bounds of its entry and of the entry's phases. Errors:
 * ERR_BAD_ARGUMENT, with the number, the bound and the buffer.
 */
MUST_CHECK enum err plan_check_bounds(
    const struct job *job, const struct plan_launch *launch, size_t step_index, struct error *err);

#endif
