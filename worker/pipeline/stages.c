#include "pipeline/stages.h"

#include "base/text.h"
#include "metrics/reporter.h"

uint32_t stages_jobs_max(const struct stages *stages) {
    return stages->settings->limits.jobs_in_flight + ASIDE_MAX + 1;
}

bool stages_has_failed(const struct stages *stages) {
    return flight_has_failed(&stages->flight);
}

bool stages_must_stop(const struct stages *stages) {
    /* relaxed: it only ends loops */
    return atomic_load_explicit(stages->stop, memory_order_relaxed);
}

/* So that the next executor knows why this one had to end. */
static void record_death(struct stages *stages, const struct error *err) {
    struct state_death death = {
        .kind = STATE_DEATH_STICKY, .code = err->code, .native = err->native};
    text_format(death.message, sizeof death.message, "%s", err->message);
    state_record_death(stages->state, &death);
}

void stages_fail(struct stages *stages, const struct error *err) {
    bool is_first = flight_fail(&stages->flight, err);
    if (!is_first || !err_is_sticky(err->code)) return;
    record_death(stages, err);
    if (stages->on_lost == NULL) return;
    reporter_tell_last(stages->reporter);
    stages->on_lost(err);
}

void stages_drop(struct stages *stages, struct delivery *delivery) {
    flight_end(&stages->flight, 1, delivery->held_bytes);
    delivery_destroy(delivery);
}
