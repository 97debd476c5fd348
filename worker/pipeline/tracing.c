#include "pipeline/tracing.h"

#include "base/clock.h"
#include "base/log_limit.h"
#include "trace/tracer.h"

static void on_failed(void *context, const struct error *err) {
    static struct log_limit limit = LOG_LIMIT_ONCE_A_MINUTE;
    uint64_t left_out;
    if (!log_limit_take(&limit, clock_ns(), &left_out)) return;
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
        .on_failed = on_failed};
    if (settings->tracing.otlp_url[0] == 0) return ERR_OK;
    return tracer_start(&options, &stages->tracer, err);
}

void tracing_stop(struct stages *stages) {
    tracer_stop(stages->tracer);
}
