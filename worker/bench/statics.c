#include <stdio.h>
#include <stdlib.h>

#include "bench/cpu_time.h"
#include "bench/engine.h"
#include "bench/job.h"
#include "metrics/board.h"

/* What a warm static costs a job, and what statics cost that are not there yet. */

enum {
    LARGE_BYTES = 64 << 20,
    EACH_BYTES = 64 << 10, /* of the statics that come and go */
    HOT = 16,              /* of them, those that jobs share */
    COLD = 128,            /* ... and those of which each is gone before it is asked for again */
    ROOM = 2 * HOT,        /* how many the cache holds */
    WARM_UP = 256,
    PATTERN_MAX = COLD * 100
};

static const struct engine_work work = {
    .buffer_bytes = 4 << 10, .batch_jobs = 128, .is_coalesced = true};

/* ---- a run of the worker ---- */

struct statics_run {
    double ns, cpu_ns, hit_percent; /* of a job, of a job, of the statics that jobs asked for */
};

static struct {
    uint64_t cpu_ns;
    struct board *board;
    struct totals from;
} edge;

static void on_edge(bool is_end) {
    edge.cpu_ns = cpu_time_process_ns() - (is_end ? edge.cpu_ns : 0);
    if (!is_end) counters_read(&edge.board->counters, &edge.from);
}

static double hits_since(const struct totals *from, const struct board *board) {
    struct totals now;
    counters_read(&board->counters, &now);
    const struct totals grown = totals_since(&now, from);
    double hits = (double)grown.of[COUNTER_jobs_static_hits];
    double all = hits + (double)grown.of[COUNTER_jobs_static_misses];
    return all > 0 ? 100 * hits / all : 100;
}

static enum err run_feed(const struct engine_bench *bench, const struct bench_feed *feed,
    uint64_t jobs, struct statics_run *ret, struct error *err) {
    struct bench_clock clock;
    bench_clock_init(&clock, WARM_UP, jobs);
    clock.on_edge = on_edge;
    enum err code = board_create(&edge.board, NULL, err);
    if (code != ERR_OK) return code;
    code = bench_run(
        bench->options->settings, bench_source(&clock, feed), bench_sink(), NULL, edge.board, err);
    if (code == ERR_OK)
        *ret = (struct statics_run){.ns = bench_clock_ns_each(&clock),
            .cpu_ns = (double)edge.cpu_ns / (double)jobs,
            .hit_percent = hits_since(&edge.from, edge.board)};
    board_destroy(edge.board);
    return code;
}

static void fit_settings(const struct engine_bench *bench, uint64_t static_bytes, uint64_t room) {
    struct settings *settings = bench->options->settings;
    engine_fit_settings(bench, &work);
    settings->limits.message_bytes = static_bytes + (64 << 10);
    settings->limits.job_bytes = static_bytes + (64 << 10);
    settings->statics.budget_bytes = room * static_bytes;
    settings->pools.device_bytes += 2 * room * static_bytes;
    settings->pools.pinned_bytes = 2 * settings->pools.device_bytes;
}

static uint64_t jobs_of(const struct engine_bench *bench, double ns) {
    return (uint64_t)(bench->options->milliseconds * 1e6 / ns) + 1;
}

static enum err no_memory(struct error *err) {
    return error_no_memory(err, "no memory for a bench");
}

/* ---- a warm static against none ---- */

static enum err compare_warm(const struct engine_bench *bench, const struct bench_feed *without,
    const struct bench_feed *with, struct error *err) {
    const struct bench_table *table = &bench->options->table;
    double rounds[4][BENCH_ROUNDS_MAX];
    struct statics_run none, warm;
    enum err code = run_feed(bench, without, WARM_UP, &none, err);
    uint64_t jobs = code == ERR_OK ? jobs_of(bench, none.ns) : 0;
    for (unsigned i = 0; i < table->rounds && code == ERR_OK; i++) {
        code = run_feed(bench, without, jobs, &none, err);
        if (code == ERR_OK) code = run_feed(bench, with, jobs, &warm, err);
        rounds[0][i] = none.ns;
        rounds[1][i] = warm.ns;
        rounds[2][i] = warm.ns - none.ns;
        rounds[3][i] = warm.cpu_ns - none.cpu_ns;
    }
    if (code != ERR_OK) return code;
    const struct bench_spread nones = bench_spread_of(rounds[0], table->rounds),
                              warms = bench_spread_of(rounds[1], table->rounds),
                              added = bench_spread_of(rounds[2], table->rounds),
                              added_cpu = bench_spread_of(rounds[3], table->rounds);
    bench_row_begin(table, "a job with a warm static of 64 MiB");
    bench_median(table, (struct bench_figure){"without_ns", 0, NULL}, &nones);
    bench_median(table, (struct bench_figure){"with_ns", 0, NULL}, &warms);
    bench_spread(table, (struct bench_figure){"added_ns", 0, NULL}, &added);
    bench_spread(table, (struct bench_figure){"added_cpu_ns", 0, NULL}, &added_cpu);
    bench_row_end(table);
    return ERR_OK;
}

