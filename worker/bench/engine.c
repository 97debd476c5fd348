#include "bench/engine.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/temporary.h"
#include "bench/job.h"
#include "bench/message_loop.h"

#define CPU_MEMORY_BYTES (8ull << 30) /* memory is not used before it is touched */

enum {
    WARM_UP_JOBS_MAX = 256,
    WARM_UP_BYTES = 64 << 20, /* fewer warm-up jobs if they are large */
    POOL_BYTES_MIN = 64 << 20,
    DISTINCT_MESSAGES = 16384 /* 128 MiB of them: more than a cache holds */
};

static const struct engine_work works[] = {
    {"2 x 4 KiB in, 4 KiB out, batches of 8", 4 << 10, 8, false},
    {"the same, batches of 32", 4 << 10, 32, false},
    {"the same, batches of 128", 4 << 10, 128, false},
    {"the same, 32 jobs a launch", 4 << 10, 32, true},
    {"the same, 128 jobs a launch", 4 << 10, 128, true},
    {"2 x 1 MiB in, 1 MiB out", 1 << 20, 1, false},
    {"2 x 16 MiB in, 16 MiB out", 16 << 20, 1, false},
};

static const struct engine_work message_works[] = {
    {"2 x 4 KiB in, 4 KiB out, distinct messages, 32 jobs a launch", 4 << 10, 32, true},
    {"distinct messages, 128 jobs a launch", 4 << 10, 128, true},
};

/* Batches of one job do not become smaller with isolation, so only the cost of turns and wiping
 * remains. */
static const struct engine_work isolated_works[] = {
    {"2 x 4 KiB in, 4 KiB out, batches of 1", 4 << 10, 1, false},
    {"the same, 32 jobs a launch", 4 << 10, 32, true},
    {"2 x 1 MiB in, 1 MiB out", 1 << 20, 1, false},
    {"2 x 16 MiB in, 16 MiB out", 16 << 20, 1, false},
};

/* How often the tenant changes. */
static const struct engine_tenants {
    const char *name;
    enum isolation_choice isolation;
    uint64_t jobs_a_key;
} tenants[] = {
    {"`program`, always the same", ISOLATE_PROGRAM, BENCH_NO_KEYS},
    {"`key`, always the same", ISOLATE_KEY, UINT64_MAX},
    {"`key`, another after 32 jobs", ISOLATE_KEY, 32},
    {"`key`, another after each job", ISOLATE_KEY, 1},
};
enum { TENANTS_COUNT = sizeof tenants / sizeof tenants[0] };

static const struct engine_work single = {
    "2 x 4 KiB in, 4 KiB out, one job at a time", 4 << 10, 1, false};

void engine_init(struct engine_bench *bench, const struct bench_options *options) {
    options->settings->cpu_driver.memory_bytes = CPU_MEMORY_BYTES;
    *bench = (struct engine_bench){.options = options,
        .lanes = options->settings->lanes,
        .depth = options->settings->lane_depth};
}

/* Enough jobs for the worker to learn how long they take, to compute how many make a round, and for
 * all batches in flight, and results behind them, to have had their memory: what is touched for the
 * first time while the clock runs takes as long as the job. */
uint64_t engine_warm_up_jobs(const struct engine_bench *bench, const struct engine_work *work) {
    uint64_t jobs = WARM_UP_BYTES / work->buffer_bytes, batches = bench->lanes * bench->depth;
    if (jobs < 2 * batches) return 2 * batches;
    return jobs < WARM_UP_JOBS_MAX ? jobs : WARM_UP_JOBS_MAX;
}

/* Sets limits that this work does not reach, and the wanted batch size. */
void engine_fit_settings(const struct engine_bench *bench, const struct engine_work *work) {
    struct settings *settings = bench->options->settings;
    uint64_t job_bytes = 3 * work->buffer_bytes + (64 << 10);
    uint64_t batches = bench->lanes * bench->depth;
    settings->lanes = bench->lanes;
    settings->lane_depth = bench->depth;
    settings->batch.jobs = work->batch_jobs;
    settings->limits.message_bytes = job_bytes;
    settings->limits.result_bytes = job_bytes;
    settings->limits.job_bytes = job_bytes;
    settings->limits.jobs_in_flight = (uint32_t)(4 * batches * work->batch_jobs);
    settings->limits.bytes_in_flight = 1 << 30;
    settings->statics.budget_bytes = 1 << 20;
    /* jobs larger than the slab take blocks, whose sizes are rounded up */
    settings->pools.device_bytes =
        POOL_BYTES_MIN + batches * (settings->lane_slab_bytes + 2 * job_bytes);
    settings->pools.pinned_bytes = 2 * settings->pools.device_bytes;
}

