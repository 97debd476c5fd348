#include "world/worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/consumer.h"
#include "broker/transaction.h"
#include "pipeline/executor.h"
#include "world/scheduler.h"

enum { STATE_LOCK_MS = 1000 };

static void on_event(
    void *context, enum log_level level, const char *text, const struct error *err) {
    const struct worker *worker = context;
    if (!worker->tells) return;
    fprintf(stderr, "    %s %s%s%s\n", worker->name, text, err != NULL ? ": " : "",
        err != NULL ? err->message : "");
}

static void fill(struct settings *settings, const struct worker *worker) {
    settings_init(settings);
    settings->driver = DRIVER_CPU;
    settings->lanes = 2;
    settings->lane_depth = 1;
    settings->admission.threads = 1;
    settings->prepare.threads = 1;
    settings->batch.stream = STREAM_COPIED;
    settings->delivery = worker->exactly_once ? EXACTLY_ONCE : AT_LEAST_ONCE;
    settings->ordering = worker->in_order ? ORDERING_KEY : ORDERING_NONE;
    free(settings->cpu_driver.faults);
    settings->cpu_driver.faults = strdup(worker->faults);
    free(settings->programs.dir);
    settings->programs.dir = strdup(GPU_WORKER_PROGRAMS_DIR);
}

struct beginning {
    const struct worker *worker;
    const struct settings *settings;
};

static enum err open_sink(const struct beginning *beginning, struct source *source,
    struct sink **ret, struct error *err) {
    const struct settings *settings = beginning->settings;
    struct transaction_options options = {
        .producer = {.kafka = {.bootstrap_servers = "world:1",
                         .on_event = on_event,
                         .context = (void *)(uintptr_t)beginning->worker},
            .results_topic = WORLD_RESULTS,
            .dead_letters_topic = WORLD_DEAD_LETTERS},
        .source = source,
        .commit_interval_ms = settings->commit_interval_ms,
        .messages_max = settings->limits.jobs_in_flight / 2 + 1};
    if (settings->delivery == AT_LEAST_ONCE) return producer_create(&options.producer, ret, err);
    options.producer.transactional_id = beginning->worker->name;
    return transaction_create(&options, ret, err);
}

static enum err begin(void *context, struct executor_life *ret, struct error *err) {
    static char topic[] = WORLD_JOBS;
    static char *const topics[] = {topic};
    const struct beginning *beginning = context;
    const struct settings *settings = beginning->settings;
    struct error set_aside;
    *ret = (struct executor_life){0};
    enum err code =
        state_open(beginning->worker->state, STATE_LOCK_MS, &ret->state, &set_aside, err);
    if (code != ERR_OK) return code;
    const struct worker *worker = beginning->worker;
    char *keys[] = {"auto.offset.reset", "max.poll.interval.ms"};
    char *values[] = {
        worker->reads_latest ? "latest" : "earliest", (char *)(uintptr_t)worker->poll_interval};
    const struct consumer_options consumer = {
        .kafka = {.bootstrap_servers = "world:1",
            .setting_count = worker->poll_interval != NULL ? 2 : 1,
            .setting_keys = keys,
            .setting_values = values,
            .on_event = on_event,
            .context = (void *)(uintptr_t)beginning->worker},
        .group = "workers",
        .instance_id = worker->is_static ? worker->name : "",
        .owner = state_draw_life(),
        .fetch_ahead_bytes = 1 << 20,
        .topic_count = 1,
        .topics = topics,
        .commits_elsewhere = beginning->worker->exactly_once,
        .commit_interval_ms = settings->commit_interval_ms,
        .drain_timeout_ms = settings->drain_timeout_ms,
        .poll_interval_ms = settings_poll_interval_ms(settings)};
    code = consumer_create(&consumer, &ret->source, err);
    if (code == ERR_OK) code = open_sink(beginning, ret->source, &ret->sink, err);
    return code;
}

static int run(void *context) {
    const struct worker *worker = context;
    struct settings settings;
    struct executor_summary summary;
    struct error err;
    fill(&settings, worker);
    log_init(worker->tells ? LOG_WARN : LOG_OFF, LOG_TEXT);
    struct beginning beginning = {worker, &settings};
    const struct executor_options options = {
        .settings = &settings, .begin = begin, .context = &beginning, .stop = worker->stop};
    enum err code = executor_run(&options, &summary, &err);
    if (code == ERR_OK) return 0;
    if (code == ERR_TIMEOUT) return WORKER_IS_LATE;
    if (err_is_sticky(code)) return WORKER_LOST_GPU;
    if (worker->tells) fprintf(stderr, "    %s ended: %s\n", worker->name, err.message);
    return 1;
}

void worker_start(struct worker *worker) {
    atomic_store(worker->stop, false);
    worker->process = scheduler_fork(run, worker);
    if (worker->tells)
        fprintf(stderr, "    %s is process %d\n", worker->name, (int)worker->process);
}
