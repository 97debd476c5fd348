#include "pipeline/tracing.h"

#include "base/clock.h"
#include "trace/tracer.h"

#define LOG_NS 60000000000ull /* a collector that is gone takes one line a minute */

static void on_failed(void *context, const struct error *err) {
    struct stages *stages = context;
    uint64_t now_ns = clock_ns();
    if (now_ns < stages->tracing_log_due_ns) return;
    stages->tracing_log_due_ns = now_ns + LOG_NS;
    log_error_event(LOG_WARN, LOG_EVENT("spans_unexported"), "spans could not be exported", err);
}

enum err tracing_start(struct stages *stages, struct error *err) {
    const struct settings *settings = stages->settings;
    const struct tracer_options options = {.url = settings->tracing.otlp_url,
        .identity = &stages->identity,
        .group = settings->kafka.group,
        .results_topic = settings->topics.results,
        .letters_topic = settings->topics.dead_letters,
        .counters = &stages->board->counters,
        .on_failed = on_failed,
        .context = stages};
    if (settings->tracing.otlp_url[0] == 0) return ERR_OK;
    return tracer_start(&options, &stages->tracer, err);
}

void tracing_stop(struct stages *stages) {
    tracer_stop(stages->tracer);
}
