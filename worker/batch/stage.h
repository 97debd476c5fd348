/**
 * Copies the data of a batch's jobs into its upload slab, to the places of its layout. Part of
 * batch.h.
 */
#ifndef BATCH_STAGE_H
#define BATCH_STAGE_H

#include "batch/layout.h"

/**
 * The batch has its layout and its memory. A mapped batch is cleared and filled here, too. Errors:
 * those of blob_read(), for a slice of an array whose blob is read in parts.
 */
MUST_CHECK enum err stage_batch(const struct batch *batch, struct error *err);

#endif
