/**
 * A guarded batch: one job, with each of its own buffers in its own block, between guard bytes. So
 * a write outside of a buffer is seen and damages no other job. A job runs guarded if it is
 * suspected of having killed an executor. That is slower than a packed batch, and otherwise the
 * same: on the host the bytes are staged in the same places, and only their places on the device
 * differ.
 *
 * Guards protect only what the job owns: statics and residents stand where they always do. Threads:
 * those of batch.h.
 */
#ifndef BATCH_GUARDS_H
#define BATCH_GUARDS_H

#include "batch/layout.h"

enum { GUARD_VALUE = 0xa7 };

/** Takes a block for each of the job's own buffers. After an error nothing is taken. */
MUST_CHECK enum err guards_take(struct batch *batch, struct error *err);

/** Gives the blocks back; none is fine. */
void guards_release(struct batch *batch);

/** Forgets the blocks where the context is lost: what the device may still use is not recycled. */
void guards_abandon(struct batch *batch);

/** What the guards add to the readback slab; they stand in it by index as the job's buffers. */
uint64_t guards_readback_bytes(const struct batch *batch);
static inline uint64_t guards_readback_at(const struct batch *batch, size_t buffer) {
    return batch->guard_base + buffer * 2 * GUARD_BYTES;
}

/** After the fence. ERR_GPU_STRAY_WRITE: a kernel wrote outside of a buffer, which is named. */
MUST_CHECK enum err guards_check(const struct batch *batch, struct error *err);

#endif
