/**
 * A batch: jobs that travel together. One packed upload, one clear, the launches, one packed
 * readback, one fence; a batch of one is the same code. plan/plan.h draws how the bytes lie.
 *
 * A batch belongs to one lane and is used again and again: its stream, fence and slabs stay. A slab
 * that a large job made larger than `slab_bytes` shrinks with the next small batch.
 *
 * Lifetime: batch_init() to batch_fini(). Threads: one lane's, bound to the device.
 */
#ifndef EXECUTE_BATCH_H
#define EXECUTE_BATCH_H

#include "execute/outcome.h"
#include "gpu/memory.h"
#include "prepare/prepare.h"

struct batch_item {
    struct prepared *prepared;
    uint64_t base[GROUP_COUNT]; /* where the job's part of each group starts in the device slab */
    uint64_t write_base;        /* where its loose writes start in the upload slab */
    uint64_t output_base;       /* where its loose outputs start in the readback slab */
    CUevent started, stopped;   /* timing events, made with the first timed job */
    struct outcome outcome;
};

struct batch {
    const struct device *device;
    uint64_t slab_bytes;
    CUstream stream;
    CUevent fence;
    struct device_block memory;
    struct pinned_block upload, readback;
    /* extents of the groups in `memory`: group g is [start[g], start[g + 1]) */
    uint64_t start[GROUP_COUNT + 1];
    uint64_t write_bytes, output_bytes; /* loose staging, all jobs */
    struct batch_telemetry telemetry;
    size_t count, count_max;
    struct batch_item *items;
};

MUST_CHECK enum err batch_init(struct batch *batch, const struct device *device,
    uint64_t slab_bytes, size_t jobs_max, struct error *err);

/** Waits for what is still on the stream. A zeroed batch is fine. */
void batch_fini(struct batch *batch);

/**
 * Runs `count` jobs to the end. Each item's outcome says how its job went; its outputs are valid
 * until the next call. ERR_OK also where jobs failed; a sticky code means that the context is lost,
 * and no outcome may be used: it is not known whose fault it was.
 */
MUST_CHECK enum err batch_run(struct batch *batch, struct prepared *const *jobs, size_t count,
    uint64_t id, struct error *err);

#endif
