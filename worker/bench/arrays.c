#include <inttypes.h>
#include <stdlib.h>

#include "bench/engine.h"
#include "bench/job.h"

enum {
    WARM_UP_ARRAYS = 4,
    SINGLES_A_BATCH = 128,
    ARRAYS_A_BATCH = 16,
    LINK_BATCH_BYTES = 4 << 20,
    SMALL_PER_LARGE = 16
};

/* The ways to do the same work. */
enum side { SIDE_LINK, SIDE_SINGLES, SIDE_ARRAYS, SIDE_COUNT };

static enum err make_add(uint32_t instances, struct slice *ret, struct error *err) {
    return bench_job_add("add_coalesced", 4 << 10, instances, ret, err);
}

static const struct array_work {
    const char *name;
    uint64_t in_bytes, out_bytes; /* of an instance; what all share is not counted */
    uint32_t arrays_scale;        /* instances of an array, for each that is asked for */
    enum err (*make)(uint32_t instances, struct slice *ret, struct error *err);
} works[] = {
    {"2 x 4 KiB in, 4 KiB out", 8 << 10, 4 << 10, 1, make_add},
    {"64 B in, 16 B out, one shared static", BENCH_PARAMETERS_BYTES, BENCH_SCORES_BYTES,
        SMALL_PER_LARGE, bench_job_score},
};

struct array_run {
    const struct engine_bench *bench;
    const struct array_work *work;
    uint32_t instances;                /* of an array */
    struct slice payloads[SIDE_COUNT]; /* the link has none */
    uint64_t counts[SIDE_COUNT];       /* instances that make a round */
    double ns[SIDE_COUNT][BENCH_ROUNDS_MAX];
};

static enum err run_link(
    const struct array_run *run, uint64_t count, double *ns_each, struct error *err) {
    const struct gpu_baseline_work work = {.threads = run->bench->lanes,
        .depth = run->bench->depth,
        .batch_jobs = (uint32_t)(LINK_BATCH_BYTES / run->work->in_bytes),
        .buffer_bytes = run->work->out_bytes,
        .link_bytes = run->work->in_bytes,
        .jobs = count};
    return gpu_baseline_run(run->bench->baseline, &work, ns_each, err);
}

/* Nanoseconds for each instance. */
static enum err run_worker(const struct array_run *run, enum side side, uint64_t count,
    double *ns_each, struct error *err) {
    bool is_array = side == SIDE_ARRAYS;
    uint32_t instances = is_array ? run->instances : 1;
    const struct engine_work work = {
        .buffer_bytes = instances * (run->work->in_bytes + run->work->out_bytes) / 3,
        .batch_jobs = is_array ? ARRAYS_A_BATCH : SINGLES_A_BATCH};
    struct bench_clock clock;
    engine_fit_settings(run->bench, &work);
    run->bench->options->settings->limits.instances_per_job = run->instances;
    bench_clock_init(&clock, is_array ? WARM_UP_ARRAYS : engine_warm_up_jobs(run->bench, &work),
        (count + instances - 1) / instances);
    enum err code =
        engine_run_worker(run->bench, NULL, run->payloads[side], UINT64_MAX, &clock, err);
    *ns_each = bench_clock_ns_each(&clock) / instances;
    return code;
}

static enum err run_side(const struct array_run *run, enum side side, uint64_t count,
    double *ns_each, struct error *err) {
    return side == SIDE_LINK ? run_link(run, count, ns_each, err)
                             : run_worker(run, side, count, ns_each, err);
}

/* Says of each side how many instances make a round: each takes as long. */
static enum err probe(struct array_run *run, struct error *err) {
    enum err code = ERR_OK;
    for (enum side side = 0; side < SIDE_COUNT && code == ERR_OK; side++) {
        double ns;
        code = run_side(run, side, run->instances, &ns, err);
        run->counts[side] = (uint64_t)(run->bench->options->milliseconds * 1e6 / ns) + 1;
    }
    return code;
}

static enum err run_rounds(struct array_run *run, struct error *err) {
    enum err code = ERR_OK;
    for (unsigned i = 0; i < run->bench->options->table.rounds && code == ERR_OK; i++)
        for (enum side side = 0; side < SIDE_COUNT && code == ERR_OK; side++)
            code = run_side(run, side, run->counts[side], &run->ns[side][i], err);
    return code;
}

static void print_row(const struct bench_table *table, const struct array_run *run) {
    static const struct bench_figure figures[SIDE_COUNT] = {{"link_instances_per_s", 0, NULL},
        {"single_instances_per_s", 0, NULL}, {"array_instances_per_s", 0, NULL}};
    double rates[SIDE_COUNT][BENCH_ROUNDS_MAX], ratio[BENCH_ROUNDS_MAX], times[BENCH_ROUNDS_MAX];
    for (unsigned i = 0; i < table->rounds; i++) {
        for (enum side side = 0; side < SIDE_COUNT; side++) rates[side][i] = 1e9 / run->ns[side][i];
        ratio[i] = 100 * rates[SIDE_ARRAYS][i] / rates[SIDE_LINK][i];
        times[i] = rates[SIDE_ARRAYS][i] / rates[SIDE_SINGLES][i];
    }
    bench_row_begin(table, run->work->name);
    for (enum side side = 0; side < SIDE_COUNT; side++) {
        const struct bench_spread spread = bench_spread_of(rates[side], table->rounds);
        bench_median(table, figures[side], &spread);
    }
    const struct bench_spread ratios = bench_spread_of(ratio, table->rounds),
                              factors = bench_spread_of(times, table->rounds);
    bench_spread(table, (struct bench_figure){"ratio_percent", 0, " %"}, &ratios);
    bench_median(table, (struct bench_figure){"times_single", 1, " x"}, &factors);
    bench_row_end(table);
}

static enum err measure(
    const struct engine_bench *bench, const struct array_work *work, struct error *err) {
    struct array_run run = {
        .bench = bench, .work = work, .instances = bench->options->instances * work->arrays_scale};
    enum err code = work->make(0, &run.payloads[SIDE_SINGLES], err);
    if (code == ERR_OK) code = work->make(run.instances, &run.payloads[SIDE_ARRAYS], err);
    if (code == ERR_OK) code = probe(&run, err);
    if (code == ERR_OK) code = run_rounds(&run, err);
    if (code == ERR_OK) print_row(&bench->options->table, &run);
    for (enum side side = 0; side < SIDE_COUNT; side++)
        free((void *)(uintptr_t)run.payloads[side].data);
    return code;
}

enum err bench_arrays(const struct bench_options *options, struct error *err) {
    static const char *const names[] = {"an instance", "link, instances/s",
        "single jobs, instances/s", "arrays, instances/s", "arrays / link", "least .. most",
        "arrays / single jobs"};
    struct engine_bench bench;
    engine_init(&bench, options);
    enum err code = engine_open_baseline(&bench, err);
    if (code == ERR_OK) {
        bench_note(&options->table,
            "From the message in memory until its result is; arrays of %" PRIu32
            " instances, of small ones %d times as many; %u rounds\n\n",
            options->instances, SMALL_PER_LARGE, options->table.rounds);
        bench_head(&options->table, names, sizeof names / sizeof names[0]);
    }
    for (size_t i = 0; i < sizeof works / sizeof works[0] && code == ERR_OK; i++)
        code = measure(&bench, &works[i], err);
    engine_close(&bench);
    return code;
}
