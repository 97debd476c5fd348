#include "executor/flow.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "execute/tally.h"
#include "executor/narrow.h"
#include "executor/turns.h"
#include "gpu/profile.h"

#define NOT_STORED_LOG_NS 60000000000ull /* a store that is gone takes one line a minute */

bool flow_has_failed(const struct stages *stages) {
    /* relaxed: it only ends loops; `failure` is read after the threads were joined */
    return atomic_load_explicit(&stages->has_failed, memory_order_relaxed);
}

void flow_fail(struct stages *stages, const struct error *err) {
    pthread_mutex_lock(&stages->lock);
    if (!flow_has_failed(stages)) stages->failure = *err;
    atomic_store_explicit(&stages->has_failed, true, memory_order_relaxed); /* as above */
    pthread_cond_broadcast(&stages->changed);
    pthread_mutex_unlock(&stages->lock);
}

void flow_wait(struct stages *stages, int timeout_ms) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += (long)timeout_ms * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    (void)pthread_cond_timedwait(&stages->changed, &stages->lock, &until);
}

static void count_holding(struct stages *stages, bool holds) {
    pthread_mutex_lock(&stages->lock);
    if (holds) stages->holding++;
    else stages->holding--;
    if (!holds) pthread_cond_broadcast(&stages->changed);
    pthread_mutex_unlock(&stages->lock);
}

/* --- answers --- */

static void answer(struct stages *stages, struct job *job, const struct outcome *outcome) {
    struct error err;
    struct gate_line *line = job->line;
    tally_job(stages->counters, outcome);
    profile_push("publish");
    enum err code = publisher_push_outcome(stages->publisher, job, outcome, &err);
    profile_pop();
    if (code == ERR_OK) return;
    flow_fail(stages, &err); /* unanswered and uncommitted: the job comes again */
    job_destroy(job);
    turns_leave(stages->turns, line);
}

/* Lets go of a job that nobody answers, after a failure of the run: it comes again. */
static void abandon(struct stages *stages, struct job *job) {
    struct gate_line *line = job->line;
    job_destroy(job);
    turns_leave(stages->turns, line);
}

void flow_reject(struct stages *stages, struct job *job, const struct error *err) {
    struct outcome outcome = {.code = err->code, .err = *err};
    outcome.telemetry.decode_ns = job->decode_ns;
    outcome.telemetry.wall_ns = clock_ns() - job->delivery->received_ns;
    log_error(LOG_DEBUG, "job failed", err);
    answer(stages, job, &outcome);
}

/* A GPU that is lost is nobody's fault that we know of: the job is not answered and comes again. */
static void refuse(struct stages *stages, struct job *job, const struct error *err) {
    if (!err_is_sticky(err->code)) {
        flow_reject(stages, job, err);
        return;
    }
    flow_fail(stages, err);
    abandon(stages, job);
}

void flow_reject_undecodable(
    struct stages *stages, struct delivery *delivery, const struct error *err) {
    const struct position *position = &delivery->position;
    log_line(LOG_WARN, "dead letter: %s/%" PRId32 "/%" PRId64 ": %s: %s", position->topic,
        position->partition, position->offset, err_code(err->code), err->message);
    struct error push_error;
    counters_add_outcome(stages->counters, err->code);
    enum err code = publisher_push_undecodable(stages->publisher, delivery, err, &push_error);
    if (code == ERR_OK) return;
    flow_fail(stages, &push_error);
    delivery_destroy(delivery);
}

/* --- from stage to stage --- */

/* After this the job holds nothing on the device, and others may go on with what it held. */
static void let_go(struct stages *stages, struct prepared *prepared) {
    prepared_release(prepared, stages->statics, stages->residents);
    count_holding(stages, false);
}

/* The job may hold device memory from here until it is done. */
static enum err submit(
    struct stages *stages, struct job *job, const struct plan *plan, struct error *err) {
    count_holding(stages, true);
    enum err code = prepare_submit(stages->prepare, job, plan, err);
    if (code != ERR_OK) count_holding(stages, false);
    return code;
}

void flow_plan(struct stages *stages, struct job *job) {
    struct error err;
    const struct plan *plan;
    enum err code = plan_job(job, stages->registry, &stages->plan_limits, &plan, &err);
    if (code == ERR_OK)
        code = publisher_reserve(stages->publisher, job, plan->result_bytes_max, &err);
    if (code == ERR_OK) code = submit(stages, job, plan, &err);
    if (code != ERR_OK) refuse(stages, job, &err);
}

