#include "supervise/metrics_page.h"

#include <inttypes.h>
#include <unistd.h>

#include "base/clock.h"
#include "quarantine/fetches.h"
#include "quarantine/suspensions.h"
#include "supervise/deaths.h"
#include "supervise/health.h"
#include "supervise/self.h"
#include "supervise/views.h"

/* A family of metrics: its lines for one executor. */
struct metric {
    const char *name, *type, *help;
    void (*write)(const struct metric *metric, const struct view *view, FILE *page);
};

/* Escapes a label's value; names of topics and devices come from outside. */
static void write_escaped(const char *text, FILE *page) {
    for (; *text != 0; text++) {
        if (*text == '\n') fputs("\\n", page);
        else if (*text == '"' || *text == '\\') fprintf(page, "\\%c", *text);
        else fputc(*text, page);
    }
}

/* Writes "NAME{device=..,uuid=.." without the end, so that the caller can write more labels. */
static void begin_line(const char *name, const char *suffix, const struct view *view, FILE *page) {
    fprintf(
        page, "%s%s{device=\"%" PRIu32 "\",uuid=\"", name, suffix, view->executor->device->index);
    write_escaped(view->uuid, page);
    fputc('"', page);
}

static void write_label(const char *label, const char *value, FILE *page) {
    fprintf(page, ",%s=\"", label);
    write_escaped(value, page);
    fputc('"', page);
}

static void end_line(double value, FILE *page) {
    fprintf(page, "} %.16g\n", value);
}

/* A line with one more label, where `label` is not NULL. */
static void write_line(const struct metric *metric, const struct view *view, const char *label,
    const char *label_value, double value, FILE *page) {
    begin_line(metric->name, "", view, page);
    if (label != NULL) write_label(label, label_value, page);
    end_line(value, page);
}

static void write_value(
    const struct metric *metric, const struct view *view, uint64_t value, FILE *page) {
    write_line(metric, view, NULL, NULL, (double)value, page);
}

/* ---- the executor ---- */

static void write_healthy(const struct metric *metric, const struct view *view, FILE *page) {
    bool is_healthy = view->executor->standing != STANDING_UNHEALTHY;
    write_line(metric, view, "reason", view->executor->unhealthy, is_healthy, page);
}

static void write_up(const struct metric *metric, const struct view *view, FILE *page) {
    write_value(metric, view, view->executor->watched != NULL, page);
}

/* 0, with the reason, while no job can run there. */
static void write_ready(const struct metric *metric, const struct view *view, FILE *page) {
    char reason[HEALTH_REASON_BYTES];
    health_reason(view->executor, clock_ns(), reason);
    write_line(metric, view, "reason", reason, reason[0] == 0, page);
}

static void write_starts(const struct metric *metric, const struct view *view, FILE *page) {
    write_value(metric, view, view->executor->starts, page);
}

static void write_deaths(const struct metric *metric, const struct view *view, FILE *page) {
    for (size_t i = 0; i < STATE_DEATH_KINDS; i++)
        write_line(metric, view, "cause", death_name((enum state_death_kind)i),
            (double)view->executor->deaths_of[i], page);
}

static void write_spare(const struct metric *metric, const struct view *view, FILE *page) {
    if (view->executor->options->settings->executors.spare)
        write_value(metric, view, view->executor->spare.is_ready, page);
}

static void write_spare_deaths(const struct metric *metric, const struct view *view, FILE *page) {
    if (view->executor->options->settings->executors.spare)
        write_value(metric, view, view->executor->spare.deaths_total, page);
}

static void write_heartbeat(const struct metric *metric, const struct view *view, FILE *page) {
    if (view->executor->watched == NULL) return;
    uint64_t now_ns = clock_ns(), beat_ns = view->summary.heartbeat_ns;
    double age_s = now_ns > beat_ns ? (double)(now_ns - beat_ns) / 1e9 : 0;
    write_line(metric, view, NULL, NULL, age_s, page);
}

static void write_memory(const struct metric *metric, const struct view *view, FILE *page) {
    struct process_usage usage;
    pid_t pid = view->executor->pid;
    if (pid > 0 && process_usage_read(pid, &usage))
        write_value(metric, view, usage.resident_bytes, page);
}

