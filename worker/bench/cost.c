#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/cpu_time.h"
#include "bench/engine.h"

static const struct engine_work work = {
    "2 x 4 KiB in, 4 KiB out, 32 jobs a launch", 4 << 10, 32, true};

enum {
    PARTS_MAX = CPU_TIME_PARTS_MAX,
    JOBS_MIN = 1024 /* in a round; with fewer, too few ranges would be measured */
};

/* Nanoseconds or switches per job, by round; 0 if a round did not have it. */
struct cost {
    char name[CPU_TIME_NAME_SIZE];
    double rounds[BENCH_ROUNDS_MAX];
};

struct costs {
    struct cost parts[PARTS_MAX];
    size_t count;
    struct cost threads, process, tracing, baseline, switches, baseline_switches;
};

static void note(
    struct costs *costs, const struct cpu_time_part *part, unsigned round, double jobs) {
    size_t i = 0;
    while (i < costs->count && strcmp(costs->parts[i].name, part->name) != 0) i++;
    if (i == PARTS_MAX) return;
    if (i == costs->count) strcpy(costs->parts[costs->count++].name, part->name);
    costs->parts[i].rounds[round] = part->ns / jobs;
}

static void on_edge(bool is_end) {
    if (is_end) cpu_time_end();
    else cpu_time_begin();
}

static enum err run_worker(const struct engine_bench *bench, struct slice payload, uint64_t jobs,
    struct cpu_time *ret, struct error *err) {
    struct bench_clock clock;
    bench_clock_init(&clock, engine_warm_up_jobs(bench, &work), jobs);
    clock.on_edge = on_edge;
    cpu_time_start();
    enum err code = engine_run_worker(bench, NULL, payload, UINT64_MAX, &clock, err);
    if (code == ERR_OK) cpu_time_take(ret);
    return code;
}

/* With a collector. No job is traced, so nobody asks it, and it need not be there. */
static enum err run_worker_that_traces(const struct engine_bench *bench, struct slice payload,
    uint64_t jobs, struct cpu_time *ret, struct error *err) {
    static char collector[] = "http://127.0.0.1:4318";
    char **url = &bench->options->settings->tracing.otlp_url, *configured = *url;
    *url = collector;
    enum err code = run_worker(bench, payload, jobs, ret, err);
    *url = configured;
    return code;
}

static enum err run_round(const struct engine_bench *bench, struct slice payload, uint64_t jobs,
    struct costs *ret, unsigned round, struct error *err) {
    struct gpu_baseline_cost cost;
    struct gpu_baseline_work baseline = engine_baseline_work(bench, &work, jobs);
    struct cpu_time time;
    double ignored, count = (double)jobs;
    baseline.cost = &cost;
    enum err code = gpu_baseline_run(bench->baseline, &baseline, &ignored, err);
    if (code != ERR_OK) return code;
    ret->baseline.rounds[round] = cost.cpu_ns;
    ret->baseline_switches.rounds[round] = cost.switches;

    code = run_worker(bench, payload, jobs, &time, err);
    if (code != ERR_OK) return code;
    for (size_t i = 0; i < time.count; i++) note(ret, &time.parts[i], round, count);
    ret->threads.rounds[round] = time.threads_ns / count;
    ret->process.rounds[round] = time.process_ns / count;
    ret->switches.rounds[round] = (double)time.switches / count;

    code = run_worker_that_traces(bench, payload, jobs, &time, err);
    if (code == ERR_OK) ret->tracing.rounds[round] = time.process_ns / count;
    return code;
}

static double median_of(const struct cost *cost, unsigned rounds) {
    double values[BENCH_ROUNDS_MAX];
    memcpy(values, cost->rounds, rounds * sizeof values[0]);
    return bench_spread_of(values, rounds).median;
}

static void print_cost(
    const struct bench_table *table, const char *name, struct cost *cost, double whole_ns) {
    struct bench_spread spread = bench_spread_of(cost->rounds, table->rounds);
    struct bench_spread share = {100 * spread.least / whole_ns, 100 * spread.median / whole_ns,
        100 * spread.most / whole_ns};
    bench_row_begin(table, name);
    bench_spread(table, (struct bench_figure){"cpu_ns", 0, NULL}, &spread);
    bench_median(table, (struct bench_figure){"share_percent", 1, " %"}, &share);
    bench_row_end(table);
}

