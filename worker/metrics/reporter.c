#include "metrics/reporter.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/condition.h"
#include "base/crew.h"
#include "base/log.h"
#include "base/log_limit.h"
#include "base/pulse.h"
#include "base/text.h"
#include "metrics/board.h"
#include "metrics/encode_report.h"
#include "metrics/meter.h"
#include "state/crash.h"

enum { FLUSH_MS = 1000, SHOW_MS = 1000 };

struct reporter {
    const struct collector *collector;
    const struct identity *identity;
    struct meter *meter;
    uint32_t interval_ms;
    struct sink *sink; /* NULL: nothing is published */
    struct board *board;
    struct crew *crew;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t stopping;
    bool is_stopping, has_told_last;
    bool is_process_ending; /* with this report */

    /* the thread's own */
    uint64_t started_ns, due_ns; /* the next report */
    struct totals earlier; /* of earlier lives, what no memory of the board counts by itself */
    uint64_t told_ns;      /* when `told` was read */
    struct totals told;    /* the sum of all acknowledged reports */
    uint64_t sequence;
    bool is_on_its_way; /* a report with the fields below, not yet settled */
    struct record record;
    struct slice payload; /* owned */
    char key[160];
    struct totals now;
    uint64_t now_ns;
};

static void log_unpublished(const struct error *err) {
    static struct log_limit limit = LOG_LIMIT_ONCE_A_MINUTE;
    if (!log_limit_take(&limit, clock_ns(), NULL)) return;
    log_error_event(
        LOG_WARN, LOG_EVENT("telemetry_unpublished"), "telemetry could not be published", err);
}

/*
 * Puts a refused report back. Sums are in the next report anyway; maxima have to be counted again.
 */
static void take_back(struct reporter *reporter) {
    for (int i = 0; i < COUNTER_COUNT; i++)
        if (counter_infos[i].is_max)
            counters_raise(reporter->collector->counters, (enum counter)i, reporter->now.of[i]);
}

static void on_settled(struct record *record, enum err code, const struct error *err) {
    struct reporter *reporter =
        (struct reporter *)((char *)record - offsetof(struct reporter, record));
    free((void *)(uintptr_t)reporter->payload.data);
    reporter->payload = slice_of(NULL, 0);
    reporter->is_on_its_way = false;
    if (code == ERR_OK) {
        reporter->told = reporter->now;
        reporter->told_ns = reporter->now_ns;
    } else {
        take_back(reporter);
        log_unpublished(err);
    }
}

static void send_report(struct reporter *reporter) {
    static const struct header content_type = {.name = {(const uint8_t *)"content-type", 12},
        .value = {(const uint8_t *)"application/msgpack", 19}};
    const struct collector *collector = reporter->collector;
    reporter->now_ns = clock_ns();
    collector_read_totals(collector, &reporter->now);
    counters_take_maxima(collector->counters, &reporter->now);
    const struct report report = {.sequence = ++reporter->sequence,
        .unix_ms = clock_unix_ms(),
        .interval_ns = reporter->now_ns - reporter->told_ns,
        .uptime_ns = reporter->now_ns - reporter->started_ns,
        .totals = totals_since(&reporter->now, &reporter->told),
        .gauges = collector_read_gauges(collector),
        .oldest = collector_read_oldest(collector->source)};
    reporter->payload = encode_report(&report, reporter->identity);
    if (reporter->payload.data == NULL) {
        take_back(reporter);
        return; /* the next report covers this one too, if memory is back */
    }
    reporter->is_on_its_way = true;
    reporter->record = (struct record){.route = ROUTE_TELEMETRY,
        .has_key = true,
        .key = slice_of_text(reporter->key),
        .payload = reporter->payload,
        .header_count = 1,
        .headers = &content_type,
        .on_settled = on_settled};
    sink_send(reporter->sink, &reporter->record);
}

/* ---- the board ---- */

/* What an earlier life has shown, and no memory of the board counts by itself, is added from now
 * on. */
static void find_earlier(struct reporter *reporter) {
    struct panel_view view;
    if (!panel_read(&reporter->board->panel, &view)) return;
    for (int i = 0; i < COUNTER_COUNT; i++)
        if (view.totals.of[i] > reporter->told.of[i])
            reporter->earlier.of[i] = view.totals.of[i] - reporter->told.of[i];
}

static void show(struct reporter *reporter) {
    const struct collector *collector = reporter->collector;
    struct panel_view *view = panel_begin(&reporter->board->panel);
    collector_read_totals(collector, &view->totals);
    for (int i = 0; i < COUNTER_COUNT; i++) view->totals.of[i] += reporter->earlier.of[i];
    view->gauges = collector_read_gauges(collector);
    meter_read(reporter->meter, clock_ns(), &view->usage);
    view->device_budget_bytes = budget_limit(collector->device_budget);
    view->pinned_budget_bytes = budget_limit(collector->pinned_budget);
    view->statics_budget_bytes = collector->statics_budget_bytes;
    collector_read_partitions(collector->source, view);
    text_format(view->device, sizeof view->device, "%s", reporter->identity->device);
    view->shown_ns = clock_ns();
    panel_show(&reporter->board->panel);
}