/* The file is not read while no executor runs. */
static void write_suspended(
    const struct view *view, const struct metric *metric, enum suspension_kind kind, FILE *page) {
    if (view->executor->watched != NULL)
        write_value(
            metric, view, suspensions_count(view->executor->watched, kind, clock_unix_ms()), page);
}

static void write_suspended_programs(
    const struct metric *metric, const struct view *view, FILE *page) {
    write_suspended(view, metric, SUSPENSION_PROGRAM, page);
}

static void write_suspended_keys(const struct metric *metric, const struct view *view, FILE *page) {
    write_suspended(view, metric, SUSPENSION_KEY, page);
}

static void write_set_aside(const struct metric *metric, const struct view *view, FILE *page) {
    if (view->executor->watched != NULL)
        write_value(metric, view, fetches_count_aside(view->executor->watched), page);
}

/* ---- jobs ---- */

/* Outcomes that have not occurred have no line, except `ok`, so that its rate starts from 0. */
static void write_jobs(const struct metric *metric, const struct view *view, FILE *page) {
    const struct ledger *ledger = &view->executor->board->ledger;
    char name[LEDGER_NAME_BYTES];
    uint64_t outcomes[ERR_COUNT];
    for (uint32_t i = 0; ledger_read_program(ledger, i, name, outcomes); i++)
        for (int code = 0; code < ERR_COUNT; code++) {
            if (outcomes[code] == 0 && code != ERR_OK) continue;
            begin_line(metric->name, "", view, page);
            write_label("program", name, page);
            write_label("code", err_code((enum err)code), page);
            end_line((double)outcomes[code], page);
        }
}

/* Codes that have not occurred are 0, so that whoever watches the increase sees the first. */
static void write_codes(const struct metric *metric, const struct view *view,
    const _Atomic uint64_t *counts, FILE *page) {
    for (int code = 0; code < ERR_COUNT; code++) {
        /* relaxed: each stands alone */
        uint64_t count = atomic_load_explicit(&counts[code], memory_order_relaxed);
        if (code != ERR_OK)
            write_line(metric, view, "code", err_code((enum err)code), (double)count, page);
    }
}

static void write_dead_letters(const struct metric *metric, const struct view *view, FILE *page) {
    write_codes(metric, view, view->executor->board->ledger.dead_letters, page);
}

static void write_retries(const struct metric *metric, const struct view *view, FILE *page) {
    write_codes(metric, view, view->executor->board->ledger.retries, page);
}

static void write_convictions(const struct metric *metric, const struct view *view, FILE *page) {
    write_codes(metric, view, view->executor->board->ledger.convictions, page);
}

/* The lines of a histogram, in units of `unit`; `label` as in write_line(). */
static void write_histogram(const struct metric *metric, const struct view *view,
    enum histogram histogram, const char *label, double unit, FILE *page) {
    const struct histogram_info *info = &histogram_infos[histogram];
    struct histogram_reading reading;
    uint64_t count = 0;
    counters_read_histogram(&view->executor->board->counters, histogram, &reading);
    for (size_t i = 0; i <= info->bound_count; i++) {
        count += reading.buckets[i];
        begin_line(metric->name, "_bucket", view, page);
        if (label != NULL) write_label(label, info->name, page);
        if (i < info->bound_count) fprintf(page, ",le=\"%.10g\"", (double)info->bounds[i] / unit);
        else fputs(",le=\"+Inf\"", page);
        end_line((double)count, page);
    }
    begin_line(metric->name, "_sum", view, page);
    if (label != NULL) write_label(label, info->name, page);
    end_line((double)reading.sum / unit, page);
    begin_line(metric->name, "_count", view, page);
    if (label != NULL) write_label(label, info->name, page);
    end_line((double)count, page);
}

static void write_seconds(const struct metric *metric, const struct view *view, FILE *page) {
    for (int i = HISTOGRAM_queue; i <= HISTOGRAM_total; i++)
        write_histogram(metric, view, (enum histogram)i, "stage", 1e9, page);
}

