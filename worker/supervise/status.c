#include "supervise/status.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "quarantine/suspensions.h"
#include "supervise/deaths.h"
#include "supervise/self.h"
#include "supervise/views.h"

static void write_seconds(struct json_writer *json, const char *name, uint64_t ns) {
    enum { DIGITS = 9 };
    json_double(json, name, DIGITS, (double)ns / 1e9);
}

/* ---- one device ---- */

static const char *standing_of(const struct executor *executor) {
    switch (executor->standing) {
    case STANDING_UNHEALTHY: return "unhealthy";
    case STANDING_ENDED: return "ended";
    case STANDING_WAITING:
    case STANDING_KILLED: return "waiting";
    case STANDING_RUNNING: break;
    }
    return executor->watched != NULL ? "working" : "starting";
}

static void write_executor(struct json_writer *json, const struct view *view, uint64_t now_ns) {
    const struct executor *executor = view->executor;
    const struct state_summary *summary = &view->summary;
    struct process_usage usage = {0};
    uint64_t beat_ns = summary->heartbeat_ns;
    if (executor->pid > 0) (void)process_usage_read(executor->pid, &usage);
    json_object(json, "executor");
    json_uint(json, "pid", (uint64_t)executor->pid);
    json_uint(json, "starts", executor->starts);
    json_object(json, "deaths");
    for (int i = 0; i < STATE_DEATH_KINDS; i++)
        if (executor->deaths_of[i] > 0)
            json_uint(json, death_name((enum state_death_kind)i), executor->deaths_of[i]);
    json_end(json);
    json_uint(json, "resident_bytes", usage.resident_bytes);
    json_uint(json, "programs", summary->programs);
    write_seconds(
        json, "silent_s", executor->watched != NULL && now_ns > beat_ns ? now_ns - beat_ns : 0);
    json_text(json, "trouble", executor->watched != NULL ? summary->trouble : "");
    json_end(json);
}

/* Writes null where none is kept. */
static void write_spare(struct json_writer *json, const struct executor *executor) {
    const struct spare *spare = &executor->spare;
    struct process_usage usage = {0};
    if (!executor->options->settings->executors.spare) {
        json_null(json, "spare");
        return;
    }
    if (spare->pid > 0) (void)process_usage_read(spare->pid, &usage);
    json_object(json, "spare");
    json_uint(json, "pid", (uint64_t)spare->pid);
    json_bool(json, "is_ready", spare->is_ready);
    json_uint(json, "deaths", spare->deaths_total);
    json_uint(json, "resident_bytes", usage.resident_bytes);
    json_end(json);
}

static void write_outcomes(struct json_writer *json, const struct ledger *ledger) {
    char name[LEDGER_NAME_BYTES];
    uint64_t outcomes[ERR_COUNT];
    json_array(json, "jobs");
    for (uint32_t i = 0; ledger_read_program(ledger, i, name, outcomes); i++)
        for (int code = 0; code < ERR_COUNT; code++) {
            if (outcomes[code] == 0) continue;
            json_object(json, NULL);
            json_text(json, "program", name);
            json_text(json, "code", err_code((enum err)code));
            json_uint(json, "count", outcomes[code]);
            json_end(json);
        }
    json_end(json);
}

static void write_codes(
    struct json_writer *json, const char *name, const _Atomic uint64_t *counts) {
    json_object(json, name);
    for (int code = 0; code < ERR_COUNT; code++) {
        /* relaxed: each stands alone */
        uint64_t count = atomic_load_explicit(&counts[code], memory_order_relaxed);
        if (count > 0) json_uint(json, err_code((enum err)code), count);
    }
    json_end(json);
}

static void write_stages(struct json_writer *json, const struct counters *counters) {
    json_object(json, "stages");
    for (int i = HISTOGRAM_queue; i <= HISTOGRAM_total; i++) {
        struct histogram_reading reading;
        counters_read_histogram(counters, (enum histogram)i, &reading);
        json_object(json, histogram_infos[i].name);
        write_seconds(json, "sum_s", reading.sum);
        json_array(json, "buckets");
        for (size_t k = 0; k <= histogram_infos[i].bound_count; k++)
            json_uint(json, NULL, reading.buckets[k]);
        json_end(json);
        json_end(json);
    }
    json_end(json);
}