enum err engine_job(const struct engine_work *work, struct slice *ret, struct error *err) {
    const char *entry = work->is_coalesced ? "add_coalesced" : "add";
    return bench_job_add(entry, work->buffer_bytes, 0, ret, err);
}

enum err engine_run_worker(const struct engine_bench *bench, struct state *state,
    struct slice payload, uint64_t at_once, struct bench_clock *clock, struct error *err) {
    const struct bench_feed feed = {.payloads = &payload,
        .payload_count = 1,
        .at_once = at_once,
        .messages_a_key = bench->jobs_a_key};
    return bench_run(
        bench->options->settings, bench_source(clock, &feed), bench_sink(), state, NULL, err);
}

static enum err run_worker(const struct engine_bench *bench, const struct engine_work *work,
    struct state *state, struct slice payload, uint64_t jobs, uint64_t at_once, double *ns_a_job,
    struct error *err) {
    struct bench_clock clock;
    bench_clock_init(&clock, engine_warm_up_jobs(bench, work), jobs);
    enum err code = engine_run_worker(bench, state, payload, at_once, &clock, err);
    *ns_a_job = bench_clock_ns_each(&clock);
    return code;
}

struct gpu_baseline_work engine_baseline_work(
    const struct engine_bench *bench, const struct engine_work *work, uint64_t jobs) {
    return (struct gpu_baseline_work){.threads = bench->lanes,
        .depth = bench->depth,
        .batch_jobs = work->batch_jobs,
        .is_coalesced = work->is_coalesced,
        .buffer_bytes = work->buffer_bytes,
        .jobs = jobs};
}

/* Runs what the worker is compared with. */
static enum err run_baseline(const struct engine_bench *bench, const struct engine_work *work,
    struct slice payload, uint64_t jobs, uint64_t at_once, double *ns_a_job, struct error *err) {
    if (bench->baseline == NULL)
        return run_worker(bench, work, NULL, payload, jobs, at_once, ns_a_job, err);
    const struct gpu_baseline_work baseline = engine_baseline_work(bench, work, jobs);
    return gpu_baseline_run(bench->baseline, &baseline, ns_a_job, err);
}

static enum err measure_with(const struct engine_bench *bench, const struct engine_work *work,
    struct slice payload, uint64_t at_once, struct bench_rounds *ret, struct error *err) {
    double probe_ns;
    enum err code = run_baseline(
        bench, work, payload, engine_warm_up_jobs(bench, work), at_once, &probe_ns, err);
    if (code != ERR_OK) return code;
    uint64_t jobs = (uint64_t)(bench->options->milliseconds * 1e6 / probe_ns) + 1;
    for (ret->count = 0; ret->count < bench->options->table.rounds && code == ERR_OK;
         ret->count++) {
        code =
            run_baseline(bench, work, payload, jobs, at_once, &ret->baseline_ns[ret->count], err);
        if (code == ERR_OK)
            code = run_worker(bench, work, bench->state, payload, jobs, at_once,
                &ret->worker_ns[ret->count], err);
    }
    return code;
}

static enum err measure(struct engine_bench *bench, const struct engine_work *work,
    uint64_t at_once, struct bench_rounds *ret, struct error *err) {
    struct slice payload;
    enum err code = engine_job(work, &payload, err);
    if (code != ERR_OK) return code;
    engine_fit_settings(bench, work);
    code = measure_with(bench, work, payload, at_once, ret, err);
    free((void *)(uintptr_t)payload.data);
    return code;
}

static enum err measure_rates(struct engine_bench *bench, struct error *err) {
    enum err code = ERR_OK;
    const struct bench_table *table = &bench->options->table;
    bench_note(table, "%" PRIu32 " lanes, %" PRIu32 " batches in flight each, %u rounds\n\n",
        bench->lanes, bench->depth, table->rounds);
    bench_print_rates_head(table, bench->baseline != NULL ? "baseline" : "without state file");
    for (size_t i = 0; i < sizeof works / sizeof works[0] && code == ERR_OK; i++) {
        struct bench_rounds rounds;
        code = measure(bench, &works[i], UINT64_MAX, &rounds, err);
        if (code == ERR_OK) bench_print_rates(table, works[i].name, &rounds);
    }
    return code;
}

static enum err measure_latency(struct engine_bench *bench, struct error *err) {
    struct bench_rounds rounds;
    bench->lanes = bench->depth = 1;
    enum err code = measure(bench, &single, 1, &rounds, err);
    if (code == ERR_OK) bench_print_latency(&bench->options->table, single.name, &rounds);
    return code;
}

