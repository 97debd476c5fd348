#include <inttypes.h>
#include <stdlib.h>

#include "bench/bench.h"
#include "bench/ends.h"
#include "bench/job.h"

/* Jobs of many launches, with `batch.graphs: auto` against `none`. Launches are those that jobs ask
 * for; jobs of the main job that run together share theirs. */

enum { SIDES = GRAPHS_AUTO + 1 };

struct graphs_work {
    const char *name;
    enum err (*make)(
        const struct bench_options *options, bool is_first, struct slice *ret, struct error *err);
    uint64_t at_once;
};

static enum err make_nothing(
    const struct bench_options *options, bool is_first, struct slice *ret, struct error *err) {
    return bench_job_nothing(options->iterations, ret, err);
}

static enum err make_training(
    const struct bench_options *options, bool is_first, struct slice *ret, struct error *err) {
    return bench_job_train(options->iterations, 1, 0, is_first, ret, err);
}

static const struct graphs_work works[] = {{"nothing, one at a time", make_nothing, 1},
    {"nothing", make_nothing, UINT64_MAX}, {"logreg_adam, one at a time", make_training, 1},
    {"logreg_adam", make_training, UINT64_MAX}};

/* As many jobs to warm up as are measured: each batch of a lane learns for itself. */
static enum err run_side(const struct bench_options *options, const struct bench_feed *feed,
    double *launches_per_s, struct error *err) {
    struct bench_clock clock;
    bench_clock_init(&clock, options->instances, options->instances);
    enum err code =
        bench_run(options->settings, bench_source(&clock, feed), bench_sink(), NULL, NULL, err);
    *launches_per_s = 1e9 * options->iterations / bench_clock_ns_each(&clock);
    return code;
}

static enum err measure(const struct bench_options *options, const struct graphs_work *work,
    const struct bench_feed *feed, struct error *err) {
    const struct bench_table *table = &options->table;
    double rates[SIDES][BENCH_ROUNDS_MAX], ratio[BENCH_ROUNDS_MAX];
    for (unsigned i = 0; i < table->rounds; i++) {
        for (enum graphs_choice side = GRAPHS_NONE; side <= GRAPHS_AUTO; side++) {
            options->settings->batch.graphs = side;
            enum err code = run_side(options, feed, &rates[side][i], err);
            if (code != ERR_OK) return code;
        }
        ratio[i] = 100 * rates[GRAPHS_AUTO][i] / rates[GRAPHS_NONE][i];
    }
    const struct bench_spread plain = bench_spread_of(rates[GRAPHS_NONE], table->rounds),
                              graphs = bench_spread_of(rates[GRAPHS_AUTO], table->rounds),
                              ratios = bench_spread_of(ratio, table->rounds);
    bench_row_begin(table, work->name);
    bench_count(table, "launches_a_job", options->iterations);
    bench_median(table, (struct bench_figure){"none_launches_per_s", 0, NULL}, &plain);
    bench_median(table, (struct bench_figure){"auto_launches_per_s", 0, NULL}, &graphs);
    bench_spread(table, (struct bench_figure){"ratio_percent", 1, " %"}, &ratios);
    bench_row_end(table);
    return ERR_OK;
}

static enum err bench_work(
    const struct bench_options *options, const struct graphs_work *work, struct error *err) {
    struct slice first = {0}, payload = {0};
    enum err code = work->make(options, true, &first, err);
    if (code == ERR_OK) code = work->make(options, false, &payload, err);
    const struct bench_feed feed = {.firsts = &first,
        .first_count = 1,
        .payloads = &payload,
        .payload_count = 1,
        .at_once = work->at_once};
    if (code == ERR_OK) code = measure(options, work, &feed, err);
    free((void *)(uintptr_t)first.data);
    free((void *)(uintptr_t)payload.data);
    return code;
}

enum err bench_graphs(const struct bench_options *options, struct error *err) {
    static const char *const names[] = {"batch.graphs", "launches a job", "none, launches/s",
        "auto, launches/s", "auto / none", "least .. most"};
    bench_note(&options->table, "%" PRIu32 " jobs, after as many to warm up, %u rounds\n\n",
        options->instances, options->table.rounds);
    bench_head(&options->table, names, sizeof names / sizeof names[0]);
    enum err code = ERR_OK;
    for (size_t i = 0; i < sizeof works / sizeof works[0] && code == ERR_OK; i++)
        code = bench_work(options, &works[i], err);
    return code;
}
