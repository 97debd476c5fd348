#include "pipeline/stages.h"

#include "base/condition.h"
#include "base/text.h"
#include "metrics/reporter.h"

uint32_t stages_jobs_max(const struct stages *stages) {
    return stages->settings->limits.jobs_in_flight + ASIDE_MAX + 1;
}

bool stages_has_failed(const struct stages *stages) {
    /* relaxed: it only ends loops; `failure` is read after the threads were joined */
    return atomic_load_explicit(&stages->has_failed, memory_order_relaxed);
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
    pthread_mutex_lock(&stages->lock);
    bool is_loss = !stages_has_failed(stages) && err_is_sticky(err->code);
    if (!stages_has_failed(stages)) stages->failure = *err;
    atomic_store_explicit(&stages->has_failed, true, memory_order_relaxed); /* as above */
    pthread_cond_broadcast(&stages->changed);
    pthread_mutex_unlock(&stages->lock);
    if (!is_loss) return;
    record_death(stages, err);
    if (stages->on_lost == NULL) return;
    reporter_tell_last(stages->reporter);
    stages->on_lost(err);
}

void stages_wait(struct stages *stages, uint32_t timeout_ms) {
    stages->waiters++;
    (void)condition_wait_ms(&stages->changed, &stages->lock, timeout_ms);
    stages->waiters--;
}

void stages_wake(struct stages *stages) {
    /* Without waiters, which is the rule, it costs nothing. */
    if (stages->waiters > 0) pthread_cond_broadcast(&stages->changed);
}

void stages_end_flight(struct stages *stages, uint64_t count, uint64_t bytes) {
    pthread_mutex_lock(&stages->lock);
    stages->in_flight -= count;
    stages->bytes_in_flight -= bytes;
    stages_wake(stages);
    pthread_mutex_unlock(&stages->lock);
}

void stages_drop(struct stages *stages, struct delivery *delivery) {
    stages_end_flight(stages, 1, delivery->held_bytes);
    delivery_destroy(delivery);
}