static void write_batch_jobs(const struct metric *metric, const struct view *view, FILE *page) {
    write_histogram(metric, view, HISTOGRAM_batch_jobs, NULL, 1, page);
}

/* ---- what counters and gauges say, each a label's value ---- */

struct part {
    const char *value;
    uint64_t count;
};

static void write_parts(const struct metric *metric, const struct view *view, const char *label,
    const struct part *parts, size_t count, FILE *page) {
    for (size_t i = 0; i < count; i++)
        write_line(metric, view, label, parts[i].value, (double)parts[i].count, page);
}

static void write_launches(const struct metric *metric, const struct view *view, FILE *page) {
    const uint64_t *of = view->totals.of;
    const struct part parts[] = {{"alone", of[COUNTER_kinds_launches_alone]},
        {"batched", of[COUNTER_kinds_launches_batched]},
        {"coalesced", of[COUNTER_kinds_launches_coalesced]}};
    write_parts(metric, view, "kind", parts, 3, page);
}

static void write_graphs(const struct metric *metric, const struct view *view, FILE *page) {
    const uint64_t *of = view->totals.of;
    const struct part parts[] = {{"launched", of[COUNTER_kinds_graph_launches]},
        {"refused", of[COUNTER_kinds_graphs_refused]}};
    write_parts(metric, view, "event", parts, 2, page);
}

static void write_sync_points(const struct metric *metric, const struct view *view, FILE *page) {
    const uint64_t *of = view->totals.of;
    const struct part parts[] = {{"alone", of[COUNTER_kinds_sync_points_alone]},
        {"batched", of[COUNTER_kinds_sync_points_batched]},
        {"coalesced", of[COUNTER_kinds_sync_points_coalesced]}};
    write_parts(metric, view, "kind", parts, 3, page);
}

static void write_copied(const struct metric *metric, const struct view *view, FILE *page) {
    const struct part parts[] = {{"h2d", view->totals.of[COUNTER_engine_host_to_device_bytes]},
        {"d2h", view->totals.of[COUNTER_engine_device_to_host_bytes]}};
    write_parts(metric, view, "direction", parts, 2, page);
}

static void write_requests(const struct metric *metric, const struct view *view, FILE *page) {
    const struct part parts[] = {{"hit", view->totals.of[COUNTER_engine_static_hits]},
        {"miss", view->totals.of[COUNTER_engine_static_misses]}};
    write_parts(metric, view, "result", parts, 2, page);
}

static void write_instances(const struct metric *metric, const struct view *view, FILE *page) {
    write_value(metric, view, view->totals.of[COUNTER_jobs_instances], page);
}

static void write_evictions(const struct metric *metric, const struct view *view, FILE *page) {
    write_value(metric, view, view->totals.of[COUNTER_engine_static_evictions], page);
}

static void write_compilations(const struct metric *metric, const struct view *view, FILE *page) {
    write_value(metric, view, view->totals.of[COUNTER_engine_module_compilations], page);
}

static void write_expired(const struct metric *metric, const struct view *view, FILE *page) {
    write_value(metric, view, view->totals.of[COUNTER_intake_messages_expired], page);
}

static void write_rebalances(const struct metric *metric, const struct view *view, FILE *page) {
    write_value(metric, view, view->totals.of[COUNTER_group_rebalances], page);
}

static void write_spans(const struct metric *metric, const struct view *view, FILE *page) {
    const uint64_t *of = view->totals.of;
    const struct part parts[] = {{"exported", of[COUNTER_traces_spans_exported]},
        {"dropped", of[COUNTER_traces_spans_dropped]}};
    write_parts(metric, view, "result", parts, 2, page);
}

#define GAUGE(function, value)                                                                     \
    static void function(const struct metric *metric, const struct view *view, FILE *page) {       \
        if (view->is_live) write_value(metric, view, view->panel.value, page);                     \
    }
GAUGE(write_in_flight, gauges.jobs_in_flight)
GAUGE(write_bytes_in_flight, gauges.bytes_in_flight)
GAUGE(write_static_bytes, gauges.statics_cached_bytes)
GAUGE(write_static_budget, statics_budget_bytes)
GAUGE(write_long_jobs, gauges.jobs_long)
GAUGE(write_residents, gauges.residents)
GAUGE(write_resident_bytes, gauges.resident_bytes)
#undef GAUGE