static void print_switches(const struct bench_table *table, struct costs *costs) {
    static const char *const names[] = {
        "voluntary context switches of a job", "baseline", "worker", "least .. most"};
    struct bench_spread worker = bench_spread_of(costs->switches.rounds, table->rounds),
                        baseline = bench_spread_of(costs->baseline_switches.rounds, table->rounds);
    bench_note(table, "\n");
    bench_head(table, names, sizeof names / sizeof names[0]);
    bench_row_begin(table, "voluntary context switches");
    bench_median(table, (struct bench_figure){"baseline_switches", 4, NULL}, &baseline);
    bench_spread(table, (struct bench_figure){"worker_switches", 4, NULL}, &worker);
    bench_row_end(table);
}

static int compare_names(const void *a, const void *b) {
    return strcmp(((const struct cost *)a)->name, ((const struct cost *)b)->name);
}

/* True for a thread that had nothing to do. The rest of one that had may be below zero: its ranges
 * are sampled. */
static bool is_idle(const struct cost *cost, unsigned rounds) {
    bool is_range = strstr(cost->name, ": other") == NULL;
    for (unsigned i = 0; i < rounds; i++)
        if (is_range || fabs(cost->rounds[i]) >= 0.5) return false;
    return true;
}

static void print_costs(const struct bench_table *table, struct costs *costs) {
    static const char *const names[] = {
        "thread: range", "ns of CPU a job", "least .. most", "of the whole"};
    double whole_ns = median_of(&costs->process, table->rounds);
    qsort(costs->parts, costs->count, sizeof costs->parts[0], compare_names);
    bench_note(table,
        "%s, %u rounds. The time of threads is exact. The time of ranges, which profilers show, "
        "is sampled; \"other\" is the rest of a thread. cpu-stream is the device of `driver: "
        "cpu`.\n\n",
        work.name, table->rounds);
    bench_head(table, names, sizeof names / sizeof names[0]);
    for (size_t i = 0; i < costs->count; i++)
        if (!is_idle(&costs->parts[i], table->rounds))
            print_cost(table, costs->parts[i].name, &costs->parts[i], whole_ns);
    print_cost(table, "all of these", &costs->threads, whole_ns);
    print_cost(table, "whole process", &costs->process, whole_ns);
    print_cost(table, "whole process that traces, untraced job", &costs->tracing, whole_ns);
    print_cost(table, "baseline, whole process", &costs->baseline, whole_ns);
    print_switches(table, costs);
}

static enum err measure(const struct engine_bench *bench, struct slice payload, struct costs *costs,
    struct error *err) {
    const struct gpu_baseline_work warm_up =
        engine_baseline_work(bench, &work, engine_warm_up_jobs(bench, &work));
    double ns;
    enum err code = gpu_baseline_run(bench->baseline, &warm_up, &ns, err);
    if (code != ERR_OK) return code;
    uint64_t jobs = (uint64_t)(bench->options->milliseconds * 1e6 / ns) + 1;
    if (jobs < JOBS_MIN) jobs = JOBS_MIN;
    for (unsigned i = 0; i < bench->options->table.rounds && code == ERR_OK; i++)
        code = run_round(bench, payload, jobs, costs, i, err);
    return code;
}

enum err bench_cost(const struct bench_options *options, struct error *err) {
    struct engine_bench bench;
    struct slice payload = {0};
    struct costs *costs = calloc(1, sizeof *costs);
    if (costs == NULL) return error_no_memory(err, "no memory for a bench");
    engine_init(&bench, options);
    engine_fit_settings(&bench, &work);
    enum err code = engine_open_baseline(&bench, err);
    if (code == ERR_OK) code = engine_job(&work, &payload, err);
    if (code == ERR_OK) code = measure(&bench, payload, costs, err);
    if (code == ERR_OK) print_costs(&options->table, costs);
    free((void *)(uintptr_t)payload.data);
    engine_close(&bench);
    free(costs);
    return code;
}
