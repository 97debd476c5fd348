/** Enqueues a laid out and staged batch on its stream. Part of batch.h. */
#ifndef BATCH_ENQUEUE_H
#define BATCH_ENQUEUE_H

#include "batch/layout.h"

/**
 * A job whose own launches are refused fails alone, in its outcome; what moves for all fails all:
 * then the error is returned.
 */
MUST_CHECK enum err enqueue_batch(struct batch *batch, struct error *err);

#endif