static void write_busy(const struct metric *metric, const struct view *view, FILE *page) {
    if (view->executor->watched != NULL)
        write_value(metric, view, state_busy_lanes(view->executor->watched), page);
}

/* ---- the device, where NVML knows it ---- */

static void write_usage(const struct metric *metric, const struct view *view,
    enum usage_figure figure, const char *label, const char *value, double unit, FILE *page) {
    const struct usage_reading *usage = &view->panel.usage;
    if (view->is_live && usage_knows(usage, figure))
        write_line(metric, view, label, value, (double)usage->of[figure] / unit, page);
}

#define USAGE(function, figure, unit)                                                              \
    static void function(const struct metric *metric, const struct view *view, FILE *page) {       \
        write_usage(metric, view, USAGE_##figure, NULL, NULL, unit, page);                         \
    }
USAGE(write_device_memory, memory_bytes, 1)
USAGE(write_device_memory_used, memory_used_bytes, 1)
USAGE(write_utilisation, utilisation_percent, 100)
USAGE(write_temperature, temperature_celsius, 1)
USAGE(write_power, power_milliwatts, 1000)
#undef USAGE

static void write_ecc(const struct metric *metric, const struct view *view, FILE *page) {
    write_usage(metric, view, USAGE_ecc_corrected, "kind", "corrected", 1, page);
    write_usage(metric, view, USAGE_ecc_uncorrected, "kind", "uncorrected", 1, page);
}

static void write_waiting(const struct metric *metric, const struct view *view, FILE *page) {
    const struct gauges *gauges = &view->panel.gauges;
    const struct part parts[] = {{"lane", gauges->jobs_ready}, {"memory", gauges->jobs_starved},
        {"retry", gauges->jobs_retrying}};
    if (view->is_live) write_parts(metric, view, "for", parts, 3, page);
}

static void write_pools(const struct metric *metric, const struct view *view, FILE *page) {
    const struct gauges *gauges = &view->panel.gauges;
    const struct part device[] = {
        {"live", gauges->device_pool_live_bytes}, {"cached", gauges->device_pool_cached_bytes}};
    const struct part pinned[] = {
        {"live", gauges->pinned_pool_live_bytes}, {"cached", gauges->pinned_pool_cached_bytes}};
    for (size_t i = 0; i < 4 && view->is_live; i++) {
        const struct part *part = i < 2 ? &device[i] : &pinned[i - 2];
        begin_line(metric->name, "", view, page);
        write_label("pool", i < 2 ? "device" : "pinned", page);
        write_label("state", part->value, page);
        end_line((double)part->count, page);
    }
}

static void write_budgets(const struct metric *metric, const struct view *view, FILE *page) {
    const struct part parts[] = {
        {"device", view->panel.device_budget_bytes}, {"pinned", view->panel.pinned_budget_bytes}};
    if (view->is_live) write_parts(metric, view, "pool", parts, 2, page);
}

/* ---- partitions ---- */

static void write_partition(const struct metric *metric, const struct view *view,
    const struct panel_partition *partition, double value, FILE *page) {
    begin_line(metric->name, "", view, page);
    write_label("topic", partition->topic, page);
    fprintf(page, ",partition=\"%" PRId32 "\"", partition->partition);
    end_line(value, page);
}

static void write_lag(const struct metric *metric, const struct view *view, FILE *page) {
    for (uint32_t i = 0; i < view->panel.partition_count; i++) {
        const struct panel_partition *partition = &view->panel.partitions[i];
        if (partition->lag >= 0)
            write_partition(metric, view, partition, (double)partition->lag, page);
    }
}

static void write_oldest(const struct metric *metric, const struct view *view, FILE *page) {
    for (uint32_t i = 0; i < view->panel.partition_count; i++) {
        const struct panel_partition *partition = &view->panel.partitions[i];
        write_partition(metric, view, partition, (double)partition->oldest_ns / 1e9, page);
    }
}

static void write_left_out(const struct metric *metric, const struct view *view, FILE *page) {
    if (view->is_live) write_value(metric, view, view->panel.partitions_left_out, page);
}

static const struct metric metrics[] = {
    {"gpu_worker_device_healthy", "gauge",
        "1 while the device can have an executor; 0, with the reason, once it gets no executor any "
        "more.",
        write_healthy},
    {"gpu_worker_device_memory_bytes", "gauge", "Memory of the device.", write_device_memory},
    {"gpu_worker_device_memory_used_bytes", "gauge", "What all processes use of it.",
        write_device_memory_used},
    {"gpu_worker_device_utilization_ratio", "gauge",
        "Share of the time in which a kernel ran, of any process.", write_utilisation},
    {"gpu_worker_device_temperature_celsius", "gauge", "Temperature of the device.",
        write_temperature},
    {"gpu_worker_device_power_watts", "gauge", "Power that the device draws.", write_power},
    {"gpu_worker_device_ecc_errors_total", "counter",
        "Memory errors of the device since its driver was loaded.", write_ecc},
    {"gpu_worker_executor_up", "gauge", "1 while an executor works on the device.", write_up},
    {"gpu_worker_executor_ready", "gauge",
        "1 while jobs can run; 0, with the reason, while they cannot.", write_ready},
    {"gpu_worker_executor_starts_total", "counter", "Executors started.", write_starts},
    {"gpu_worker_executor_deaths_total", "counter", "Executors that died or ended with an error.",
        write_deaths},
    {"gpu_worker_spare_ready", "gauge",
        "1 while a spare waits to take over from the executor; with executors.spare.", write_spare},
    {"gpu_worker_spare_deaths_total", "counter",
        "Spares that died before their life began; with executors.spare.", write_spare_deaths},
    {"gpu_worker_executor_heartbeat_age_seconds", "gauge",
        "Seconds since the executor's last sign of life.", write_heartbeat},
    {"gpu_worker_executor_resident_memory_bytes", "gauge", "Memory of the executor's process.",
        write_memory},
    {"gpu_worker_convictions_total", "counter", "Messages convicted of ending executors.",
        write_convictions},
    {"gpu_worker_suspended_programs", "gauge",
        "Programs whose jobs are refused, because too many of them were convicted.",
        write_suspended_programs},
    {"gpu_worker_suspended_keys", "gauge",
        "Keys whose jobs are refused, because too many of them were convicted.",
        write_suspended_keys},
    {"gpu_worker_partitions_set_aside", "gauge",
        "Partitions that are not read, because executors died of reading them.", write_set_aside},
    {"gpu_worker_jobs_total", "counter", "Messages answered, by program (empty: unknown) and code.",
        write_jobs},
    {"gpu_worker_job_seconds", "histogram",
        "Time of jobs in each stage; total: from arrival to the acknowledged answer.",
        write_seconds},
    {"gpu_worker_dead_letters_total", "counter", "Messages that failed for good.",
        write_dead_letters},
    {"gpu_worker_retries_total", "counter", "Failed tries after which a job is tried again.",
        write_retries},
    {"gpu_worker_batch_jobs", "histogram", "Jobs that share a batch.", write_batch_jobs},
    {"gpu_worker_array_instances_total", "counter", "Instances of answered array jobs.",
        write_instances},
    {"gpu_worker_launches_total", "counter",
        "Kernels started: for a job alone in its batch, one by one in a batch, or for many jobs.",
        write_launches},
    {"gpu_worker_graphs_total", "counter",
        "Graphs of kernels: launched, or refused by the driver (batch.graphs).", write_graphs},
    {"gpu_worker_sync_points_total", "counter", "Waits for the device, by the batch's kind.",
        write_sync_points},
    {"gpu_worker_copied_bytes_total", "counter", "Bytes copied to devices and back.", write_copied},
    {"gpu_worker_static_requests_total", "counter",
        "Statics that jobs asked for, by whether they were on the device.", write_requests},
    {"gpu_worker_static_evictions_total", "counter", "Statics removed to make room for others.",
        write_evictions},
    {"gpu_worker_static_bytes", "gauge", "Statics kept on the device.", write_static_bytes},
    {"gpu_worker_static_budget_bytes", "gauge", "Most bytes that statics may take.",
        write_static_budget},
    {"gpu_worker_module_compilations_total", "counter", "Images loaded into the device.",
        write_compilations},
    {"gpu_worker_expired_messages_total", "counter",
        "Messages that retention deleted before they were read.", write_expired},
    {"gpu_worker_rebalances_total", "counter",
        "How often the group has shared out its partitions anew, as seen by the executor.",
        write_rebalances},
    {"gpu_worker_trace_spans_total", "counter",
        "Spans of traced jobs: those that the collector took, and those that were dropped.",
        write_spans},
    {"gpu_worker_consumer_lag", "gauge",
        "Messages of the partition, up to its end, that are not finished.", write_lag},
    {"gpu_worker_oldest_unfinished_seconds", "gauge",
        "For how long the lowest unfinished message has held up commits; 0: there is none.",
        write_oldest},
    {"gpu_worker_partitions_without_lag", "gauge",
        "Partitions without lines of lag, because there are too many.", write_left_out},
    {"gpu_worker_busy_lanes", "gauge", "Lanes that have a batch on the device.", write_busy},
    {"gpu_worker_jobs_in_flight", "gauge", "Jobs taken and not finished.", write_in_flight},
    {"gpu_worker_bytes_in_flight", "gauge", "Of their messages.", write_bytes_in_flight},
    {"gpu_worker_long_jobs", "gauge",
        "Long jobs that have begun, and hold device memory between their turns.", write_long_jobs},
    {"gpu_worker_jobs_waiting", "gauge",
        "Jobs that wait for a lane, for memory, or to be tried again.", write_waiting},
    {"gpu_worker_pool_bytes", "gauge", "Memory from the driver, in use or cached.", write_pools},
    {"gpu_worker_pool_budget_bytes", "gauge", "Most bytes that pools may take from the driver.",
        write_budgets},
    {"gpu_worker_residents", "gauge", "Buffers kept on the device for keys.", write_residents},
    {"gpu_worker_resident_bytes", "gauge", "Their bytes.", write_resident_bytes},
};

static void write_single(
    const char *name, const char *type, const char *help, double value, FILE *page) {
    fprintf(page, "# HELP %s %s\n# TYPE %s %s\n%s %.16g\n", name, help, name, type, name, value);
}

/* Metrics of the supervisor's process, with the usual names. */
static void write_process(FILE *page) {
    struct process_usage usage;
    if (process_usage_read(getpid(), &usage)) {
        write_single("process_cpu_seconds_total", "counter", "CPU time of the supervisor.",
            usage.cpu_s, page);
        write_single("process_start_time_seconds", "gauge", "Start time of the supervisor.",
            usage.start_unix_s, page);
        write_single("process_resident_memory_bytes", "gauge", "Its memory.",
            (double)usage.resident_bytes, page);
        write_single("process_virtual_memory_bytes", "gauge", "Its address space.",
            (double)usage.virtual_bytes, page);
    }
    write_single("process_open_fds", "gauge", "Its open files.", (double)self_open_fds(), page);
    write_single("process_max_fds", "gauge", "How many it may open.", (double)self_max_fds(), page);
}

void metrics_page_write(const struct executor *executors, size_t count, FILE *page) {
    struct view *views = views_create(executors, count, clock_ns());
    for (size_t i = 0; i < sizeof metrics / sizeof metrics[0] && views != NULL; i++) {
        const struct metric *metric = &metrics[i];
        fprintf(page, "# HELP %s %s\n# TYPE %s %s\n", metric->name, metric->help, metric->name,
            metric->type);
        for (size_t k = 0; k < count; k++) metric->write(metric, &views[k], page);
    }
    views_destroy(views);
    fprintf(page,
        "# HELP gpu_worker_build_info The version of this worker.\n"
        "# TYPE gpu_worker_build_info gauge\n"
        "gpu_worker_build_info{version=\"%s\"} 1\n",
        GPU_WORKER_VERSION);
    write_process(page);
}