static enum err measure_warm(const struct engine_bench *bench, struct error *err) {
    static const char *const names[] = {"", "without a static, ns a job", "with it, ns a job",
        "added, ns", "least .. most", "added, ns of CPU", "least .. most"};
    struct slice payloads[3] = {{0}}; /* without; the first with, which brings it; with */
    uint8_t *bytes = calloc(1, LARGE_BYTES);
    if (bytes == NULL) return no_memory(err);
    const struct slice large = slice_of(bytes, LARGE_BYTES);
    enum err code = bench_job_share("bench", slice_of(NULL, 0), false, &payloads[0], err);
    if (code == ERR_OK) code = bench_job_share("bench", large, true, &payloads[1], err);
    if (code == ERR_OK) code = bench_job_share("bench", large, false, &payloads[2], err);
    const struct bench_feed without = {
        .payloads = &payloads[0], .payload_count = 1, .at_once = UINT64_MAX};
    const struct bench_feed with = {.firsts = &payloads[1],
        .first_count = 1,
        .payloads = &payloads[2],
        .payload_count = 1,
        .at_once = UINT64_MAX};
    fit_settings(bench, LARGE_BYTES, 2);
    bench_head(&bench->options->table, names, sizeof names / sizeof names[0]);
    if (code == ERR_OK) code = compare_warm(bench, &without, &with, err);
    for (size_t i = 0; i < sizeof payloads / sizeof payloads[0]; i++)
        free((void *)(uintptr_t)payloads[i].data);
    free(bytes);
    return code;
}

/* ---- jobs a second against hits ---- */

static const struct hits {
    const char *name;
    size_t cold_every; /* 0: none is cold */
} hits[] = {{"all statics are there", 0}, {"1 of 100 is new", 100}, {"1 of 10 is new", 10},
    {"1 of 2 is new", 2}, {"every one is new", 1}};
enum { HITS = sizeof hits / sizeof hits[0] };

struct store {
    struct slice payloads[HOT + COLD]; /* each with a static of its own, which it carries */
    struct slice pattern[PATTERN_MAX];
};

static enum err fill_store(struct store *store, struct error *err) {
    static uint32_t words[EACH_BYTES / sizeof(uint32_t)];
    enum err code = ERR_OK;
    for (uint32_t i = 0; i < HOT + COLD && code == ERR_OK; i++) {
        words[0] = i;
        code =
            bench_job_share("bench", slice_of(words, sizeof words), true, &store->payloads[i], err);
    }
    return code;
}

/* The pattern repeats when each cold one has had its turn. */
static struct bench_feed feed_of(struct store *store, const struct hits *which) {
    size_t every = which->cold_every, count = every > 0 ? COLD * every : HOT, cold = HOT;
    for (size_t i = 0; i < count; i++) {
        bool is_cold = every > 0 && i % every == 0;
        store->pattern[i] = store->payloads[is_cold ? cold++ : i % HOT];
    }
    return (struct bench_feed){
        .payloads = store->pattern, .payload_count = count, .at_once = UINT64_MAX};
}

static void print_hits(
    const struct bench_table *table, const char *name, double rates[3][BENCH_ROUNDS_MAX]) {
    const struct bench_spread measured = bench_spread_of(rates[0], table->rounds),
                              jobs = bench_spread_of(rates[1], table->rounds),
                              ratio = bench_spread_of(rates[2], table->rounds);
    bench_row_begin(table, name);
    bench_median(table, (struct bench_figure){"hit_percent", 1, " %"}, &measured);
    bench_median(table, (struct bench_figure){"jobs_per_s", 0, NULL}, &jobs);
    bench_spread(table, (struct bench_figure){"ratio_percent", 1, " %"}, &ratio);
    bench_row_end(table);
}

static enum err measure_hits(
    const struct engine_bench *bench, struct store *store, struct error *err) {
    static double rates[HITS][3][BENCH_ROUNDS_MAX];
    const struct bench_table *table = &bench->options->table;
    struct statics_run run;
    struct bench_feed feed = feed_of(store, &hits[0]);
    fit_settings(bench, EACH_BYTES, ROOM);
    enum err code = run_feed(bench, &feed, WARM_UP, &run, err);
    uint64_t jobs = code == ERR_OK ? jobs_of(bench, run.ns) : 0;
    if (jobs < COLD) jobs = COLD; /* hits of a few jobs are no share */
    for (unsigned round = 0; round < table->rounds && code == ERR_OK; round++)
        for (size_t i = 0; i < HITS && code == ERR_OK; i++) {
            feed = feed_of(store, &hits[i]);
            code = run_feed(bench, &feed, jobs, &run, err);
            rates[i][0][round] = run.hit_percent;
            rates[i][1][round] = 1e9 / run.ns;
            rates[i][2][round] = 100 * rates[i][1][round] / rates[0][1][round];
        }
    for (size_t i = 0; i < HITS && code == ERR_OK; i++) print_hits(table, hits[i].name, rates[i]);
    return code;
}

static enum err measure_store(const struct engine_bench *bench, struct error *err) {
    static const char *const names[] = {
        "statics of 64 KiB, in the job", "hits", "jobs/s", "of those with all", "least .. most"};
    struct store *store = calloc(1, sizeof *store);
    if (store == NULL) return no_memory(err);
    enum err code = fill_store(store, err);
    bench_note(&bench->options->table, "\n");
    bench_head(&bench->options->table, names, sizeof names / sizeof names[0]);
    if (code == ERR_OK) code = measure_hits(bench, store, err);
    for (size_t i = 0; i < HOT + COLD; i++) free((void *)(uintptr_t)store->payloads[i].data);
    free(store);
    return code;
}

enum err bench_statics(const struct bench_options *options, struct error *err) {
    struct engine_bench bench;
    engine_init(&bench, options);
    bench_note(&options->table, "Jobs of 2 x 16 B in and 16 B out, from memory, %u rounds\n\n",
        options->table.rounds);
    enum err code = measure_warm(&bench, err);
    return code == ERR_OK ? measure_store(&bench, err) : code;
}