/* ---- the thread ---- */

/* False: the reporter has to stop. */
static bool wait_to_show(struct reporter *reporter) {
    uint64_t until_ns = clock_ns_in(SHOW_MS);
    if (reporter->sink != NULL && reporter->due_ns < until_ns) until_ns = reporter->due_ns;
    bool is_in_time = true;
    pthread_mutex_lock(&reporter->lock);
    while (!reporter->is_stopping && is_in_time)
        is_in_time = condition_wait_until(&reporter->stopping, &reporter->lock, until_ns);
    bool is_stopping = reporter->is_stopping;
    pthread_mutex_unlock(&reporter->lock);
    return !is_stopping;
}

static void flush(struct reporter *reporter) {
    struct error err;
    pulse_busy();
    if (sink_flush(reporter->sink, FLUSH_MS, &err) != ERR_OK) log_unpublished(&err);
}

static void publish(struct reporter *reporter) {
    sink_serve(reporter->sink, 0);
    if (clock_ns() < reporter->due_ns) return;
    reporter->due_ns = clock_ns_in(reporter->interval_ms);
    if (!reporter->is_on_its_way) send_report(reporter);
    sink_serve(reporter->sink, 0);
}

static void publish_last(struct reporter *reporter) {
    flush(reporter);
    if (!reporter->is_on_its_way) send_report(reporter);
    flush(reporter);
}

static void run_reporter(void *context, uint32_t index) {
    crash_is_no_evidence();
    struct reporter *reporter = context;
    do {
        pulse_busy();
        show(reporter);
        if (reporter->sink != NULL) publish(reporter);
        pulse_idle();
    } while (wait_to_show(reporter));
    pulse_busy();
    show(reporter);
    if (reporter->sink != NULL) publish_last(reporter);
    pthread_mutex_lock(&reporter->lock);
    reporter->has_told_last = true;
    bool is_process_ending = reporter->is_process_ending;
    pthread_cond_broadcast(&reporter->stopping);
    pthread_mutex_unlock(&reporter->lock);
    pulse_idle();                      /* closing has time limits of its own */
    while (is_process_ending) pause(); /* and is not worth the wait */
    sink_destroy(reporter->sink);
}

static void reporter_destroy(struct reporter *reporter) {
    pthread_cond_destroy(&reporter->stopping);
    pthread_mutex_destroy(&reporter->lock);
    free(reporter);
}

enum err reporter_start(
    const struct reporter_options *options, struct reporter **ret, struct error *err) {
    struct sink *sink = options->sink;
    if (options->interval_ms == 0) {
        sink_destroy(sink);
        sink = NULL;
    }
    struct reporter *reporter = calloc(1, sizeof *reporter);
    if (reporter == NULL) {
        sink_destroy(sink);
        return error_no_memory(err, "no memory for telemetry");
    }
    reporter->collector = options->collector;
    reporter->identity = options->identity;
    reporter->meter = options->meter;
    reporter->interval_ms = options->interval_ms;
    reporter->sink = sink;
    reporter->board = options->board;
    reporter->started_ns = reporter->told_ns = clock_ns();
    reporter->due_ns = clock_ns_in(options->interval_ms);
    counters_read(options->collector->counters, &reporter->told);
    counters_take_maxima(options->collector->counters, &reporter->now); /* of an earlier life */
    find_earlier(reporter);
    snprintf(reporter->key, sizeof reporter->key, "%s/%" PRIu32, options->identity->host,
        options->identity->device_index);
    pthread_mutex_init(&reporter->lock, NULL);
    pthread_cond_init(&reporter->stopping, NULL);
    const struct crew_options crew = {
        .name = "reporter", .count = 1, .run = run_reporter, .context = reporter};
    enum err code = crew_start(&crew, &reporter->crew, err);
    if (code == ERR_OK) {
        *ret = reporter;
    } else {
        sink_destroy(sink);
        reporter_destroy(reporter);
    }
    return code;
}

static void ask_to_stop(struct reporter *reporter, bool is_process_ending) {
    pthread_mutex_lock(&reporter->lock);
    reporter->is_stopping = true;
    reporter->is_process_ending = is_process_ending;
    pthread_cond_broadcast(&reporter->stopping);
    pthread_mutex_unlock(&reporter->lock);
}

void reporter_stop(struct reporter *reporter) {
    if (reporter == NULL) return;
    ask_to_stop(reporter, false);
    crew_join(&reporter->crew);
    reporter_destroy(reporter);
}

void reporter_tell_last(struct reporter *reporter) {
    if (reporter == NULL) return;
    ask_to_stop(reporter, true);
    uint64_t until_ns = clock_ns_in(2 * FLUSH_MS);
    bool is_in_time = true;
    pthread_mutex_lock(&reporter->lock);
    while (!reporter->has_told_last && is_in_time)
        is_in_time = condition_wait_until(&reporter->stopping, &reporter->lock, until_ns);
    pthread_mutex_unlock(&reporter->lock);
}
