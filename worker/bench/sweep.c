#include <inttypes.h>
#include <stdlib.h>

#include "bench/bench.h"
#include "bench/ends.h"
#include "bench/job.h"

/* The main job as single jobs at default settings, against the same as one array job. */

enum side { SIDE_ARRAY, SIDE_SINGLES, SIDE_COUNT };
enum { REPEATS = 2 /* what a round measures, after one such part to warm up */ };

struct side_messages {
    struct slice first, payload; /* the first brings the data set */
    uint64_t messages;           /* as many as have `instances` jobs */
};

static enum err make(const struct bench_options *options, enum side side, struct side_messages *ret,
    struct error *err) {
    uint32_t instances = side == SIDE_ARRAY ? options->instances : 0;
    ret->messages = side == SIDE_ARRAY ? 1 : options->instances;
    enum err code = bench_job_train(1, options->iterations, instances, true, &ret->first, err);
    if (code != ERR_OK) return code;
    return bench_job_train(1, options->iterations, instances, false, &ret->payload, err);
}

static enum err run_side(const struct bench_options *options, const struct side_messages *side,
    double *jobs_per_s, struct error *err) {
    const struct bench_feed feed = {.firsts = &side->first,
        .first_count = 1,
        .payloads = &side->payload,
        .payload_count = 1,
        .at_once = UINT64_MAX};
    struct bench_clock clock;
    bench_clock_init(&clock, side->messages, REPEATS * side->messages);
    enum err code =
        bench_run(options->settings, bench_source(&clock, &feed), bench_sink(), NULL, NULL, err);
    *jobs_per_s = 1e9 * options->instances / (bench_clock_ns_each(&clock) * (double)side->messages);
    return code;
}

static enum err measure(const struct bench_options *options,
    const struct side_messages sides[static SIDE_COUNT], struct error *err) {
    const struct bench_table *table = &options->table;
    double rates[SIDE_COUNT][BENCH_ROUNDS_MAX], ratio[BENCH_ROUNDS_MAX];
    for (unsigned i = 0; i < table->rounds; i++) {
        for (enum side side = 0; side < SIDE_COUNT; side++) {
            enum err code = run_side(options, &sides[side], &rates[side][i], err);
            if (code != ERR_OK) return code;
        }
        ratio[i] = 100 * rates[SIDE_SINGLES][i] / rates[SIDE_ARRAY][i];
    }
    const struct bench_spread arrays = bench_spread_of(rates[SIDE_ARRAY], table->rounds),
                              singles = bench_spread_of(rates[SIDE_SINGLES], table->rounds),
                              ratios = bench_spread_of(ratio, table->rounds);
    bench_row_begin(table, "logreg_adam");
    bench_count(table, "jobs", options->instances);
    bench_median(table, (struct bench_figure){"array_jobs_per_s", 0, NULL}, &arrays);
    bench_median(table, (struct bench_figure){"single_jobs_per_s", 0, NULL}, &singles);
    bench_spread(table, (struct bench_figure){"ratio_percent", 1, " %"}, &ratios);
    bench_row_end(table);
    return ERR_OK;
}

/* The settings stay as configured, but for the size of the array's result. */
enum err bench_sweep(const struct bench_options *options, struct error *err) {
    static const char *const names[] = {"the main job", "jobs", "as an array, jobs/s",
        "as single jobs, jobs/s", "single jobs / array", "least .. most"};
    struct side_messages sides[SIDE_COUNT] = {0};
    uint64_t result_bytes = (uint64_t)options->instances * BENCH_TRAINED_BYTES + (64 << 10);
    if (options->settings->limits.result_bytes < result_bytes)
        options->settings->limits.result_bytes = result_bytes;
    bench_note(&options->table,
        "%" PRIu32 " epochs; %u times as many jobs, after the first ones to warm up, %u rounds\n\n",
        options->iterations, REPEATS, options->table.rounds);
    bench_head(&options->table, names, sizeof names / sizeof names[0]);
    enum err code = ERR_OK;
    for (enum side side = 0; side < SIDE_COUNT && code == ERR_OK; side++)
        code = make(options, side, &sides[side], err);
    if (code == ERR_OK) code = measure(options, sides, err);
    for (enum side side = 0; side < SIDE_COUNT; side++) {
        free((void *)(uintptr_t)sides[side].first.data);
        free((void *)(uintptr_t)sides[side].payload.data);
    }
    return code;
}
