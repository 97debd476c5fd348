#include <inttypes.h>
#include <stdlib.h>

#include "bench/engine.h"

static const struct engine_work works[] = {
    {"2 x 64 B in, 64 B out", 64, 1, false},
    {"2 x 4 KiB in, 4 KiB out", 4 << 10, 1, false},
    {"2 x 64 KiB in, 64 KiB out", 64 << 10, 1, false},
};

enum { JOBS_MAX = 1 << 20 };

/* By round, in microseconds. */
struct percentiles {
    double p50[BENCH_ROUNDS_MAX], p99[BENCH_ROUNDS_MAX];
};

struct latencies {
    struct percentiles baseline, worker, added;
};

struct latency_run {
    const struct engine_bench *bench;
    const struct engine_work *work;
    struct slice payload;
    uint64_t jobs;
    uint64_t *samples; /* `jobs` */
};

static int compare(const void *a, const void *b) {
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

static void take_percentiles(
    const struct latency_run *run, struct percentiles *ret, unsigned round) {
    qsort(run->samples, run->jobs, sizeof run->samples[0], compare);
    ret->p50[round] = (double)run->samples[run->jobs / 2] / 1e3;
    ret->p99[round] = (double)run->samples[run->jobs * 99 / 100] / 1e3;
}

static enum err run_round(
    const struct latency_run *run, struct latencies *ret, unsigned round, struct error *err) {
    struct gpu_baseline_work baseline = engine_baseline_work(run->bench, run->work, run->jobs);
    struct bench_clock clock;
    double ignored;
    baseline.samples = run->samples;
    enum err code = gpu_baseline_run(run->bench->baseline, &baseline, &ignored, err);
    if (code != ERR_OK) return code;
    take_percentiles(run, &ret->baseline, round);

    bench_clock_init(&clock, engine_warm_up_jobs(run->bench, run->work), run->jobs);
    clock.samples = run->samples;
    code = engine_run_worker(run->bench, NULL, run->payload, 1, &clock, err);
    if (code != ERR_OK) return code;
    take_percentiles(run, &ret->worker, round);
    ret->added.p50[round] = ret->worker.p50[round] - ret->baseline.p50[round];
    ret->added.p99[round] = ret->worker.p99[round] - ret->baseline.p99[round];
    return ERR_OK;
}

static void print_row(
    const struct bench_table *table, const struct engine_work *work, struct latencies *latencies) {
    const struct {
        struct bench_figure figure;
        double *values;
        bool has_spread;
    } cells[] = {
        {{"baseline_p50_us", 1, NULL}, latencies->baseline.p50, false},
        {{"worker_p50_us", 1, NULL}, latencies->worker.p50, false},
        {{"added_p50_us", 1, NULL}, latencies->added.p50, true},
        {{"baseline_p99_us", 1, NULL}, latencies->baseline.p99, false},
        {{"worker_p99_us", 1, NULL}, latencies->worker.p99, false},
        {{"added_p99_us", 1, NULL}, latencies->added.p99, true},
    };
    bench_row_begin(table, work->name);
    for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++) {
        struct bench_spread spread = bench_spread_of(cells[i].values, table->rounds);
        if (cells[i].has_spread) bench_spread(table, cells[i].figure, &spread);
        else bench_median(table, cells[i].figure, &spread);
    }
    bench_row_end(table);
}

/* Says how many jobs make a round. */
static enum err probe(struct latency_run *run, struct error *err) {
    const struct gpu_baseline_work warm_up =
        engine_baseline_work(run->bench, run->work, engine_warm_up_jobs(run->bench, run->work));
    double ns;
    enum err code = gpu_baseline_run(run->bench->baseline, &warm_up, &ns, err);
    if (code != ERR_OK) return code;
    run->jobs = (uint64_t)(run->bench->options->milliseconds * 1e6 / ns) + 1;
    if (run->jobs > JOBS_MAX) run->jobs = JOBS_MAX;
    run->samples = calloc(run->jobs, sizeof run->samples[0]);
    if (run->samples != NULL) return ERR_OK;
    return error_set(err, ERR_NO_MEMORY, 0, "give --ms less", "no memory for the samples");
}

static enum err measure(
    const struct engine_bench *bench, const struct engine_work *work, struct error *err) {
    struct latency_run run = {.bench = bench, .work = work};
    struct latencies latencies;
    engine_fit_settings(bench, work);
    enum err code = engine_job(work, &run.payload, err);
    if (code != ERR_OK) return code;
    code = probe(&run, err);
    for (unsigned i = 0; i < bench->options->table.rounds && code == ERR_OK; i++)
        code = run_round(&run, &latencies, i, err);
    if (code == ERR_OK) print_row(&bench->options->table, work, &latencies);
    free(run.samples);
    free((void *)(uintptr_t)run.payload.data);
    return code;
}

enum err bench_latency(const struct bench_options *options, struct error *err) {
    static const char *const names[] = {"one job at a time", "baseline p50, us", "worker p50, us",
        "added", "least .. most", "baseline p99, us", "worker p99, us", "added", "least .. most"};
    struct engine_bench bench;
    engine_init(&bench, options);
    bench.lanes = bench.depth = 1;
    enum err code = engine_open_baseline(&bench, err);
    if (code == ERR_OK) {
        bench_note(&options->table, "From the message in memory until its result is, %u rounds\n\n",
            options->table.rounds);
        bench_head(&options->table, names, sizeof names / sizeof names[0]);
    }
    for (size_t i = 0; i < sizeof works / sizeof works[0] && code == ERR_OK; i++)
        code = measure(&bench, &works[i], err);
    engine_close(&bench);
    return code;
}
