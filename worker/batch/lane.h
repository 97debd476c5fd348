/**
 * A lane: a thread with one CUDA stream that takes ready jobs, runs them in batches, and hands
 * every outcome on. Up to `depth` batches are in flight, so that the host stages one while the
 * device runs another. Batches of slow jobs have the lane to themselves.
 *
 * A lane without a whole batch to run, or whose batches are on the device, admits messages: most
 * small jobs stay with one thread, and in its caches, from their message to their result.
 *
 * ready.h decides which jobs share a batch, and learns from the lanes how long batches took. A lane
 * does not wait for more jobs: those that are ready are the batch.
 *
 * While all lanes wait, the thread that reads messages runs a few short jobs itself, on a lane that
 * it borrows: to wake that one's own thread takes 5 to 8 us.
 *
 * A stream is leased for the life of the lane, since the next batch is on it while outputs of the
 * last one are collected.
 *
 * Lifetime: lanes_start() to lanes_stop(), which first runs all jobs in the queue. Threads: the
 * callbacks come from the lanes' threads, and from one that has borrowed a lane.
 */
#ifndef BATCH_LANE_H
#define BATCH_LANE_H

#include "batch/batch.h"
#include "batch/ready.h"
#include "gpu/lease.h"

struct lanes_options {
    const struct device *device;
    struct pool *device_pool, *pinned_pool;
    struct statics *statics;
    struct pool_counters *device_counters, *pinned_counters; /* of each lane; outlive the lanes */
    struct counters *counters;
    struct lease_pool *leases;
    struct tenancy *tenancy; /* NULL: jobs are not isolated */
    struct state *state;     /* as batch.h has it */
    uint32_t count, depth;
    uint64_t slab_bytes; /* device memory, and pinned memory each way, of each batch in flight */
    bool can_map;        /* batches may be mapped (batch.h) */
    bool has_graphs;     /* as struct batch_context has it */
    uint32_t batch_jobs_max;
    struct ready *ready; /* the lanes own what they take */
    /** Admits `count` messages that were offered to the lanes (ready.h). */
    void (*admit)(void *context, size_t count);
    /** The job, or a slice of an array, is about to run: an error where it must not. */
    enum err (*start)(void *context, struct job *job, struct error *err);
    /** The job is not run, since start() has refused it; the callee owns it. */
    void (*on_refused)(void *context, struct job *job, const struct error *err);
    /** The jobs have run, as their outcomes say. The callee owns them. Outputs are valid during
     * the call. */
    void (*on_done)(void *context, struct job *const *jobs, size_t count);
    /** A long job has run a chunk, and shows what it has read (long_job->found) during the call. */
    void (*on_progress)(void *context, const struct job *job);
    /** Called after on_done: the batch has given back the memory of `count` jobs. */
    void (*on_released)(void *context, size_t count);
    /** There is no memory for the job now, though the lane holds nothing else; the callee owns it.
     */
    void (*on_memory_short)(void *context, struct job *job, const struct error *err);
    /**
     * The GPU is lost to this process, and the lane stops. Called once for each job that the lane
     * had; it is not known which job caused the loss. The callee owns the job.
     */
    void (*on_lost)(void *context, struct job *job, const struct error *err);
    void *context;
};

struct lanes;

/** Starts all lanes; their streams and slabs are made here, so that a shortage shows at start. */
MUST_CHECK enum err lanes_start(
    const struct lanes_options *options, struct lanes **ret, struct error *err);

/** Lends a lane to the calling thread, which is bound to the device; false: none is idle. */
bool lanes_borrow(struct lanes *lanes);

/** Runs the jobs that have become ready since lanes_borrow(), if they are short, and gives the lane
 * back. */
void lanes_run_borrowed(struct lanes *lanes);

/** Closes `ready`, lets the lanes finish what is in it, and ends them. NULL is fine. */
void lanes_stop(struct lanes *lanes);

#endif
