/** Enqueues a laid out and staged batch on its stream. Part of batch.h. */
#ifndef BATCH_ENQUEUE_H
#define BATCH_ENQUEUE_H

#include "batch/layout.h"

/**
 * If the driver refuses a job's own launches, that job fails alone, in its outcome. If it refuses a
 * copy that all jobs share, all fail, and the error is returned.
 */
MUST_CHECK enum err enqueue_batch(struct batch *batch, struct error *err);

#endif
