#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/bench.h"
#include "bench/ends.h"
#include "bench/job.h"
#include "bench/kafka_baseline.h"
#include "bench/table.h"
#include "pipeline/connect.h"

enum { PARTITIONS = 8, NAME_SIZE = 96, FIRST_RESULT_MS = 60000, READ_MS = 1000 };

enum { DELIVERY_COUNT = EXACTLY_ONCE + 1 };
static const char *const delivery_names[DELIVERY_COUNT] = {"at-least-once", "exactly-once"};

/* Indices of the topics. The worker and the baseline write results to the same one. */
enum { TOPIC_JOBS, TOPIC_RESULTS, TOPIC_DEAD_LETTERS, TOPIC_COUNT };

struct kafka_bench {
    const struct bench_options *options;
    char names[TOPIC_COUNT][NAME_SIZE];
    const char *topics[TOPIC_COUNT];
    char group[NAME_SIZE];
    size_t job_bytes;
    struct slice response; /* as large as the worker's results; owned */
};

static struct kafka_options kafka_options(
    const struct settings *settings, const struct string_map *map) {
    return (struct kafka_options){.bootstrap_servers = settings->kafka.bootstrap_servers,
        .setting_count = map->count,
        .setting_keys = map->keys,
        .setting_values = map->values};
}

/* Gives the topics unique names. */
static void name_topics(struct kafka_bench *bench) {
    static const char *const kinds[] = {"jobs", "results", "dead-letters"};
    uint64_t mark = clock_ns() / 1000000 % 1000000;
    for (int i = 0; i < TOPIC_COUNT; i++) {
        snprintf(bench->names[i], NAME_SIZE, "gpu-worker-bench-%s-%d-%" PRIu64, kinds[i], getpid(),
            mark);
        bench->topics[i] = bench->names[i];
    }
}

/* Every run reads all jobs, so every run needs a group of its own. */
static void name_group(
    struct kafka_bench *bench, const char *who, enum delivery_choice delivery, unsigned round) {
    snprintf(bench->group, NAME_SIZE, "%.50s-%s-%s-%u", bench->names[TOPIC_JOBS], who,
        delivery_names[delivery], round);
}

static bool replace(char **text, const char *with) {
    char *copy = strdup(with);
    if (copy == NULL) return false;
    free(*text);
    *text = copy;
    return true;
}

/* Uses the configured worker, but with the bench's topics. */
static enum err fit_settings(const struct kafka_bench *bench, struct error *err) {
    struct settings *settings = bench->options->settings;
    struct string_list *jobs = &settings->topics.jobs;
    for (; jobs->count > 1; jobs->count--) free(jobs->items[jobs->count - 1]);
    settings->broker = BROKER_KAFKA;
    settings->telemetry.interval_ms = 0;
    if (replace(&jobs->items[0], bench->topics[TOPIC_JOBS]) &&
        replace(&settings->topics.results, bench->topics[TOPIC_RESULTS]) &&
        replace(&settings->topics.dead_letters, bench->topics[TOPIC_DEAD_LETTERS]) &&
        replace(&settings->topics.control, "") && replace(&settings->kafka.instance_id, "") &&
        replace(&settings->kafka.group, bench->group))
        return ERR_OK;
    return error_no_memory(err, "no memory for names");
}

/* The time that clients take to send their first record does not count: it is up to a second. */
static uint64_t warm_up_of(const struct kafka_bench *bench) {
    return bench->options->messages / 10 + 1;
}

static enum err run_worker(struct kafka_bench *bench, enum delivery_choice delivery, unsigned round,
    double *ns_a_job, double *cpu_ns_a_job, struct error *err) {
    struct bench_clock clock;
    struct connection connection;
    bench_clock_init(&clock, warm_up_of(bench), bench->options->messages - warm_up_of(bench));
    name_group(bench, "worker", delivery, round);
    bench->options->settings->delivery = delivery;
    enum err code = fit_settings(bench, err);
    if (code == ERR_OK)
        code = connect_kafka(bench->options->settings, 0, &(struct membership){.instance_id = ""},
            NULL, &connection, err);
    if (code != ERR_OK) return code;
    code = bench_run(bench->options->settings, bench_counting(&clock, connection.source),
        connection.sink, NULL, NULL, err);
    connection_fini(&connection);
    *ns_a_job = bench_clock_ns_each(&clock);
    *cpu_ns_a_job = bench_clock_cpu_ns_each(&clock);
    return code;
}

