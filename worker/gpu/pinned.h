/**
 * Copies into pinned memory by the host, checked in every build: if a range is not wholly inside
 * its block, nothing is copied and the error is ERR_INTERNAL, because planning should have refused
 * it.
 *
 * Units: bytes. Threads: one at a time for a range, and none while the device copies it.
 */
#ifndef GPU_PINNED_H
#define GPU_PINNED_H

#include "base/slice.h"
#include "gpu/memory.h"

/** Copies `from` to `offset` of the block. */
MUST_CHECK enum err pinned_write(
    const struct pinned_block *block, size_t offset, struct slice from, struct error *err);

#endif