/* Makes copies of the message, each with other numbers. */
static void copy_messages(struct slice message, uint64_t buffer_bytes, uint8_t *bytes,
    struct slice ret[DISTINCT_MESSAGES]) {
    for (size_t i = 0; i < DISTINCT_MESSAGES; i++) {
        uint8_t *copy = bytes + i * message.size;
        struct message_loop_job job;
        memcpy(copy, message.data, message.size);
        ret[i] = slice_of(copy, message.size);
        if (!message_loop_read(ret[i], buffer_bytes, &job)) continue; /* the loop will say so */
        for (size_t k = 0; k < job.x.size / sizeof(float); k++) {
            const float x = (float)(i + k), y = (float)k;
            memcpy(copy + (job.x.data - copy) + k * sizeof x, &x, sizeof x);
            memcpy(copy + (job.y.data - copy) + k * sizeof y, &y, sizeof y);
        }
    }
}

/* The message loop and the worker with the same messages. */
static enum err compare_with_message_loop(const struct engine_bench *bench,
    const struct engine_work *work, const struct slice messages[DISTINCT_MESSAGES],
    struct bench_rounds *ret, struct error *err) {
    const struct bench_feed feed = {
        .payloads = messages, .payload_count = DISTINCT_MESSAGES, .at_once = UINT64_MAX};
    struct gpu_baseline_work loop =
        engine_baseline_work(bench, work, engine_warm_up_jobs(bench, work));
    struct bench_clock clock;
    double probe_ns;
    loop.messages = messages;
    loop.message_count = DISTINCT_MESSAGES;
    enum err code = gpu_baseline_run(bench->baseline, &loop, &probe_ns, err);
    if (code != ERR_OK) return code;
    loop.jobs = (uint64_t)(bench->options->milliseconds * 1e6 / probe_ns) + 1;
    for (unsigned round = 0; round < bench->options->table.rounds && code == ERR_OK; round++) {
        bench_clock_init(&clock, engine_warm_up_jobs(bench, work), loop.jobs);
        code = gpu_baseline_run(bench->baseline, &loop, &ret->baseline_ns[round], err);
        if (code == ERR_OK)
            code = bench_run(bench->options->settings, bench_source(&clock, &feed), bench_sink(),
                NULL, NULL, err);
        ret->worker_ns[round] = bench_clock_ns_each(&clock);
    }
    ret->count = bench->options->table.rounds;
    return code;
}

static enum err measure_messages(
    const struct engine_bench *bench, const struct engine_work *work, struct error *err) {
    struct bench_rounds rounds;
    struct slice message = {0};
    enum err code = engine_job(work, &message, err);
    if (code != ERR_OK) return code;
    struct slice *messages = calloc(DISTINCT_MESSAGES, sizeof *messages);
    uint8_t *bytes = malloc(DISTINCT_MESSAGES * message.size);
    engine_fit_settings(bench, work);
    if (messages == NULL || bytes == NULL) {
        code = error_no_memory(err, "no memory for messages");
    } else {
        copy_messages(message, work->buffer_bytes, bytes, messages);
        code = compare_with_message_loop(bench, work, messages, &rounds, err);
    }
    if (code == ERR_OK) bench_print_rates(&bench->options->table, work->name, &rounds);
    free(bytes);
    free(messages);
    free((void *)(uintptr_t)message.data);
    return code;
}

static enum err measure_all_messages(const struct engine_bench *bench, struct error *err) {
    enum err code = ERR_OK;
    bench_note(&bench->options->table, "\n");
    bench_print_rates_head(&bench->options->table, "message loop");
    for (size_t i = 0; i < sizeof message_works / sizeof message_works[0] && code == ERR_OK; i++)
        code = measure_messages(bench, &message_works[i], err);
    return code;
}

static enum err create_baseline(
    struct engine_bench *bench, const struct registry *registry, struct error *err) {
    const struct settings *settings = bench->options->settings;
    const struct gpu_baseline_options options = {.on_cpu = settings->driver == DRIVER_CPU,
        .cpu_memory_bytes = settings->cpu_driver.memory_bytes,
        .device = (int)bench->options->device, /* that of the benched executor */
        .registry = registry};
    return gpu_baseline_create(&options, &bench->baseline, err);
}

enum err engine_open_baseline(struct engine_bench *bench, struct error *err) {
    struct problems problems;
    problems_init(&problems);
    char *dir = settings_programs_dir(bench->options->settings);
    bench->registry = dir != NULL ? registry_load(dir, &problems) : NULL;
    enum err code = ERR_OK;
    if (bench->registry == NULL) code = error_no_memory(err, "no memory for the programs");
    if (code == ERR_OK) code = create_baseline(bench, bench->registry, err);
    problems_fini(&problems);
    free(dir);
    return code;
}

