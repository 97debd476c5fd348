/**
 * A batch: jobs that run together, with one packed upload, one clear, the launches, one packed
 * readback and one fence. A batch of one job uses the same code. plan/plan.h draws how the bytes
 * lie. Where there is little to clear, zeroes are part of the upload. The tables of coalesced
 * launches (coalesce.h) stand in front of them, in the same upload.
 *
 * A batch belongs to one lane, is used again and again, and keeps its slabs. Jobs that need more
 * than a slab get blocks of the pools until their batch is recycled.
 *
 * A mapped batch copies nothing: its kernels work in the upload slab itself, over the link, and
 * leave their outputs there. The host does the clear and the fills while staging. A batch is mapped
 * if all of its jobs fit the slab together and their kernels touch each byte once (plan/plan.h,
 * is_streamed): copies would then cost a small job more than its bytes. If one job is different,
 * all are copied.
 *
 * A large job may have a room for its result (job/job.h). It runs alone, its outputs are read back
 * to their places there, and it keeps that memory when the batch is recycled.
 *
 * Lifetime: batch_init() to batch_fini(). Threads: one lane's, bound to the device.
 */
#ifndef BATCH_BATCH_H
#define BATCH_BATCH_H

#include "batch/layout.h"

MUST_CHECK enum err batch_init(
    struct batch *batch, const struct batch_context *context, uint32_t slot, struct error *err);

/** Call it when the batch is not in flight. A zeroed batch is fine. */
void batch_fini(struct batch *batch);

/** As batch_fini(), if the context is lost: memory that the device may still use is not recycled.
 */
void batch_abandon(struct batch *batch);

/**
 * Starts `count` jobs of one tenant. The caller has entered context->tenancy with that tenant; the
 * batch leaves it in batch_recycle(), or here after an error. The batch is in flight until
 * batch_finish(). `is_guarded` is for one job alone (guards.h). `span_ns` is the time that several
 * jobs are expected to take together; the watchdog waits that much longer than for one of them.
 *
 * Errors: after a sticky code the context is lost. After any other nothing was enqueued and the
 * jobs are untouched; such an error comes only from jobs that need more than a slab, from long
 * jobs, and from arrays whose blobs are read in parts.
 */
MUST_CHECK enum err batch_begin(struct batch *batch, struct job *const *jobs, size_t count,
    uint64_t span_ns, bool is_guarded, uint64_t id, struct error *err);

/** Whether batch_finish() would not wait. False also where that cannot be told. */
bool batch_is_done(struct batch *batch);

/** As batch_is_done(), once it is so, or after some tens of microseconds. */
bool batch_is_done_soon(struct batch *batch);

/**
 * Waits for the fence. Each item's outcome says how its job went; outputs are valid until
 * batch_recycle(). After any error the context is lost, and no outcome may be used: it is not known
 * which job caused the error.
 */
MUST_CHECK enum err batch_finish(struct batch *batch, struct error *err);

/** Ends the outputs, gives back the memory beyond the slabs, and leaves the tenant. */
void batch_recycle(struct batch *batch);

/** Leaves the tenant of a batch whose context is lost, so that no other tenant waits for it. */
void batch_leave(struct batch *batch);

#endif
