#include "supervise/metrics_page.h"

#include <inttypes.h>

#include "base/clock.h"
#include "quarantine/fetches.h"
#include "quarantine/suspensions.h"

/* A family of metrics, and what writes its lines for one executor. */
struct metric {
    const char *name, *type, *help;
    void (*write)(const struct metric *metric, const struct executor *executor, FILE *page);
};

static const char *const death_names[STATE_DEATH_KINDS] = {[STATE_DEATH_NONE] = "unexplained",
    [STATE_DEATH_STICKY] = "gpu_lost",
    [STATE_DEATH_HANG] = "hang",
    [STATE_DEATH_SIGNAL] = "crash",
    [STATE_DEATH_STALL] = "stall",
    [STATE_DEATH_STOP] = "stop",
    [STATE_DEATH_OWN] = "own"};

/* Of the running life, or else of the previous one. */
static struct state_summary summary_of(const struct executor *executor) {
    return executor->watched != NULL ? state_summary(executor->watched) : executor->left;
}

/*
 * Writes a line, with one more label if `label` is not NULL. Values of labels are a UUID and words
 * of ours, so none needs escaping.
 */
static void write_line(const struct metric *metric, const struct executor *executor,
    const char *label, const char *label_value, double value, FILE *page) {
    const struct probed_device *device = executor->device;
    const struct state_summary summary = summary_of(executor);
    const char *uuid = device->uuid[0] != 0 ? device->uuid : summary.uuid;
    fprintf(page, "%s{device=\"%" PRIu32 "\",uuid=\"%s\"", metric->name, device->index, uuid);
    if (label != NULL) fprintf(page, ",%s=\"%s\"", label, label_value);
    fprintf(page, "} %.16g\n", value);
}

static void write_healthy(
    const struct metric *metric, const struct executor *executor, FILE *page) {
    bool is_healthy = executor->standing != STANDING_UNHEALTHY;
    write_line(metric, executor, "reason", executor->unhealthy, is_healthy, page);
}

static void write_up(const struct metric *metric, const struct executor *executor, FILE *page) {
    write_line(metric, executor, NULL, NULL, executor->watched != NULL, page);
}

/*
 * 0, with the reason, while jobs wait because of a problem of the worker itself, or there is no
 * executor.
 */
static void write_ready(const struct metric *metric, const struct executor *executor, FILE *page) {
    bool is_up = executor->watched != NULL;
    const struct state_summary summary = summary_of(executor);
    const char *reason = is_up ? summary.trouble : "no_executor";
    write_line(metric, executor, "reason", reason, reason[0] == 0, page);
}

static void write_starts(const struct metric *metric, const struct executor *executor, FILE *page) {
    write_line(metric, executor, NULL, NULL, (double)executor->starts, page);
}

static void write_deaths(const struct metric *metric, const struct executor *executor, FILE *page) {
    for (size_t i = 0; i < STATE_DEATH_KINDS; i++)
        write_line(metric, executor, "cause", death_names[i], (double)executor->deaths_of[i], page);
}

static void write_heartbeat(
    const struct metric *metric, const struct executor *executor, FILE *page) {
    if (executor->watched == NULL) return;
    uint64_t now_ns = clock_ns(), beat_ns = summary_of(executor).heartbeat_ns;
    double age_s = now_ns > beat_ns ? (double)(now_ns - beat_ns) / 1e9 : 0;
    write_line(metric, executor, NULL, NULL, age_s, page);
}

static void write_jobs(const struct metric *metric, const struct executor *executor, FILE *page) {
    const struct state_summary summary = summary_of(executor);
    write_line(metric, executor, "status", "ok", (double)summary.ok, page);
    write_line(metric, executor, "status", "error", (double)summary.errors, page);
}

/* The file is not read while no executor runs. */
static void write_suspended(
    const struct metric *metric, const struct executor *executor, FILE *page) {
    static const char *const kinds[SUSPENSION_KINDS] = {
        [SUSPENSION_KEY] = "key", [SUSPENSION_PROGRAM] = "program"};
    uint64_t now_ms = clock_unix_ms();
    if (executor->watched == NULL) return;
    for (enum suspension_kind kind = 0; kind < SUSPENSION_KINDS; kind++)
        write_line(metric, executor, "kind", kinds[kind],
            (double)suspensions_count(executor->watched, kind, now_ms), page);
}

static void write_set_aside(
    const struct metric *metric, const struct executor *executor, FILE *page) {
    if (executor->watched != NULL)
        write_line(
            metric, executor, NULL, NULL, (double)fetches_count_aside(executor->watched), page);
}

static const struct metric metrics[] = {
    {"gpu_worker_device_healthy", "gauge",
        "1 while the device can have an executor; 0, with the reason, once it gets no "
        "executor any more.",
        write_healthy},
    {"gpu_worker_executor_up", "gauge", "1 while an executor works on the device.", write_up},
    {"gpu_worker_executor_ready", "gauge",
        "1 while jobs can run; 0, with the reason, while a problem of the worker itself keeps "
        "them waiting.",
        write_ready},
    {"gpu_worker_executor_starts_total", "counter", "Executors started.", write_starts},
    {"gpu_worker_executor_deaths_total", "counter", "Executors that died or ended with an error.",
        write_deaths},
    {"gpu_worker_executor_heartbeat_age_seconds", "gauge",
        "Seconds since the executor's last sign of life.", write_heartbeat},
    {"gpu_worker_suspended", "gauge",
        "Keys and programs whose jobs are refused, because too many of them were convicted.",
        write_suspended},
    {"gpu_worker_partitions_set_aside", "gauge",
        "Partitions that are not read, because executors died of reading them.", write_set_aside},
    {"gpu_worker_jobs_total", "counter", "Messages answered since the state file was made.",
        write_jobs},
};

void metrics_page_write(const struct executor *executors, size_t count, FILE *page) {
    for (size_t i = 0; i < sizeof metrics / sizeof metrics[0]; i++) {
        const struct metric *metric = &metrics[i];
        fprintf(page, "# HELP %s %s\n# TYPE %s %s\n", metric->name, metric->help, metric->name,
            metric->type);
        for (size_t k = 0; k < count; k++) metric->write(metric, &executors[k], page);
    }
}