void engine_close(struct engine_bench *bench) {
    gpu_baseline_destroy(bench->baseline);
    registry_destroy(bench->registry);
}

enum err bench_engine(const struct bench_options *options, struct error *err) {
    struct engine_bench bench;
    engine_init(&bench, options);
    enum err code = engine_open_baseline(&bench, err);
    if (code == ERR_OK) code = measure_rates(&bench, err);
    if (code == ERR_OK) code = measure_all_messages(&bench, err);
    if (code == ERR_OK) code = measure_latency(&bench, err);
    engine_close(&bench);
    return code;
}

enum err engine_open_state(struct state **ret, struct error *err) {
    char folder[TEMPORARY_PATH_SIZE], path[TEMPORARY_PATH_SIZE + 8];
    struct error set_aside;
    enum err code = temporary_folder_make("gpu-worker-bench", folder, err);
    if (code != ERR_OK) return code;
    snprintf(path, sizeof path, "%s/state", folder);
    code = state_open(path, 0, ret, &set_aside, err);
    unlink(path); /* the open file stays usable */
    rmdir(folder);
    return code;
}

enum err bench_state(const struct bench_options *options, struct error *err) {
    struct engine_bench bench;
    engine_init(&bench, options);
    enum err code = engine_open_state(&bench.state, err);
    if (code == ERR_OK) code = measure_rates(&bench, err);
    state_close(bench.state);
    return code;
}

static enum err run_tenants(struct engine_bench *bench, const struct engine_work *work,
    const struct engine_tenants *who, struct slice payload, uint64_t jobs, double *ns_a_job,
    struct error *err) {
    bench->options->settings->batch.isolation = who->isolation;
    bench->jobs_a_key = who->jobs_a_key;
    return run_worker(bench, work, NULL, payload, jobs, UINT64_MAX, ns_a_job, err);
}

/* Compares all ways with the same rounds without isolation. */
static enum err measure_tenants(struct engine_bench *bench, const struct engine_work *work,
    struct slice payload, struct bench_rounds *ret, struct error *err) {
    static const struct engine_tenants shared = {"", ISOLATE_NONE, BENCH_NO_KEYS};
    double none_ns;
    enum err code =
        run_tenants(bench, work, &shared, payload, engine_warm_up_jobs(bench, work), &none_ns, err);
    if (code != ERR_OK) return code;
    uint64_t jobs = (uint64_t)(bench->options->milliseconds * 1e6 / none_ns) + 1;
    for (unsigned round = 0; round < bench->options->table.rounds && code == ERR_OK; round++) {
        code = run_tenants(bench, work, &shared, payload, jobs, &none_ns, err);
        for (size_t i = 0; i < TENANTS_COUNT && code == ERR_OK; i++) {
            ret[i].count = round + 1;
            ret[i].baseline_ns[round] = none_ns;
            code =
                run_tenants(bench, work, &tenants[i], payload, jobs, &ret[i].worker_ns[round], err);
        }
    }
    return code;
}

static enum err measure_isolation(
    struct engine_bench *bench, const struct engine_work *work, struct error *err) {
    struct bench_rounds rounds[TENANTS_COUNT];
    struct slice payload;
    enum err code = engine_job(work, &payload, err);
    if (code != ERR_OK) return code;
    engine_fit_settings(bench, work);
    code = measure_tenants(bench, work, payload, rounds, err);
    free((void *)(uintptr_t)payload.data);
    for (size_t i = 0; i < TENANTS_COUNT && code == ERR_OK; i++) {
        char name[128];
        snprintf(name, sizeof name, "%s: %s", work->name, tenants[i].name);
        bench_print_rates(&bench->options->table, name, &rounds[i]);
    }
    return code;
}

enum err bench_isolation(const struct bench_options *options, struct error *err) {
    struct engine_bench bench;
    engine_init(&bench, options);
    enum err code = ERR_OK;
    bench_note(&options->table,
        "%" PRIu32 " lanes, %" PRIu32 " batches in flight each, %u rounds\n\n", bench.lanes,
        bench.depth, options->table.rounds);
    bench_print_rates_head(&options->table, "not isolated");
    for (size_t i = 0; i < sizeof isolated_works / sizeof isolated_works[0] && code == ERR_OK; i++)
        code = measure_isolation(&bench, &isolated_works[i], err);
    return code;
}
