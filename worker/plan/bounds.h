/** The part of planning that keeps launches inside their buffers, as manifests say. See plan.h. */
#ifndef PLAN_BOUNDS_H
#define PLAN_BOUNDS_H

#include "plan/plan.h"

/**
 * ERR_OK where `launch`, whole but for the place of its parameter block, keeps to the bounds of its
 * entry and of the entry's phases; else ERR_BAD_ARGUMENT, which names the number, the bound and the
 * buffer.
 */
MUST_CHECK enum err plan_check_bounds(
    const struct job *job, const struct plan_launch *launch, const char *where, struct error *err);

#endif