static enum err run_baseline(struct kafka_bench *bench, enum delivery_choice delivery,
    unsigned round, double *ns_a_job, double *cpu_ns_a_job, struct error *err) {
    const struct settings *settings = bench->options->settings;
    name_group(bench, "baseline", delivery, round);
    const struct kafka_baseline_work work = {
        .consumer = kafka_options(settings, &settings->kafka.consumer),
        .producer = kafka_options(settings, &settings->kafka.producer),
        .group = bench->group,
        .from = bench->topics[TOPIC_JOBS],
        .to = bench->topics[TOPIC_RESULTS],
        .messages = bench->options->messages,
        .warm_up = warm_up_of(bench),
        .response = bench->response,
        .transactional_id = delivery == EXACTLY_ONCE ? bench->group : NULL,
        .transaction_messages = connect_transaction_messages(settings)};
    return kafka_baseline_run(&work, ns_a_job, cpu_ns_a_job, err);
}

/* Reads the worker's first result. The baseline answers with the same bytes, so that the brokers
 * have the same work. */
static enum err take_response(struct kafka_bench *bench, struct error *err) {
    struct reader *reader;
    struct delivery *delivery = NULL;
    uint64_t until_ns = clock_ns() + FIRST_RESULT_MS * 1000000ull;
    enum err code = connect_reader(bench->options->settings, bench->topics[TOPIC_RESULTS],
        READER_FROM_BEGINNING, &reader, err);
    if (code != ERR_OK) return code;
    while (code == ERR_OK && delivery == NULL && clock_ns() < until_ns)
        code = reader_poll(reader, READ_MS, &delivery, err);
    if (code == ERR_OK && delivery != NULL) {
        uint8_t *bytes = malloc(delivery->payload.size);
        if (bytes != NULL) memcpy(bytes, delivery->payload.data, delivery->payload.size);
        bench->response = slice_of(bytes, delivery->payload.size);
    }
    delivery_destroy(delivery);
    reader_destroy(reader);
    if (code == ERR_OK && bench->response.data == NULL)
        code = error_set(err, ERR_BROKER, 0, "look at the topics that start with gpu-worker-bench-",
            "no result could be read back");
    return code;
}

/* A row of both tables: the worker's delivery, and the baseline's. */
struct comparison {
    const char *work;
    enum delivery_choice worker, baseline;
    struct bench_rounds time, cpu;
};

enum { COMPARISON_COUNT = 3 };

/* Every way is measured once a round. */
static enum err measure_round(
    struct kafka_bench *bench, struct comparison *comparisons, unsigned round, struct error *err) {
    double ns[2][DELIVERY_COUNT], cpu_ns[2][DELIVERY_COUNT]; /* of the baseline, of the worker */
    enum err code = ERR_OK;
    for (enum delivery_choice d = AT_LEAST_ONCE; d <= EXACTLY_ONCE && code == ERR_OK; d++) {
        code = run_baseline(bench, d, round, &ns[0][d], &cpu_ns[0][d], err);
        if (code == ERR_OK) code = run_worker(bench, d, round, &ns[1][d], &cpu_ns[1][d], err);
    }
    for (int i = 0; i < COMPARISON_COUNT && code == ERR_OK; i++) {
        struct comparison *c = &comparisons[i];
        c->time.baseline_ns[round] = ns[0][c->baseline];
        c->time.worker_ns[round] = ns[1][c->worker];
        c->cpu.baseline_ns[round] = cpu_ns[0][c->baseline];
        c->cpu.worker_ns[round] = cpu_ns[1][c->worker];
        c->time.count = c->cpu.count = round + 1;
    }
    return code;
}

static void print_cpu(
    const struct bench_table *table, const char *work, struct bench_rounds *rounds) {
    for (size_t i = 0; i < rounds->count; i++) {
        rounds->baseline_ns[i] /= 1e3;
        rounds->worker_ns[i] /= 1e3;
    }
    const struct bench_spread baseline = bench_spread_of(rounds->baseline_ns, rounds->count),
                              worker = bench_spread_of(rounds->worker_ns, rounds->count);
    bench_row_begin(table, work);
    bench_spread(table, (struct bench_figure){"baseline_cpu_us", 1, NULL}, &baseline);
    bench_spread(table, (struct bench_figure){"worker_cpu_us", 1, NULL}, &worker);
    bench_row_end(table);
}

