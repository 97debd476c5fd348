#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "bench/engine.h"
#include "bench/job.h"

enum {
    ROUNDS_MAX = 5000, /* that an instance has, and all have if nobody ends */
    MEDIAN = 50,       /* of the rounds of instances, which are lognormal */
    ALL_ROUNDS = 200,  /* that are run of those in which all instances run on; others are as long */
    CPU_INSTANCES = 400, /* a GPU has as many as are asked for */
    CPU_TURNS = 20,
    CUDA_TURNS = 3000
};
static const double SIGMA = 1.2;

struct long_run {
    const struct engine_bench *bench;
    uint32_t instances, turns;
    uint32_t *lasts; /* by instance */
};

/* Pairs of uniform numbers become normal ones (Box and Muller), the same in every run. */
static void draw_lasts(struct long_run *run) {
    uint64_t state = 1;
    for (uint32_t i = 0; i < run->instances; i++) {
        double uniform[2];
        for (int k = 0; k < 2; k++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            uniform[k] = ((double)(state >> 11) + 0.5) / (double)(1ull << 53);
        }
        double normal = sqrt(-2 * log(uniform[0])) * cos(6.283185307179586 * uniform[1]);
        double rounds = MEDIAN * exp(SIGMA * normal);
        run->lasts[i] = rounds < 1 ? 1 : rounds > ROUNDS_MAX ? ROUNDS_MAX : (uint32_t)rounds;
    }
}

/* Milliseconds from the message to its result. */
static enum err run_job(const struct long_run *run, uint32_t instances, const uint32_t *lasts,
    uint32_t repeat, bool is_long, double *ms, struct error *err) {
    struct settings *settings = run->bench->options->settings;
    struct slice payload;
    struct bench_clock clock;
    enum err code = bench_job_rounds(lasts, instances, repeat, run->turns, is_long, &payload, err);
    if (code != ERR_OK) return code;
    const struct engine_work work = {
        .buffer_bytes = payload.size + 1024 * (instances + 1ull), .batch_jobs = 1};
    engine_fit_settings(run->bench, &work);
    settings->limits.launches_per_job = 1000000;
    settings->limits.timeout_ms = settings->limits.timeout_max_ms = 3600000;
    bench_clock_init(&clock, 1, 1);
    code = engine_run_worker(run->bench, NULL, payload, 1, &clock, err);
    *ms = bench_clock_ns_each(&clock) / 1e6;
    free((void *)(uintptr_t)payload.data);
    return code;
}

/* --- one job, in one visit to the device and in chunks --- */

static enum err measure_chunks(const struct long_run *run, struct error *err) {
    const struct bench_table *table = &run->bench->options->table;
    double visit[BENCH_ROUNDS_MAX], chunks[BENCH_ROUNDS_MAX], more[BENCH_ROUNDS_MAX], probe;
    const uint32_t never = 0;
    enum err code = run_job(run, 0, &never, ALL_ROUNDS, false, &probe, err);
    uint64_t rounds = (uint64_t)(run->bench->options->milliseconds * ALL_ROUNDS / probe) + 1;
    for (unsigned i = 0; i < table->rounds && code == ERR_OK; i++) {
        code = run_job(run, 0, &never, (uint32_t)rounds, false, &visit[i], err);
        if (code == ERR_OK) code = run_job(run, 0, &never, (uint32_t)rounds, true, &chunks[i], err);
        if (code == ERR_OK) more[i] = 100 * (chunks[i] / visit[i] - 1);
    }
    if (code != ERR_OK) return code;
    const struct bench_spread all[] = {bench_spread_of(visit, table->rounds),
        bench_spread_of(chunks, table->rounds), bench_spread_of(more, table->rounds)};
    bench_row_begin(table, "one job, which is never done");
    bench_count(table, "rounds", rounds);
    bench_median(table, (struct bench_figure){"one_visit_ms", 1, NULL}, &all[0]);
    bench_median(table, (struct bench_figure){"chunks_ms", 1, NULL}, &all[1]);
    bench_spread(table, (struct bench_figure){"more_percent", 2, " %"}, &all[2]);
    bench_row_end(table);
    return ERR_OK;
}

/* --- an array whose instances end one after the other --- */

static int compare(const void *a, const void *b) {
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return (left > right) - (left < right);
}

/* The sum over rounds of what the instances that are live then take: as large a part of a full
 * round as they are of all, and no less than one alone. */
