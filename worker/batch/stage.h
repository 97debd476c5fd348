/**
 * Puts what a batch's jobs bring along into its upload slab, where its layout has it. Part of
 * batch.h.
 */
#ifndef BATCH_STAGE_H
#define BATCH_STAGE_H

#include "batch/layout.h"

/** The batch is laid out and has its memory. A mapped one is cleared and filled here, too. */
void stage_batch(const struct batch *batch);

#endif
