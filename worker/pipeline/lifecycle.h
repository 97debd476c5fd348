/**
 * How the stages start and stop: one table, in the order of their start.
 *
 * Lifetime: lifecycle_start() to lifecycle_stop(), also where the start failed. Threads: the
 * caller's, bound to the device from then on. Private to pipeline/.
 */
#ifndef PIPELINE_LIFECYCLE_H
#define PIPELINE_LIFECYCLE_H

#include "pipeline/options.h"
#include "pipeline/stages.h"

/** Opens driver, device and programs, and starts every stage behind the intake. */
MUST_CHECK enum err lifecycle_start(
    struct stages *stages, const struct executor_options *options, struct error *err);

/**
 * Finishes the jobs that were submitted and stops every stage. The source finishes last, so that
 * it commits what was finished. ERR_TIMEOUT and others as executor_run().
 */
MUST_CHECK enum err lifecycle_stop(struct stages *stages, struct error *err);

#endif
