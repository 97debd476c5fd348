/**
 * What the benches of the executor share: jobs z = x + y, from memory through the whole executor
 * and by the baseline over the driver.
 *
 * Lifetime: engine_open() to engine_close(). Threads: one.
 */
#ifndef BENCH_ENGINE_H
#define BENCH_ENGINE_H

#include "bench/bench.h"
#include "bench/ends.h"
#include "bench/gpu_baseline.h"

struct engine_work {
    const char *name;
    uint64_t buffer_bytes;
    uint32_t batch_jobs;
    bool is_coalesced;
};

struct engine_bench {
    const struct bench_options *options;
    struct gpu_baseline *baseline; /* NULL: the worker without a state file in its place */
    struct registry *registry;     /* of the baseline */
    struct state *state;           /* NULL: none is kept */
    uint64_t jobs_a_key;           /* as bench_source() takes it */
    uint32_t lanes, depth;
};

/** Lanes and depth as configured; no baseline yet. */
void engine_init(struct engine_bench *bench, const struct bench_options *options);

/** Opens the baseline. */
MUST_CHECK enum err engine_open_baseline(struct engine_bench *bench, struct error *err);
void engine_close(struct engine_bench *bench);

/** Opens a state file in a temporary folder, of which nothing remains afterwards. */
MUST_CHECK enum err engine_open_state(struct state **ret, struct error *err);

/** Jobs that come before those that are measured, in each run of the worker. */
uint64_t engine_warm_up_jobs(const struct engine_bench *bench, const struct engine_work *work);

/** Sets limits that this work does not reach, and batches of its size. */
void engine_fit_settings(const struct engine_bench *bench, const struct engine_work *work);

/** One message of it. `ret.data` is to be freed. */
MUST_CHECK enum err engine_job(
    const struct engine_work *work, struct slice *ret, struct error *err);

/** `clock` says how many; at most `at_once` are unfinished at a time. */
MUST_CHECK enum err engine_run_worker(const struct engine_bench *bench, struct state *state,
    struct slice payload, uint64_t at_once, struct bench_clock *clock, struct error *err);

/** What the baseline does of it with so many jobs. */
struct gpu_baseline_work engine_baseline_work(
    const struct engine_bench *bench, const struct engine_work *work, uint64_t jobs);

#endif