static void write_work(struct json_writer *json, const struct view *view) {
    const uint64_t *of = view->totals.of;
    const struct {
        const char *name;
        enum counter counter;
    } fields[] = {{"batches", COUNTER_batches_count}, {"batch_jobs", COUNTER_batches_jobs},
        {"launches_alone", COUNTER_kinds_launches_alone},
        {"launches_batched", COUNTER_kinds_launches_batched},
        {"launches_coalesced", COUNTER_kinds_launches_coalesced},
        {"h2d_bytes", COUNTER_engine_host_to_device_bytes},
        {"d2h_bytes", COUNTER_engine_device_to_host_bytes},
        {"static_hits", COUNTER_engine_static_hits},
        {"static_misses", COUNTER_engine_static_misses},
        {"static_evictions", COUNTER_engine_static_evictions},
        {"module_compilations", COUNTER_engine_module_compilations},
        {"expired_messages", COUNTER_intake_messages_expired},
        {"rebalances", COUNTER_group_rebalances}};
    json_object(json, "work");
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        json_uint(json, fields[i].name, of[fields[i].counter]);
    json_end(json);
}

/* Writes null for what is not known. */
static void write_usage(struct json_writer *json, const struct view *view) {
    static const char *const names[USAGE_COUNT] = {
#define X(figure) #figure,
        USAGE_LIST(X)
#undef X
    };
    const struct usage_reading *usage = &view->panel.usage;
    json_object(json, "usage");
    for (int i = 0; i < USAGE_COUNT; i++) {
        if (view->is_live && usage_knows(usage, (enum usage_figure)i))
            json_uint(json, names[i], usage->of[i]);
        else json_null(json, names[i]);
    }
    json_end(json);
}

/* Writes null if no executor shows it. */
static void write_now(struct json_writer *json, const struct view *view) {
    const struct gauges *gauges = &view->panel.gauges;
    if (!view->is_live) {
        json_null(json, "now");
        return;
    }
    json_object(json, "now");
#define X(gauge) json_uint(json, #gauge, gauges->gauge);
    GAUGE_LIST(X)
#undef X
    json_uint(json, "device_budget_bytes", view->panel.device_budget_bytes);
    json_uint(json, "pinned_budget_bytes", view->panel.pinned_budget_bytes);
    json_uint(json, "statics_budget_bytes", view->panel.statics_budget_bytes);
    json_end(json);
}

static void write_partitions(struct json_writer *json, const struct view *view) {
    json_array(json, "partitions");
    for (uint32_t i = 0; i < view->panel.partition_count; i++) {
        const struct panel_partition *partition = &view->panel.partitions[i];
        json_object(json, NULL);
        json_text(json, "topic", partition->topic);
        json_int(json, "partition", partition->partition);
        if (partition->lag >= 0) json_int(json, "lag", partition->lag);
        else json_null(json, "lag");
        json_uint(json, "unfinished", partition->unfinished);
        write_seconds(json, "oldest_s", partition->oldest_ns);
        json_end(json);
    }
    json_end(json);
    json_uint(json, "partitions_left_out", view->panel.partitions_left_out);
}

static void write_suspension(void *context, const struct suspension *suspension) {
    struct json_writer *json = context;
    char name[SUSPENSION_NAME_BYTES + 1];
    json_object(json, NULL);
    text_format(name, sizeof name, "%.*s", SLICE_TEXT(suspension->name));
    json_text(json, "kind", suspension->kind == SUSPENSION_KEY ? "key" : "program");
    json_text(json, "name", name);
    json_uint(json, "until_unix_ms", suspension->until_ms);
    json_end(json);
}

static void write_suspended(struct json_writer *json, const struct executor *executor) {
    json_array(json, "suspended");
    if (executor->watched != NULL)
        suspensions_each(executor->watched, clock_unix_ms(), write_suspension, json);
    json_end(json);
}

