/**
 * The kernels of a job's launches, with the modules that they belong to. Part of prepare.h.
 *
 * Threads: the job's.
 */
#ifndef PREPARE_KERNELS_H
#define PREPARE_KERNELS_H

#include "gpu/modules.h"
#include "plan/plan.h"

/** Pins the modules that are loaded; true where that is all of them. Never waits. */
bool kernels_pin(struct job *job);

/**
 * Loads the modules that kernels_pin() did not find, checks every launch against its kernel, and
 * decides which cooperative ones go in phases. Codes as modules_get() and module_kernel(), and
 * ERR_BAD_LAUNCH.
 */
MUST_CHECK enum err kernels_load(const struct device *device, struct job *job, struct error *err);

/** Gives the modules back; nothing of them is used any more. */
void kernels_release(struct job *job);

#endif
