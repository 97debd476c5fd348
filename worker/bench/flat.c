#include <stdlib.h>

#include "bench/engine.h"
#include "bench/job.h"
#include "bench/program_copies.h"

/* Whether jobs cost the same however many different things they name. */

enum { SIZES = 3, WARM_UP = 256, STATIC_BYTES = 4 << 10 };

static const struct engine_work work = {
    .buffer_bytes = 4 << 10, .batch_jobs = 128, .is_coalesced = true};

/* What there may be many of. Keys mean what `ordering` of the configuration says. */
enum kind { KIND_STATICS, KIND_KEYS, KIND_PARTITIONS, KIND_PROGRAMS, KIND_COUNT };
static const char *const kind_names[KIND_COUNT] = {"statics", "keys", "partitions", "programs"};

/* Messages, `count` of each. */
struct many {
    uint32_t sizes[SIZES];  /* how many of them are used, in turns */
    struct slice *firsts;   /* each brings a static */
    struct slice *payloads; /* each names that static */
    struct slice *programs; /* each names a program, and no static */
    size_t count;
};

static void messages_free(struct slice *messages, size_t count) {
    for (size_t i = 0; messages != NULL && i < count; i++)
        free((void *)(uintptr_t)messages[i].data);
    free(messages);
}

static void many_fini(struct many *many) {
    messages_free(many->firsts, many->count);
    messages_free(many->payloads, many->count);
    messages_free(many->programs, many->count);
}

static enum err many_init(struct many *ret, uint32_t count, struct error *err) {
    static uint32_t words[STATIC_BYTES / sizeof(uint32_t)];
    const struct slice bytes = slice_of(words, sizeof words);
    *ret = (struct many){.sizes = {1, count / BENCH_MANY_STEP, count},
        .firsts = calloc(count, sizeof ret->firsts[0]),
        .payloads = calloc(count, sizeof ret->payloads[0]),
        .programs = calloc(count, sizeof ret->programs[0]),
        .count = count};
    if (ret->firsts == NULL || ret->payloads == NULL || ret->programs == NULL)
        return error_no_memory(err, "no memory for a bench");
    enum err code = ERR_OK;
    for (size_t i = 0; i < count && code == ERR_OK; i++) {
        char program[PROGRAM_COPY_NAME_SIZE];
        program_copy_name(i, program);
        words[0] = (uint32_t)i;
        code = bench_job_share("bench", bytes, true, &ret->firsts[i], err);
        if (code == ERR_OK) code = bench_job_share("bench", bytes, false, &ret->payloads[i], err);
        if (code == ERR_OK)
            code = bench_job_share(program, slice_of(NULL, 0), false, &ret->programs[i], err);
    }
    return code;
}

static struct bench_feed feed_of(enum kind kind, uint32_t size, const struct many *many) {
    bool is_many = kind == KIND_STATICS || kind == KIND_PROGRAMS;
    size_t statics = kind == KIND_STATICS ? size : kind == KIND_PROGRAMS ? 0 : 1;
    return (struct bench_feed){.firsts = many->firsts,
        .first_count = statics,
        .payloads = kind == KIND_PROGRAMS ? many->programs : many->payloads,
        .payload_count = is_many ? size : 1,
        .at_once = UINT64_MAX,
        .messages_a_key = kind == KIND_KEYS ? 1 : BENCH_NO_KEYS,
        .keys = size,
        .partitions = kind == KIND_PARTITIONS ? size : 1};
}

/* Whatever the size, the same number of jobs comes before the time begins: in these all statics
 * arrive, and each key, partition and program is met. */
static enum err run_once(const struct engine_bench *bench, const struct bench_feed *feed,
    uint64_t jobs, double *ns, struct error *err) {
    struct bench_clock clock;
    bench_clock_init(&clock, bench->options->many + WARM_UP, jobs);
    enum err code = bench_run(
        bench->options->settings, bench_source(&clock, feed), bench_sink(), NULL, NULL, err);
    *ns = bench_clock_ns_each(&clock);
    return code;
}