static double ideal_ms(const struct long_run *run, double full_ms, double least_ms) {
    uint32_t *sorted = calloc(run->instances, sizeof *sorted), done = 0;
    double sum = 0;
    if (sorted == NULL) return NAN;
    for (uint32_t i = 0; i < run->instances; i++) sorted[i] = run->lasts[i];
    qsort(sorted, run->instances, sizeof *sorted, compare);
    for (uint32_t round = 1; done < run->instances; round++) {
        double ms = full_ms * (run->instances - done) / run->instances;
        sum += ms > least_ms ? ms : least_ms;
        while (done < run->instances && sorted[done] == round) done++;
    }
    free(sorted);
    return sum;
}

static enum err measure_ends(const struct long_run *run, struct error *err) {
    const struct bench_table *table = &run->bench->options->table;
    double ideal[BENCH_ROUNDS_MAX], found[BENCH_ROUNDS_MAX], share[BENCH_ROUNDS_MAX],
        times[BENCH_ROUNDS_MAX], over[BENCH_ROUNDS_MAX];
    const uint32_t never = 0;
    uint32_t *nevers = calloc(run->instances, sizeof *nevers);
    enum err code = nevers != NULL ? ERR_OK : error_no_memory(err, "no memory for an array");
    for (unsigned i = 0; i < table->rounds && code == ERR_OK; i++) {
        double one, all, few;
        code = run_job(run, 0, &never, ALL_ROUNDS, false, &one, err);
        if (code == ERR_OK) code = run_job(run, run->instances, nevers, 1, false, &few, err);
        if (code == ERR_OK)
            code = run_job(run, run->instances, nevers, ALL_ROUNDS + 1, false, &all, err);
        if (code == ERR_OK)
            code = run_job(run, run->instances, run->lasts, ROUNDS_MAX, true, &found[i], err);
        if (code != ERR_OK) break;
        double full_ms = (all - few) / ALL_ROUNDS, least_ms = one / ALL_ROUNDS;
        ideal[i] = ideal_ms(run, full_ms, least_ms) + few; /* data goes up and down once */
        share[i] = 100 * ideal[i] / found[i];
        times[i] = (full_ms * ROUNDS_MAX + few) / found[i];
        over[i] = full_ms / least_ms;
    }
    free(nevers);
    if (code != ERR_OK) return code;
    const struct bench_spread spreads[] = {bench_spread_of(ideal, table->rounds),
        bench_spread_of(found, table->rounds), bench_spread_of(share, table->rounds),
        bench_spread_of(times, table->rounds), bench_spread_of(over, table->rounds)};
    bench_note(table,
        "\nAn array of %" PRIu32
        " instances, done after rounds that are lognormal(%d, %.1f), %d at "
        "most; a full round takes %.0f times as long as one of a single instance\n\n",
        run->instances, MEDIAN, SIGMA, ROUNDS_MAX, spreads[4].median);
    static const char *const names[] = {"an array", "ideal, ms", "found, ms", "of the ideal",
        "least .. most", "than all to the last"};
    bench_head(table, names, sizeof names / sizeof names[0]);
    bench_row_begin(table, "instances end by themselves");
    bench_median(table, (struct bench_figure){"ideal_ms", 1, NULL}, &spreads[0]);
    bench_median(table, (struct bench_figure){"found_ms", 1, NULL}, &spreads[1]);
    bench_spread(table, (struct bench_figure){"ideal_percent", 0, " %"}, &spreads[2]);
    bench_median(table, (struct bench_figure){"times_all", 1, " x faster"}, &spreads[3]);
    bench_row_end(table);
    return ERR_OK;
}

enum err bench_long(const struct bench_options *options, struct error *err) {
    static const char *const names[] = {
        "a long job", "rounds", "in one visit, ms", "in chunks, ms", "more", "least .. most"};
    struct engine_bench bench;
    bool is_cpu = options->settings->driver == DRIVER_CPU;
    struct long_run run = {.bench = &bench,
        .instances = is_cpu ? CPU_INSTANCES : options->instances,
        .turns = is_cpu ? CPU_TURNS : CUDA_TURNS};
    engine_init(&bench, options);
    run.lasts = calloc(run.instances, sizeof *run.lasts);
    if (run.lasts == NULL) return error_no_memory(err, "no memory for an array");
    draw_lasts(&run);
    bench_note(&options->table, "From the message in memory until its result is; %u rounds\n\n",
        options->table.rounds);
    bench_head(&options->table, names, sizeof names / sizeof names[0]);
    enum err code = measure_chunks(&run, err);
    if (code == ERR_OK) code = measure_ends(&run, err);
    free(run.lasts);
    engine_close(&bench);
    return code;
}