static void write_failure(struct json_writer *json, const struct ledger_failure *failure) {
    json_object(json, NULL);
    bool is_code = failure->code < ERR_COUNT;
    json_uint(json, "unix_ms", failure->unix_ms);
    json_text(json, "code", is_code ? err_code((enum err)failure->code) : "");
    json_text(json, "message", failure->message);
    json_text(json, "fix", failure->fix);
    json_text(json, "id", failure->id);
    json_text(json, "program", failure->program);
    json_text(json, "topic", failure->topic);
    json_int(json, "partition", failure->partition);
    json_int(json, "offset", failure->offset);
    json_bool(json, "is_dead_letter", failure->is_dead_letter != 0);
    json_end(json);
}

/* Newest first. */
static void write_failures(struct json_writer *json, struct ledger *ledger) {
    struct ledger_failure failure;
    json_array(json, "failures");
    /* acquire: pairs with the release in ledger.c */
    uint64_t last = atomic_load_explicit(&ledger->failure_count, memory_order_acquire);
    for (uint64_t i = 0; i < LEDGER_FAILURES && i < last; i++)
        if (ledger_read_failure(ledger, last - i, &failure)) write_failure(json, &failure);
    json_end(json);
}

static void write_device(struct json_writer *json, const struct view *view, uint64_t now_ns) {
    const struct executor *executor = view->executor;
    struct board *board = executor->board;
    json_object(json, NULL);
    json_uint(json, "index", executor->device->index);
    json_text(json, "uuid", view->uuid);
    json_text(json, "name", view->panel.device);
    json_text(json, "standing", standing_of(executor));
    json_text(json, "reason", executor->unhealthy);
    json_uint(json, "lanes", executor->options->settings->lanes);
    json_uint(json, "busy_lanes", state_busy_lanes(executor->watched));
    write_usage(json, view);
    write_executor(json, view, now_ns);
    write_spare(json, executor);
    write_outcomes(json, &board->ledger);
    write_codes(json, "dead_letters", board->ledger.dead_letters);
    write_codes(json, "retries", board->ledger.retries);
    write_codes(json, "convictions", board->ledger.convictions);
    write_stages(json, &board->counters);
    write_work(json, view);
    write_now(json, view);
    write_partitions(json, view);
    write_suspended(json, executor);
    write_failures(json, &board->ledger);
    json_end(json);
}

/* ---- the whole ---- */

/* The lines of /readyz; the first one says whether the worker is ready. */
static bool write_problems(struct json_writer *json, const struct health *health) {
    char *text = NULL;
    size_t size;
    FILE *said = open_memstream(&text, &size);
    if (said == NULL) return false;
    bool is_ready = health_write(health, false, said);
    json_array(json, "problems");
    if (fclose(said) == 0) {
        char *rest = NULL;
        (void)strtok_r(text, "\n", &rest);
        for (char *line; (line = strtok_r(NULL, "\n", &rest)) != NULL;) json_text(json, NULL, line);
    }
    free(text);
    json_end(json);
    return is_ready;
}

void status_write(const struct health *health, FILE *page) {
    struct view *views = views_create(health->executors, health->count, health->now_ns);
    struct json_writer writer = {.out = page}, *json = &writer;
    json_object(json, NULL);
    json_text(json, "version", GPU_WORKER_VERSION);
    json_uint(json, "unix_ms", clock_unix_ms());
    bool is_ready = write_problems(json, health);
    json_bool(json, "is_ready", is_ready);
    json_bool(json, "is_stopping", health->is_stopping);
    json_array(json, "bounds_s");
    for (size_t i = 0; i < histogram_infos[HISTOGRAM_total].bound_count; i++)
        write_seconds(json, NULL, histogram_infos[HISTOGRAM_total].bounds[i]);
    json_end(json);
    json_array(json, "devices");
    for (size_t i = 0; i < health->count && views != NULL; i++)
        write_device(json, &views[i], health->now_ns);
    json_end_line(json);
    views_destroy(views);
}
