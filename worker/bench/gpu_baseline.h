/**
 * The baseline for a GPU: the loop that a programmer would write for jobs in memory and nothing
 * else. It copies in, clears, launches and copies back, on `threads` streams with `depth` batches
 * each. gpu-worker bench compares the worker with it.
 *
 * A job is z = x + y over buffers of `buffer_bytes` each, by the program `bench`. It includes host
 * copies into and out of pinned memory, as the worker's work does. With `messages` it is the
 * message loop: inputs come from messages like the worker's, and results are encoded.
 *
 * Lifetime: from gpu_baseline_create() to gpu_baseline_destroy(). Threads: one; it starts its own.
 */
#ifndef BENCH_GPU_BASELINE_H
#define BENCH_GPU_BASELINE_H

#include "base/error.h"
#include "program/program.h"

struct counters;
struct gpu_baseline;

struct gpu_baseline_options {
    bool on_cpu; /* which driver */
    uint64_t cpu_memory_bytes;
    int device;
    const struct registry *registry; /* outlives the baseline */
};

/** The cost of a job, for the whole process while the baseline's threads ran. */
struct gpu_baseline_cost {
    double cpu_ns, switches; /* voluntary context switches */
};

struct gpu_baseline_work {
    uint32_t threads, depth;
    uint32_t batch_jobs;
    bool is_coalesced; /* one launch for each batch; otherwise one for each job */
    uint64_t buffer_bytes;
    /** Not 0: only copies so many bytes of a job in and `buffer_bytes` out, from and to pinned
     * memory: what the link to the device can do. */
    uint64_t link_bytes;
    /** Not NULL: each job is the next of these messages (bench_job_add()), coalesced. */
    const struct slice *messages;
    size_t message_count;
    uint64_t jobs; /* rounded up to whole batches of all threads */
    /** With one thread and a depth of one: how long each batch took, from copying in until its
     * results were copied out. NULL: not noted. */
    uint64_t *samples;
    struct gpu_baseline_cost *cost; /* NULL: not measured */
    struct counters *counters; /* get an outcome for each batch, and its bytes; NULL: nobody does */
};

MUST_CHECK enum err gpu_baseline_create(
    const struct gpu_baseline_options *options, struct gpu_baseline **ret, struct error *err);
void gpu_baseline_destroy(struct gpu_baseline *baseline); /* NULL is fine */

/** Nanoseconds per job, from the first batch of all threads to the last, without set-up. Errors:
 * those of the driver; ERR_INTERNAL, if a message is another one or a result is wrong. */
MUST_CHECK enum err gpu_baseline_run(struct gpu_baseline *baseline,
    const struct gpu_baseline_work *work, double *ns_a_job, struct error *err);

#endif