static void print(const struct kafka_bench *bench, struct comparison *comparisons) {
    static const char *const cpu_names[] = {"work", "baseline, us of CPU a job", "least .. most",
        "worker, us of CPU a job", "least .. most"};
    const struct bench_table *table = &bench->options->table;
    bench_note(table,
        "%" PRIu64 " messages of %zu bytes a round, a tenth of them as warm-up, results of %zu "
        "bytes, %d partitions, %u rounds\n\n",
        bench->options->messages, bench->job_bytes, bench->response.size, PARTITIONS,
        table->rounds);
    bench_print_rates_head(table, "baseline");
    for (int i = 0; i < COMPARISON_COUNT; i++)
        bench_print_rates(table, comparisons[i].work, &comparisons[i].time);
    bench_note(table, "\n");
    bench_head(table, cpu_names, sizeof cpu_names / sizeof cpu_names[0]);
    for (int i = 0; i < COMPARISON_COUNT; i++)
        print_cpu(table, comparisons[i].work, &comparisons[i].cpu);
}

static enum err measure(struct kafka_bench *bench, struct error *err) {
    struct comparison comparisons[COMPARISON_COUNT] = {
        {"from topic to topic, at least once", AT_LEAST_ONCE, AT_LEAST_ONCE, {0}, {0}},
        {"the same, exactly once", EXACTLY_ONCE, AT_LEAST_ONCE, {0}, {0}},
        {"the same, the baseline in transactions too", EXACTLY_ONCE, EXACTLY_ONCE, {0}, {0}}};
    double ignored;
    enum err code = ERR_OK;
    /* an extra round of each delivery warms up the brokers, which run other code for
     * transactions */
    for (enum delivery_choice d = AT_LEAST_ONCE; d <= EXACTLY_ONCE && code == ERR_OK; d++)
        code = run_worker(bench, d, BENCH_ROUNDS_MAX, &ignored, &ignored, err);
    if (code == ERR_OK) code = take_response(bench, err);
    for (unsigned i = 0; i < bench->options->table.rounds && code == ERR_OK; i++)
        code = measure_round(bench, comparisons, i, err);
    if (code == ERR_OK) print(bench, comparisons);
    return code;
}

static enum err write_job(struct kafka_bench *bench, struct slice *ret, struct error *err) {
    uint32_t instances = bench->options->instances;
    uint64_t bytes = bench->options->bytes;
    if (bytes > 0)
        return bench_job_add("add_coalesced", bytes, instances > 1 ? instances : 0, ret, err);
    return instances > 1 ? bench_job_nothing_of_each(instances, ret, err)
                         : bench_job_nothing(1, ret, err);
}

static enum err fill_and_measure(struct kafka_bench *bench, struct error *err) {
    const struct settings *settings = bench->options->settings;
    const struct kafka_options kafka = kafka_options(settings, &settings->kafka.producer);
    struct slice job = {.data = NULL};
    enum err code = write_job(bench, &job, err);
    bench->job_bytes = job.size;
    if (code == ERR_OK)
        code = kafka_baseline_fill(
            &kafka, bench->topics[TOPIC_JOBS], job, bench->options->messages, err);
    if (code == ERR_OK) code = measure(bench, err);
    free((void *)(uintptr_t)job.data);
    return code;
}

enum err bench_kafka(const struct bench_options *options, struct error *err) {
    struct kafka_bench bench = {.options = options};
    const struct kafka_options kafka =
        kafka_options(options->settings, &options->settings->kafka.producer);
    name_topics(&bench);
    enum err code = kafka_baseline_make_topics(&kafka, bench.topics, TOPIC_COUNT, PARTITIONS, err);
    if (code != ERR_OK) return code;
    code = fill_and_measure(&bench, err);
    kafka_baseline_remove_topics(&kafka, bench.topics, TOPIC_COUNT);
    free((void *)(uintptr_t)bench.response.data);
    return code;
}
