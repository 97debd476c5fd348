#include <stdlib.h>

#include "bench/engine.h"
#include "bench/job.h"
#include "bench/scale.h"
#include "metrics/board.h"
#include "pipeline/executor.h"
#include "process/sandbox.h"

static const uint64_t ENDLESS = UINT64_MAX / 2;

enum {
    SMALL_A_BATCH = 128,
    ARRAYS_A_BATCH = 16,
    JOBS_A_BATCH = 4 /* arrays that are in flight for each batch that may be */
};

/* Ends with an error, or never. */
static enum err run_executor(
    const struct bench_options *options, struct bench_feed *feed, struct error *err) {
    static const atomic_bool stop;
    struct bench_clock clock;
    struct board *board = NULL;
    struct state *state = NULL;
    struct executor_summary summary;
    feed->at_once = UINT64_MAX;
    bench_clock_init(&clock, 0, UINT64_MAX);
    enum err code = board_map(options->board_fd, &board, err);
    if (code == ERR_OK) code = engine_open_state(&state, err);
    if (code != ERR_OK) return code;
    const struct executor_options executor = {.settings = options->settings,
        .life = {.source = bench_source(&clock, feed), .sink = bench_sink(), .state = state},
        .device = options->device,
        .board = board,
        .stop = &stop};
    if (executor.life.source == NULL || executor.life.sink == NULL)
        return error_no_memory(err, "no memory for a bench");
    return executor_run(&executor, &summary, err);
}

/* The baseline does the same work, in batches as large. Ends with an error, or never. */
static enum err run_baseline(
    const struct bench_options *options, const struct engine_work *work, struct error *err) {
    struct engine_bench bench;
    struct board *board = NULL;
    double ns_a_job;
    engine_init(&bench, options);
    enum err code = board_map(options->board_fd, &board, err);
    if (code == ERR_OK) code = engine_open_baseline(&bench, err);
    if (code != ERR_OK) return code;
    struct gpu_baseline_work loop = engine_baseline_work(&bench, work, ENDLESS);
    loop.counters = &board->counters;
    return gpu_baseline_run(bench.baseline, &loop, &ns_a_job, err);
}

/* A job that z = x + y runs, with batches and limits of its size. */
static enum err run_add(const struct bench_options *options, const struct engine_work *work,
    uint32_t instances, struct error *err) {
    struct engine_bench bench;
    struct slice payload;
    struct bench_feed feed = {.payloads = &payload, .payload_count = 1};
    engine_init(&bench, options);
    engine_fit_settings(&bench, work);
    /* Messages that are lent hold no bytes, but results do, and there may be many executors. */
    if (instances > 0)
        options->settings->limits.jobs_in_flight = JOBS_A_BATCH * bench.lanes * bench.depth;
    enum err code = instances > 0
                        ? bench_job_add("add_coalesced", 4 << 10, instances, &payload, err)
                        : bench_job_add(work->is_coalesced ? "add_coalesced" : "add",
                              work->buffer_bytes, 0, &payload, err);
    return code == ERR_OK ? run_executor(options, &feed, err) : code;
}

static const struct engine_work small = {
    .buffer_bytes = 4 << 10, .batch_jobs = SMALL_A_BATCH, .is_coalesced = true};
static const struct engine_work large = {.buffer_bytes = 1 << 20, .batch_jobs = 1};

static enum err run_small(const struct bench_options *options, struct error *err) {
    return run_add(options, &small, 0, err);
}

static enum err run_small_baseline(const struct bench_options *options, struct error *err) {
    return run_baseline(options, &small, err);
}

static enum err run_large(const struct bench_options *options, struct error *err) {
    return run_add(options, &large, 0, err);
}

static enum err run_large_baseline(const struct bench_options *options, struct error *err) {
    return run_baseline(options, &large, err);
}

static enum err run_arrays(const struct bench_options *options, struct error *err) {
    const struct engine_work work = {
        .buffer_bytes = (uint64_t)options->instances * (4 << 10), .batch_jobs = ARRAYS_A_BATCH};
    options->settings->limits.instances_per_job = options->instances;
    return run_add(options, &work, options->instances, err);
}

/* An array is a batch. */
static enum err run_arrays_baseline(const struct bench_options *options, struct error *err) {
    const struct engine_work work = {
        .buffer_bytes = 4 << 10, .batch_jobs = options->instances, .is_coalesced = true};
    return run_baseline(options, &work, err);
}

/* The settings stay as they are. The first job brings the data set, which all share. */
static enum err run_main_jobs(const struct bench_options *options, struct error *err) {
    struct slice first, payload;
    struct bench_feed feed = {
        .firsts = &first, .first_count = 1, .payloads = &payload, .payload_count = 1};
    enum err code = bench_job_train(1, options->iterations, 0, true, &first, err);
    if (code == ERR_OK) code = bench_job_train(1, options->iterations, 0, false, &payload, err);
    return code == ERR_OK ? run_executor(options, &feed, err) : code;
}

const struct scale_work scale_works[] = {
    {"2 x 4 KiB in, 4 KiB out, 128 jobs a launch", 1024, 1, run_small},
    {"2 x 4 KiB in, 4 KiB out, 128 jobs a launch: baseline", 8, SMALL_A_BATCH, run_small_baseline},
    {"2 x 1 MiB in, 1 MiB out", 16, 1, run_large},
    {"2 x 1 MiB in, 1 MiB out: baseline", 16, 1, run_large_baseline},
    {"the main job: logreg_adam, as configured", 2, 1, run_main_jobs},
    {"arrays of 2 x 4 KiB in, 4 KiB out", 4, 0, run_arrays},
    {"arrays of 2 x 4 KiB in, 4 KiB out: baseline", 4, 0, run_arrays_baseline},
};
const size_t scale_work_count = sizeof scale_works / sizeof scale_works[0];

enum err bench_scale_executor(const struct bench_options *options, struct error *err) {
    if (options->work >= scale_work_count)
        return error_set(err, ERR_CONFIG, 0, "leave --device to bench scale", "no such work");
    options->settings->cpu_driver.devices = options->devices;
    sandbox_enter(options->settings->executors.core_dumps == CORE_DUMPS_INHERIT);
    return scale_works[options->work].run(options, err);
}