static void print_size(const struct bench_table *table, enum kind kind, uint32_t size,
    double rates[BENCH_ROUNDS_MAX], double ratios[BENCH_ROUNDS_MAX]) {
    const struct bench_spread jobs = bench_spread_of(rates, table->rounds),
                              ratio = bench_spread_of(ratios, table->rounds);
    bench_row_begin(table, kind_names[kind]);
    bench_count(table, "count", size);
    bench_median(table, (struct bench_figure){"jobs_per_s", 0, NULL}, &jobs);
    bench_spread(table, (struct bench_figure){"ratio_percent", 1, " %"}, &ratio);
    bench_row_end(table);
}

/* `dirs`: what programs.dir is for each size; NULL: as configured. */
static enum err measure(const struct engine_bench *bench, enum kind kind, const struct many *many,
    struct program_copies dirs[SIZES], struct error *err) {
    const struct bench_table *table = &bench->options->table;
    static double rates[SIZES][BENCH_ROUNDS_MAX], ratios[SIZES][BENCH_ROUNDS_MAX];
    char **dir = &bench->options->settings->programs.dir, *configured = *dir;
    struct bench_feed feed = feed_of(kind, 1, many);
    double ns;
    if (dirs != NULL) *dir = dirs[0].dir;
    enum err code = run_once(bench, &feed, WARM_UP, &ns, err);
    uint64_t jobs = code == ERR_OK ? (uint64_t)(bench->options->milliseconds * 1e6 / ns) + 1 : 0;
    for (unsigned round = 0; round < table->rounds; round++)
        for (size_t i = 0; i < SIZES && code == ERR_OK; i++) {
            feed = feed_of(kind, many->sizes[i], many);
            if (dirs != NULL) *dir = dirs[i].dir;
            code = run_once(bench, &feed, jobs, &ns, err);
            rates[i][round] = 1e9 / ns;
            ratios[i][round] = 100 * rates[i][round] / rates[0][round];
        }
    *dir = configured;
    for (size_t i = 0; i < SIZES && code == ERR_OK; i++)
        print_size(table, kind, many->sizes[i], rates[i], ratios[i]);
    return code;
}

/* A folder of as many programs as there are named. */
static enum err measure_programs(
    const struct engine_bench *bench, const struct many *many, struct error *err) {
    struct program_copies dirs[SIZES] = {0};
    enum err code = ERR_OK;
    for (size_t i = 0; i < SIZES && code == ERR_OK; i++)
        code = program_copies_make(bench->options->settings, many->sizes[i], &dirs[i], err);
    if (code == ERR_OK) code = measure(bench, KIND_PROGRAMS, many, dirs, err);
    for (size_t i = 0; i < SIZES; i++) program_copies_remove(&dirs[i]);
    return code;
}

enum err bench_flat(const struct bench_options *options, struct error *err) {
    static const char *const names[] = {
        "many", "how many", "jobs/s", "of those with one", "least .. most"};
    struct engine_bench bench;
    struct many many;
    engine_init(&bench, options);
    engine_fit_settings(&bench, &work);
    options->settings->statics.budget_bytes = 2ull * options->many * STATIC_BYTES;
    options->settings->pools.device_bytes += 4ull * options->many * STATIC_BYTES;
    bench_note(&options->table,
        "Jobs of 2 x 16 B in and 16 B out with a static of 4 KiB, from memory, %u rounds; "
        "over programs\nwithout a static, and with a launch each\n\n",
        options->table.rounds);
    bench_head(&options->table, names, sizeof names / sizeof names[0]);
    enum err code = many_init(&many, options->many, err);
    for (enum kind kind = 0; kind < KIND_PROGRAMS && code == ERR_OK; kind++)
        code = measure(&bench, kind, &many, NULL, err);
    if (code == ERR_OK) code = measure_programs(&bench, &many, err);
    many_fini(&many);
    return code;
}
