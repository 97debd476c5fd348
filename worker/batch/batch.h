/**
 * A batch: jobs that travel together. One packed upload, one clear, the launches, one packed
 * readback, one fence; a batch of one is the same code. plan/plan.h draws how the bytes lie; in
 * front of them, in the same upload, stand the tables of coalesced launches (coalesce.h).
 *
 * A batch belongs to one lane and is used again and again: its slabs stay. Jobs that need more than
 * a slab get blocks of the pools, for that time only.
 *
 * A mapped batch copies nothing: its kernels work in the upload slab itself, over the link, and its
 * outputs are found there. The host does the clear and the fills while staging. It is for jobs
 * whose kernels touch each byte once (plan/plan.h, is_streamed) and that fit the slab together:
 * there it saves the copies, which cost a small job more than its bytes. One job that is not so,
 * and all are copied.
 *
 * Lifetime: batch_init() to batch_fini(). Threads: one lane's, bound to the device.
 */
#ifndef BATCH_BATCH_H
#define BATCH_BATCH_H

#include "batch/layout.h"

MUST_CHECK enum err batch_init(
    struct batch *batch, const struct batch_context *context, uint32_t slot, struct error *err);

/** The batch is not in flight. A zeroed batch is fine. */
void batch_fini(struct batch *batch);

/** The same where the context is lost: what the device may still use is not recycled. */
void batch_abandon(struct batch *batch);

/**
 * Starts `count` jobs of one tenant, with which the caller has entered context->tenancy: the batch
 * leaves it in batch_recycle(), or here after an error. It is in flight until batch_finish().
 * `is_guarded` is for one job alone (guards.h). `span_ns` is what several jobs are expected to take
 * together: so much longer than one of them the watchdog waits.
 *
 * A sticky code: the context is lost. Any other: nothing was enqueued, and the jobs are untouched;
 * only for what needs more than a slab.
 */
MUST_CHECK enum err batch_begin(struct batch *batch, struct job *const *jobs, size_t count,
    uint64_t span_ns, bool is_guarded, uint64_t id, struct error *err);

/**
 * Waits for the fence. Each item's outcome says how its job went; outputs are valid until
 * batch_recycle(). Any error means that the context is lost, and no outcome may be used: it is not
 * known whose fault it was.
 */
MUST_CHECK enum err batch_finish(struct batch *batch, struct error *err);

/** Ends the outputs, gives back what the batch needed beyond its slabs, and leaves its tenant. */
void batch_recycle(struct batch *batch);

/** Leaves the tenant of a batch whose context is lost, so that nobody waits for it. */
void batch_leave(struct batch *batch);

#endif