static void go_narrow(struct stages *stages, struct prepared *prepared) {
    pthread_mutex_lock(&stages->lock);
    stages->starved++;
    pthread_mutex_unlock(&stages->lock);
    let_go(stages, prepared);
    narrow_push(stages->narrow, prepared);
}

void flow_on_ready(void *context, struct prepared *prepared) {
    struct stages *stages = context;
    if (prepared->job->delivery->is_suspect) {
        go_narrow(stages, prepared);
        return;
    }
    /* Closed only once preparation has ended, and as long as all that can be in flight. */
    if (!queue_push(stages->ready, prepared)) abort();
}

void flow_on_starved(void *context, struct prepared *prepared, const struct error *err) {
    go_narrow(context, prepared);
}

void flow_on_prepare_failed(void *context, struct prepared *prepared, const struct error *err) {
    struct stages *stages = context;
    if (err_is_shortage(err->code)) {
        flow_on_starved(stages, prepared, err);
        return;
    }
    let_go(stages, prepared);
    refuse(stages, prepared->job, err);
}

/* The job goes on: only those that name the digest alone may miss the payload, after a restart. */
void flow_on_not_stored(void *context, const struct error *err) {
    struct stages *stages = context;
    pthread_mutex_lock(&stages->lock);
    uint64_t count = ++stages->not_stored;
    bool is_due = clock_ns() >= stages->not_stored_due_ns;
    if (is_due) stages->not_stored_due_ns = clock_ns() + NOT_STORED_LOG_NS;
    pthread_mutex_unlock(&stages->lock);
    if (!is_due) return;
    log_error(LOG_WARN, "a static was not stored", err);
    log_line(LOG_WARN, "statics not stored since the start: %" PRIu64, count);
}

/* One line a batch: its jobs come one after the other, from its lane's thread. */
static void log_batch(const struct job_telemetry *job) {
    static _Thread_local uint64_t logged_id;
    const struct batch_telemetry *batch = &job->batch;
    if (batch->id == logged_id) return;
    logged_id = batch->id;
    log_line(LOG_DEBUG,
        "batch %" PRIu64 ": %" PRIu64 " jobs, %" PRIu64 " launches, stage %" PRIu64
        " ns, enqueue %" PRIu64 " ns, wait %" PRIu64 " ns",
        batch->id, batch->jobs, batch->launches, job->stage_ns, job->enqueue_ns, job->wait_ns);
}

void flow_on_done(void *context, struct prepared *prepared, const struct outcome *outcome) {
    struct stages *stages = context;
    if (outcome->code != ERR_OK) log_error(LOG_DEBUG, "job failed", &outcome->err);
    if (log_is_on(LOG_DEBUG)) log_batch(&outcome->telemetry);
    let_go(stages, prepared);
    answer(stages, prepared->job, outcome);
}

void flow_drop(struct stages *stages, struct prepared *prepared) {
    let_go(stages, prepared);
    abandon(stages, prepared->job);
}

void flow_on_lost(void *context, struct prepared **jobs, size_t count, const struct error *err) {
    struct stages *stages = context;
    flow_fail(stages, err);
    for (size_t i = 0; i < count; i++) flow_drop(stages, jobs[i]);
}

static void leave_narrow(struct stages *stages, struct prepared *prepared) {
    prepared_release(prepared, stages->statics, stages->residents);
    pthread_mutex_lock(&stages->lock);
    stages->starved--;
    pthread_cond_broadcast(&stages->changed);
    pthread_mutex_unlock(&stages->lock);
}

void flow_narrow_done(
    struct stages *stages, struct prepared *prepared, const struct outcome *outcome) {
    leave_narrow(stages, prepared);
    answer(stages, prepared->job, outcome);
}

void flow_narrow_refused(
    struct stages *stages, struct prepared *prepared, const struct error *err) {
    leave_narrow(stages, prepared);
    refuse(stages, prepared->job, err);
}

void flow_on_queued(void *context, struct gate_line *line) {
    struct stages *stages = context;
    turns_leave(stages->turns, line);
}

void flow_on_published(void *context, const struct delivery *delivery, bool is_error) {
    struct stages *stages = context;
    source_finish(stages->source, &delivery->position);
    pthread_mutex_lock(&stages->lock);
    stages->in_flight--;
    stages->bytes_in_flight -= delivery->held_bytes;
    if (is_error) stages->summary.errors++;
    else stages->summary.ok++;
    pthread_cond_broadcast(&stages->changed);
    pthread_mutex_unlock(&stages->lock);
}

void flow_on_publish_failed(void *context, const struct error *err) {
    flow_fail(context, err);
}
