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
 * whose kernels touch each byte once (plan.h, is_streamed) and that fit the slab together: there it
 * saves the copies, which cost a small job more than its bytes. One job that is not so, and all are
 * copied.
 *
 * Lifetime: batch_init() to batch_fini(). Threads: one lane's, bound to the device.
 */
#ifndef EXECUTE_BATCH_H
#define EXECUTE_BATCH_H

#include "execute/outcome.h"
#include "execute/tenancy.h"
#include "gpu/lease.h"
#include "gpu/pool.h"
#include "metrics/accounting.h"
#include "prepare/prepare.h"
#include "state/state.h"

/** What the batches of one lane share. */
struct batch_context {
    const struct device *device;
    struct pool *device_pool, *pinned_pool;
    struct statics *statics; /* which make room in the device pool */
    struct pool_counters *device_counters, *pinned_counters; /* the lane's own */
    struct counters *counters;
    struct lease_pool *leases;
    struct tenancy *tenancy; /* NULL: jobs are not isolated */
    CUstream stream;
    struct state *state; /* NULL: what is on the device is noted nowhere */
    uint32_t lane;       /* as the state numbers it */
    uint64_t slab_bytes; /* device memory, and pinned memory each way */
    bool can_map;        /* batches may be mapped */
    size_t jobs_max;
};

struct batch_item {
    struct prepared *prepared;
    uint64_t base[GROUP_COUNT]; /* where the job's part of each group starts in the layout */
    uint64_t write_base;        /* where its loose writes start in the upload slab */
    uint64_t output_base;       /* where its loose outputs start in the readback slab */
    bool is_coalesced;          /* launched together with the item before it (coalesce.h) */
    uint64_t table;             /* the first of a run: where its rows start in the upload */
    struct timing_pair timing;  /* taken with the first timed job, and kept */
    struct outcome outcome;
};

struct batch_memory {
    struct pool_block device, upload, readback;
};

struct batch {
    const struct batch_context *context;
    uint32_t slot;                     /* among the lane's batches */
    struct batch_memory slabs, large;  /* `large` only while a batch needs it */
    const struct batch_memory *memory; /* the one in use */
    struct tenancy_slabs use;          /* of the slabs */
    bool has_entered;                  /* context->tenancy */
    CUdeviceptr mapped; /* the address of the upload slab for kernels; 0: it is only copied from */
    bool is_mapped;
    CUdeviceptr origin; /* where the layout starts for kernels */
    CUevent fence;
    uint64_t table_bytes; /* tables of coalesced launches, at the front of the upload */
    /* extents of the groups in the layout: group g is [start[g], start[g + 1]) */
    uint64_t start[GROUP_COUNT + 1];
    uint64_t write_bytes, output_bytes; /* loose staging, all jobs */
    /* a job alone: its buffers by index, each in its own block (guards.h); NULL: packed */
    struct pool_block *guarded;
    size_t guarded_count;
    uint64_t guard_base;  /* where the guards start in the readback slab */
    uint64_t words_bytes; /* packed all the same: the words of a guarded job's launches */
    struct batch_telemetry telemetry;
    size_t count;
    struct batch_item *items;
    uint64_t begun_ns, staged_ns, enqueued_ns;
};

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
MUST_CHECK enum err batch_begin(struct batch *batch, struct prepared *const *jobs, size_t count,
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

/** Device and pinned bytes that a job takes in a batch; a lane adds jobs while they fit its slab.
 */
uint64_t batch_job_bytes(const struct plan *plan);

/** The device address of the words of a launch whose entry has them in a buffer. */
CUdeviceptr batch_words_address(
    const struct batch *batch, const struct batch_item *item, const struct plan_launch *launch);

/** The device address of a job's buffer; 0 for an empty one. */
CUdeviceptr batch_address(const struct batch *batch, const struct batch_item *item, size_t buffer);

#endif
