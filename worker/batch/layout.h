/**
 * What a batch (batch.h) consists of, and where everything of its jobs lies in it. Private to
 * batch/, but for batch_is_large(). Threads: those of the batch.
 */
#ifndef BATCH_LAYOUT_H
#define BATCH_LAYOUT_H

#include "batch/tenancy.h"
#include "gpu/lease.h"
#include "gpu/pool.h"
#include "metrics/accounting.h"
#include "prepare/prepare.h"
#include "state/state.h"

enum { GUARD_BYTES = 256 }; /* before and behind a buffer of a guarded job */

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
    bool has_graphs;     /* launches that come again and again go as graphs (graphs.h) */
    size_t jobs_max;
};

struct batch_item {
    struct job *job;
    uint64_t base[GROUP_COUNT]; /* where the job's part of each group starts in the layout */
    uint64_t write_base;        /* where its unpacked writes start in the upload slab */
    uint64_t output_base;       /* where its unpacked outputs start in the readback slab */
    bool is_coalesced;          /* launched together with the item before it (coalesce.h) */
    uint32_t rows;              /* of a slice: its instances, where they share launches; else 0 */
    uint64_t table;             /* the first of a run: where its rows start in the upload */
    struct timing_pair timing;  /* taken with the first timed job, and kept */
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
    bool is_placed; /* its only job's outputs are read back to their places in the result's room */
    CUdeviceptr origin; /* where the layout starts for kernels */
    CUevent fence;
    bool is_done; /* the fence has said so: to ask it again takes a microsecond */
    /* Tables of coalesced launches: at the front of the upload, or behind the inputs of a slice,
     * which begin with what all slices of its array share. */
    uint64_t table_bytes;
    /* extents of the groups in the layout: group g is [start[g], start[g + 1]) */
    uint64_t start[GROUP_COUNT + 1];
    uint64_t shared_run;   /* of an array (struct array_progress) whose shared inputs stand at the
                              front of the device slab; 0: none do */
    uint64_t kept_bytes;   /* of the upload, from its front on, that the device has already */
    uint64_t upload_bytes; /* of the layout, from its front on: what goes up in one piece */
    uint64_t write_bytes, output_bytes; /* unpacked, of all jobs */
    /* a job alone: its buffers by index, each in its own block, GUARD_BYTES behind the start of it
     * (guards.h); NULL: packed */
    struct pool_block *guarded;
    size_t guarded_count;
    uint64_t guard_base; /* where the guards start in the readback slab */
    uint64_t
        param_block_bytes; /* packed all the same: rows and parameter blocks of a guarded job */
    struct batch_telemetry telemetry;
    struct graphs *graphs; /* NULL: launches go one by one */
    size_t count;
    struct batch_item *items;
    struct job slice; /* an array's: the batch's only job (array.h) */
    uint64_t begun_ns, staged_ns, enqueued_ns;
};

/** The long job that has the batch to itself; NULL: there is none. */
static inline struct long_job *batch_long_job(const struct batch *batch) {
    return batch->items[0].job->long_job;
}

/** Whether the buffers of the batch's jobs get their start values: of a long job only once. */
static inline bool batch_starts(const struct batch *batch) {
    const struct long_job *long_job = batch_long_job(batch);
    return long_job == NULL || !long_job->is_on_device;
}

/** Device and pinned bytes that a job takes in a batch; a lane adds jobs while they fit its slab.
 */
uint64_t batch_job_bytes(const struct plan *plan);

/** Whether the job takes more than a slab, and so is alone in its batch. */
bool batch_is_large(const struct plan *plan, uint64_t slab_bytes);

/** The device address of a launch's parameter block, where its entry has that in a buffer; of a
 * slice that of its first instance. */
CUdeviceptr batch_param_block_address(
    const struct batch *batch, const struct batch_item *item, const struct plan_launch *launch);

/** Where one of the job's own buffers stands in the layout. */
uint64_t batch_place(const struct batch_item *item, size_t buffer);

/** Walks over the writes that a job, or a slice, does with copies of their own; begin with zeros.
 */
struct unpacked_write {
    size_t buffer;
    uint64_t offset;  /* in it, of a slice from its first instance on */
    uint64_t staging; /* in the job's part of the staging area; after the last, all that it takes */
    struct slice data;
    size_t next;
};

bool batch_next_write(const struct job *job, struct unpacked_write *write);

/** The device address of a job's buffer, of a slice with its first instance; 0 for an empty one. */
CUdeviceptr batch_address(const struct batch *batch, const struct batch_item *item, size_t buffer);

/** As batch_address(), of a guarded job; its guards lie before and behind it. */
CUdeviceptr batch_guarded_address(const struct batch *batch, size_t buffer);

#endif
