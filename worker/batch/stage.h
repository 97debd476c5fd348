/**
 * Copies the data of a batch's jobs into its upload slab, to the places of its layout. Part of
 * batch.h.
 */
#ifndef BATCH_STAGE_H
#define BATCH_STAGE_H

#include "batch/layout.h"

/** The batch has its layout and its memory. A mapped batch is cleared and filled here, too. */
void stage_batch(const struct batch *batch);

#endif
