#include "supervise/status.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "quarantine/suspensions.h"
#include "settings/quote.h"
#include "supervise/deaths.h"
#include "supervise/self.h"
#include "supervise/views.h"

/* ---- JSON: each value but the first has a comma before it ---- */

static void write_name(const char *name, bool *is_first, FILE *page) {
    if (!*is_first) fputc(',', page);
    *is_first = false;
    if (name == NULL) return;
    quote_json(name, page);
    fputc(':', page);
}

static void write_number(const char *name, uint64_t value, bool *is_first, FILE *page) {
    write_name(name, is_first, page);
    fprintf(page, "%" PRIu64, value);
}

static void write_seconds(const char *name, uint64_t ns, bool *is_first, FILE *page) {
    write_name(name, is_first, page);
    fprintf(page, "%.9g", (double)ns / 1e9);
}

static void write_text(const char *name, const char *text, bool *is_first, FILE *page) {
    write_name(name, is_first, page);
    quote_json(text, page);
}

static void write_bool(const char *name, bool value, bool *is_first, FILE *page) {
    write_name(name, is_first, page);
    fputs(value ? "true" : "false", page);
}

/* Begins an object or a list. */
static bool begin(const char *name, char bracket, bool *is_first, FILE *page) {
    write_name(name, is_first, page);
    fputc(bracket, page);
    return true;
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

static void write_executor(const struct view *view, uint64_t now_ns, bool *is_first, FILE *page) {
    const struct executor *executor = view->executor;
    const struct state_summary *summary = &view->summary;
    struct process_usage usage = {0};
    uint64_t beat_ns = summary->heartbeat_ns;
    if (executor->pid > 0) (void)process_usage_read(executor->pid, &usage);
    bool first = begin("executor", '{', is_first, page), cause = true;
    write_number("pid", (uint64_t)executor->pid, &first, page);
    write_number("starts", executor->starts, &first, page);
    (void)begin("deaths", '{', &first, page);
    for (int i = 0; i < STATE_DEATH_KINDS; i++)
        if (executor->deaths_of[i] > 0)
            write_number(
                death_name((enum state_death_kind)i), executor->deaths_of[i], &cause, page);
    fputc('}', page);
    write_number("resident_bytes", usage.resident_bytes, &first, page);
    write_number("programs", summary->programs, &first, page);
    write_seconds("silent_s", executor->watched != NULL && now_ns > beat_ns ? now_ns - beat_ns : 0,
        &first, page);
    write_text("trouble", executor->watched != NULL ? summary->trouble : "", &first, page);
    fputc('}', page);
}

/* Writes null where none is kept. */
static void write_spare(const struct executor *executor, bool *is_first, FILE *page) {
    const struct spare *spare = &executor->spare;
    struct process_usage usage = {0};
    if (!executor->options->settings->executors.spare) {
        write_name("spare", is_first, page);
        fputs("null", page);
        return;
    }
    if (spare->pid > 0) (void)process_usage_read(spare->pid, &usage);
    bool first = begin("spare", '{', is_first, page);
    write_number("pid", (uint64_t)spare->pid, &first, page);
    write_bool("is_ready", spare->is_ready, &first, page);
    write_number("deaths", spare->deaths_total, &first, page);
    write_number("resident_bytes", usage.resident_bytes, &first, page);
    fputc('}', page);
}

static void write_outcomes(const struct ledger *ledger, bool *is_first, FILE *page) {
    char name[LEDGER_NAME_BYTES];
    uint64_t outcomes[ERR_COUNT];
    bool first = begin("jobs", '[', is_first, page);
    for (uint32_t i = 0; ledger_read_program(ledger, i, name, outcomes); i++)
        for (int code = 0; code < ERR_COUNT; code++) {
            if (outcomes[code] == 0) continue;
            bool field = begin(NULL, '{', &first, page);
            write_text("program", name, &field, page);
            write_text("code", err_code((enum err)code), &field, page);
            write_number("count", outcomes[code], &field, page);
            fputc('}', page);
        }
    fputc(']', page);
}

static void write_codes(
    const char *name, const _Atomic uint64_t *counts, bool *is_first, FILE *page) {
    bool first = begin(name, '{', is_first, page);
    for (int code = 0; code < ERR_COUNT; code++) {
        /* relaxed: each stands alone */
        uint64_t count = atomic_load_explicit(&counts[code], memory_order_relaxed);
        if (count > 0) write_number(err_code((enum err)code), count, &first, page);
    }
    fputc('}', page);
}

static void write_stages(const struct counters *counters, bool *is_first, FILE *page) {
    bool first = begin("stages", '{', is_first, page);
    for (int i = HISTOGRAM_queue; i <= HISTOGRAM_total; i++) {
        struct histogram_reading reading;
        counters_read_histogram(counters, (enum histogram)i, &reading);
        bool field = begin(histogram_infos[i].name, '{', &first, page);
        write_seconds("sum_s", reading.sum, &field, page);
        bool bucket = begin("buckets", '[', &field, page);
        for (size_t k = 0; k <= histogram_infos[i].bound_count; k++)
            write_number(NULL, reading.buckets[k], &bucket, page);
        fputs("]}", page);
    }
    fputc('}', page);
}

static void write_work(const struct view *view, bool *is_first, FILE *page) {
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
    bool first = begin("work", '{', is_first, page);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        write_number(fields[i].name, of[fields[i].counter], &first, page);
    fputc('}', page);
}

/* Writes null for what is not known. */
static void write_usage(const struct view *view, bool *is_first, FILE *page) {
    static const char *const names[USAGE_COUNT] = {
#define X(figure) #figure,
        USAGE_LIST(X)
#undef X
    };
    const struct usage_reading *usage = &view->panel.usage;
    bool first = begin("usage", '{', is_first, page);
    for (int i = 0; i < USAGE_COUNT; i++) {
        write_name(names[i], &first, page);
        if (view->is_live && usage_knows(usage, (enum usage_figure)i))
            fprintf(page, "%" PRIu64, usage->of[i]);
        else fputs("null", page);
    }
    fputc('}', page);
}

/* Writes null if no executor shows it. */
static void write_now(const struct view *view, bool *is_first, FILE *page) {
    const struct gauges *gauges = &view->panel.gauges;
    if (!view->is_live) {
        write_name("now", is_first, page);
        fputs("null", page);
        return;
    }
    bool first = begin("now", '{', is_first, page);
#define X(gauge) write_number(#gauge, gauges->gauge, &first, page);
    GAUGE_LIST(X)
#undef X
    write_number("device_budget_bytes", view->panel.device_budget_bytes, &first, page);
    write_number("pinned_budget_bytes", view->panel.pinned_budget_bytes, &first, page);
    write_number("statics_budget_bytes", view->panel.statics_budget_bytes, &first, page);
    fputc('}', page);
}

static void write_partitions(const struct view *view, bool *is_first, FILE *page) {
    bool first = begin("partitions", '[', is_first, page);
    for (uint32_t i = 0; i < view->panel.partition_count; i++) {
        const struct panel_partition *partition = &view->panel.partitions[i];
        bool field = begin(NULL, '{', &first, page);
        write_text("topic", partition->topic, &field, page);
        write_name("partition", &field, page);
        fprintf(page, "%" PRId32, partition->partition);
        write_name("lag", &field, page);
        if (partition->lag >= 0) fprintf(page, "%" PRId64, partition->lag);
        else fputs("null", page);
        write_number("unfinished", partition->unfinished, &field, page);
        write_seconds("oldest_s", partition->oldest_ns, &field, page);
        fputc('}', page);
    }
    fputc(']', page);
    write_number("partitions_left_out", view->panel.partitions_left_out, is_first, page);
}

struct json_array {
    bool is_first;
    FILE *page;
};

static void write_suspension(void *context, const struct suspension *suspension) {
    struct json_array *array = context;
    char name[SUSPENSION_NAME_BYTES + 1];
    bool field = begin(NULL, '{', &array->is_first, array->page);
    text_format(name, sizeof name, "%.*s", SLICE_TEXT(suspension->name));
    write_text("kind", suspension->kind == SUSPENSION_KEY ? "key" : "program", &field, array->page);
    write_text("name", name, &field, array->page);
    write_number("until_unix_ms", suspension->until_ms, &field, array->page);
    fputc('}', array->page);
}

static void write_suspended(const struct executor *executor, bool *is_first, FILE *page) {
    struct json_array array = {.is_first = begin("suspended", '[', is_first, page), .page = page};
    if (executor->watched != NULL)
        suspensions_each(executor->watched, clock_unix_ms(), write_suspension, &array);
    fputc(']', page);
}

static void write_failure(const struct ledger_failure *failure, bool *is_first, FILE *page) {
    bool field = begin(NULL, '{', is_first, page);
    bool is_code = failure->code < ERR_COUNT;
    write_number("unix_ms", failure->unix_ms, &field, page);
    write_text("code", is_code ? err_code((enum err)failure->code) : "", &field, page);
    write_text("message", failure->message, &field, page);
    write_text("fix", failure->fix, &field, page);
    write_text("id", failure->id, &field, page);
    write_text("program", failure->program, &field, page);
    write_text("topic", failure->topic, &field, page);
    write_name("partition", &field, page);
    fprintf(page, "%" PRId32, failure->partition);
    write_name("offset", &field, page);
    fprintf(page, "%" PRId64, failure->offset);
    write_bool("is_dead_letter", failure->is_dead_letter != 0, &field, page);
    fputc('}', page);
}

/* Newest first. */
static void write_failures(struct ledger *ledger, bool *is_first, FILE *page) {
    struct ledger_failure failure;
    bool first = begin("failures", '[', is_first, page);
    /* acquire: pairs with the release in ledger.c */
    uint64_t last = atomic_load_explicit(&ledger->failure_count, memory_order_acquire);
    for (uint64_t i = 0; i < LEDGER_FAILURES && i < last; i++)
        if (ledger_read_failure(ledger, last - i, &failure)) write_failure(&failure, &first, page);
    fputc(']', page);
}

static void write_device(const struct view *view, uint64_t now_ns, bool *is_first, FILE *page) {
    const struct executor *executor = view->executor;
    struct board *board = executor->board;
    bool first = begin(NULL, '{', is_first, page);
    write_number("index", executor->device->index, &first, page);
    write_text("uuid", view->uuid, &first, page);
    write_text("name", view->panel.device, &first, page);
    write_text("standing", standing_of(executor), &first, page);
    write_text("reason", executor->unhealthy, &first, page);
    write_number("lanes", executor->options->settings->lanes, &first, page);
    write_number("busy_lanes", state_busy_lanes(executor->watched), &first, page);
    write_usage(view, &first, page);
    write_executor(view, now_ns, &first, page);
    write_spare(executor, &first, page);
    write_outcomes(&board->ledger, &first, page);
    write_codes("dead_letters", board->ledger.dead_letters, &first, page);
    write_codes("retries", board->ledger.retries, &first, page);
    write_codes("convictions", board->ledger.convictions, &first, page);
    write_stages(&board->counters, &first, page);
    write_work(view, &first, page);
    write_now(view, &first, page);
    write_partitions(view, &first, page);
    write_suspended(executor, &first, page);
    write_failures(&board->ledger, &first, page);
    fputc('}', page);
}

/* ---- the whole ---- */

/* The lines of /readyz; the first one says whether the worker is ready. */
static bool write_problems(const struct health *health, bool *is_first, FILE *page) {
    char *text = NULL;
    size_t size;
    FILE *said = open_memstream(&text, &size);
    if (said == NULL) return false;
    bool is_ready = health_write(health, false, said);
    bool first = begin("problems", '[', is_first, page);
    if (fclose(said) == 0) {
        char *rest = NULL;
        (void)strtok_r(text, "\n", &rest);
        for (char *line; (line = strtok_r(NULL, "\n", &rest)) != NULL;)
            write_text(NULL, line, &first, page);
    }
    free(text);
    fputc(']', page);
    return is_ready;
}

void status_write(const struct health *health, FILE *page) {
    struct view *views = views_create(health->executors, health->count, health->now_ns);
    bool first = true;
    fputc('{', page);
    write_text("version", GPU_WORKER_VERSION, &first, page);
    write_number("unix_ms", clock_unix_ms(), &first, page);
    bool is_ready = write_problems(health, &first, page);
    write_bool("is_ready", is_ready, &first, page);
    write_bool("is_stopping", health->is_stopping, &first, page);
    bool bound = begin("bounds_s", '[', &first, page);
    for (size_t i = 0; i < histogram_infos[HISTOGRAM_total].bound_count; i++)
        write_seconds(NULL, histogram_infos[HISTOGRAM_total].bounds[i], &bound, page);
    fputc(']', page);
    bool device = begin("devices", '[', &first, page);
    for (size_t i = 0; i < health->count && views != NULL; i++)
        write_device(&views[i], health->now_ns, &device, page);
    fputs("]}\n", page);
    views_destroy(views);
}
