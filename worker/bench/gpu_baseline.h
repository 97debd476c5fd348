/**
 * The loop that a programmer would write who has the jobs in memory and nothing else to care for:
 * copy in, clear, launch, copy back, over `threads` streams with `depth` batches each. What the
 * worker reaches is measured against it (gpu-worker bench).
 *
 * A job is z = x + y over buffers of `buffer_bytes` each, by the program `bench`. Host copies into
 * and out of pinned memory are part of it, as they are of the worker's work.
 *
 * Lifetime: gpu_baseline_create() to gpu_baseline_destroy(). Threads: one; it starts its own.
 */
#ifndef BENCH_GPU_BASELINE_H
#define BENCH_GPU_BASELINE_H

#include "base/error.h"
#include "program/program.h"

struct gpu_baseline;

struct gpu_baseline_options {
    bool on_cpu; /* which driver */
    uint64_t cpu_memory_bytes;
    int device;
    const struct registry *registry; /* outlives the baseline */
};

/** Of a job, by the whole process while the baseline's threads ran. */
struct gpu_baseline_cost {
    double cpu_ns, switches; /* voluntary context switches */
};

struct gpu_baseline_work {
    uint32_t threads, depth;
    uint32_t batch_jobs;
    bool is_coalesced; /* one launch a batch, else one a job */
    uint64_t buffer_bytes;
    uint64_t jobs; /* rounded up to whole batches of all threads */
    /** With one thread and a depth of one: how long each batch took, from copying in until its
     * results were copied out. NULL: not noted. */
    uint64_t *samples;
    struct gpu_baseline_cost *cost; /* NULL: nobody asks */
};

MUST_CHECK enum err gpu_baseline_create(
    const struct gpu_baseline_options *options, struct gpu_baseline **ret, struct error *err);
void gpu_baseline_destroy(struct gpu_baseline *baseline); /* NULL is fine */

/** Nanoseconds a job, from the first batch of all threads to the last; set-up is left out. */
MUST_CHECK enum err gpu_baseline_run(struct gpu_baseline *baseline,
    const struct gpu_baseline_work *work, double *ns_a_job, struct error *err);

#endif
