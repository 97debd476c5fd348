#include "pipeline/flow.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/invariant.h"
#include "base/log_limit.h"
#include "gpu/profile.h"
#include "pipeline/control.h"
#include "pipeline/narrow.h"
#include "pipeline/retries.h"
#include "prepare/carriers.h"
#include "quarantine/refusals.h"
#include "quarantine/suspects.h"

#define RARE_LOG_NS 60000000000ull /* a store that is gone takes one line a minute */

/* With the lock held: a count fell. Without waiters, which is the rule, it costs nothing. */
static void wake_waiters(struct stages *stages) {
    if (stages->waiters > 0) pthread_cond_broadcast(&stages->changed);
}

static void start_holding(struct stages *stages, size_t jobs) {
    pthread_mutex_lock(&stages->lock);
    stages->holding += jobs;
    pthread_mutex_unlock(&stages->lock);
}

static void stop_holding(struct stages *stages, size_t jobs) {
    pthread_mutex_lock(&stages->lock);
    stages->holding -= jobs;
    wake_waiters(stages);
    pthread_mutex_unlock(&stages->lock);
}

void flow_end_carrying(struct stages *stages, struct job *job, bool is_left) {
    struct prepared *woken = carriers_end(stages->carriers, job, is_left);
    if (woken != NULL) prepare_wake(stages->prepare, woken);
}

/* --- answers --- */

/* Lets go of a job that nobody answers, after a failure of the run: it comes again. */
static void abandon(struct stages *stages, struct job *job) {
    struct key_queue *key_queue = job->key_queue;
    flow_end_carrying(stages, job, true);
    job_destroy(job);
    key_order_leave(stages->key_order, key_queue);
}

/* With log_batch() the stages that profilers see, for whoever has no profiler. */
static void log_answer(
    const struct position *position, const struct job_telemetry *job, uint64_t publish_ns) {
    log_line(LOG_DEBUG,
        "job %s/%" PRId32 "/%" PRId64 ": batch %" PRIu64 ", decode %" PRIu64 " ns, publish %" PRIu64
        " ns",
        position->topic, position->partition, position->offset, job->batch.id, job->decode_ns,
        publish_ns);
}

/* NULL where the answer needs no push, or none is possible. */
static struct publication *encode(
    struct stages *stages, struct job *job, const struct outcome *outcome) {
    struct publication *publication = NULL;
    struct error err;
    bool is_logged = log_is_on(LOG_DEBUG);
    const struct position position = job->delivery->position; /* encoded, the job may be over */
    uint64_t start_ns = is_logged ? clock_ns() : 0;
    flow_end_carrying(stages, job, false);
    profile_push("publish");
    enum err code = publisher_encode(stages->publisher, job, outcome, &publication, &err);
    profile_pop();
    if (is_logged) log_answer(&position, &outcome->telemetry, clock_ns() - start_ns);
    if (code == ERR_OK) return publication;
    stages_fail(stages, &err);
    abandon(stages, job);
    return NULL;
}

static void answer(struct stages *stages, struct job *job, const struct outcome *outcome) {
    struct publication *publication = encode(stages, job, outcome);
    publisher_push(stages->publisher, &publication, 1);
}

void flow_reject(struct stages *stages, struct job *job, const struct error *err) {
    struct outcome outcome = {.code = err->code, .err = *err};
    outcome.telemetry.decode_ns = job->decode_ns;
    outcome.telemetry.wall_ns = clock_ns() - job->delivery->received_ns;
    log_error(LOG_DEBUG, "job failed", err);
    answer(stages, job, &outcome);
}

/* What it names was to come with a job that is left to come again, or may be: so is this one. */
static bool goes_with_its_carrier(
    const struct stages *stages, const struct job *job, const struct error *err) {
    if (err->code != ERR_STATIC_MISSING) return false;
    return job->prepared->is_left || retries_are_over(stages->retries);
}

/* The job holds nothing any more: it is tried again where that may help, else answered. */
static void refuse(struct stages *stages, struct job *job, struct error *err) {
    if (err_is_sticky(err->code)) {
        /* A GPU that is lost is nobody's fault that we know of: the job comes again. */
        stages_fail(stages, err);
        abandon(stages, job);
    } else if (err->code == ERR_STATIC_MISSING && stages_has_failed(stages)) {
        abandon(stages, job);
    } else if (goes_with_its_carrier(stages, job, err)) {
        flow_hand_back(stages, job);
    } else if (!retries_take(stages->retries, job, err)) {
        flow_reject(stages, job, err);
    }
}

static void log_dead_letter(const struct position *position, const struct error *err) {
    static struct log_limit limit = LOG_LIMIT_INIT;
    uint64_t left_out;
    if (!log_limit_take(&limit, clock_ns(), &left_out)) return;
    if (left_out > 0) log_line(LOG_WARN, "%" PRIu64 " more dead letters, without a line", left_out);
    log_line(LOG_WARN, "dead letter: %s/%" PRId32 "/%" PRId64 ": %s: %s", position->topic,
        position->partition, position->offset, err_code(err->code), err->message);
}

void flow_reject_undecodable(
    struct stages *stages, struct delivery *delivery, const struct error *err) {
    log_dead_letter(&delivery->position, err);
    struct error push_error;
    enum err code = publisher_push_undecodable(stages->publisher, delivery, err, &push_error);
    if (code == ERR_OK) return;
    stages_fail(stages, &push_error);
    delivery_destroy(delivery);
}

/* --- from stage to stage --- */

enum err flow_still_wanted(void *context, const struct job *job, struct error *err) {
    const struct stages *stages = context;
    if (control_has_cancelled(stages->control, job->id))
        return error_set(err, ERR_CANCELLED, 0,
            "send it again under another id, or after cancels.ttl_ms",
            "the job was cancelled before it ran");
    uint64_t deadline_ms = job->deadline_unix_ms;
    if (deadline_ms == 0) return refusals_check(&stages->refusals, job, err);
    uint64_t now_ms = clock_unix_ms();
    if (now_ms <= deadline_ms) return refusals_check(&stages->refusals, job, err);
    return error_set(err, ERR_DEADLINE_EXCEEDED, 0, "send it with a later deadline, or add workers",
        "the job was still waiting %" PRIu64 " ms after its deadline", now_ms - deadline_ms);
}

/* After this the job holds nothing on the device, and others may go on with what it held. */
static void let_go(struct stages *stages, struct prepared *prepared) {
    prepared_release(prepared, stages->statics, stages->residents);
    stop_holding(stages, 1);
}

/* The job if it may run at once; NULL: it is on its way elsewhere. */
static struct prepared *plan_and_prepare(struct stages *stages, struct job *job) {
    struct error err;
    const struct plan *plan;
    struct prepared *ready = NULL;
    enum err code = flow_still_wanted(stages, job, &err);
    if (code == ERR_OK && job->prepared != NULL)
        return prepare_resubmit(stages->prepare, job->prepared);
    const struct edition *edition = edition_of(job);
    if (code == ERR_OK) code = plan_job(job, edition->registry, &edition->plan_limits, &plan, &err);
    if (code == ERR_OK && job->publication == NULL)
        code = publisher_reserve(stages->publisher, job, plan->result_bytes_max, &err);
    if (code == ERR_OK)
        code = prepare_submit(stages->prepare, job, plan, edition->modules, &ready, &err);
    if (code == ERR_OK) return ready;
    stop_holding(stages, 1);
    refuse(stages, job, &err);
    return NULL;
}

static void go_narrow(struct stages *stages, struct prepared *prepared) {
    pthread_mutex_lock(&stages->lock);
    stages->starved++;
    pthread_mutex_unlock(&stages->lock);
    let_go(stages, prepared);
    narrow_push(stages->narrow, prepared);
}

/* To the lanes, but for suspects, which run alone. */
static void push_ready(struct stages *stages, struct prepared *const *prepared, size_t count) {
    struct prepared *ready[FLOW_GROUP_MAX];
    size_t left = 0;
    for (size_t i = 0; i < count; i++) {
        if (prepared[i]->job->delivery->is_suspect) go_narrow(stages, prepared[i]);
        else ready[left++] = prepared[i];
    }
    ready_push(stages->ready, ready, left); /* closed only once preparation has ended */
}

void flow_plan(struct stages *stages, struct job *const *jobs, size_t count) {
    struct prepared *ready[FLOW_GROUP_MAX];
    size_t ready_count = 0;
    INVARIANT(count <= FLOW_GROUP_MAX, "a group of jobs is no larger than FLOW_GROUP_MAX");
    start_holding(stages, count); /* they may hold device memory from here until they are done */
    for (size_t i = 0; i < count; i++) {
        struct prepared *prepared = plan_and_prepare(stages, jobs[i]);
        if (prepared != NULL) ready[ready_count++] = prepared;
    }
    push_ready(stages, ready, ready_count);
}

/* What a preparer has in hand when it crashes, or hangs. */
void flow_on_begin(void *context, const struct job *job) {
    struct stages *stages = context;
    state_enter(stages->state, &job->delivery->position, job->retry_count + 1);
}

void flow_on_end(void *context) {
    struct stages *stages = context;
    state_leave(stages->state);
}

void flow_on_ready(void *context, struct prepared *prepared) {
    push_ready(context, &prepared, 1);
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
    struct error failure = *err;
    let_go(stages, prepared);
    refuse(stages, prepared->job, &failure);
}

/* Without key order the job ahead may have come to the queue of their key after this one, which
 * therefore leaves its place in it. */
void flow_on_waiting(void *context, struct prepared *prepared) {
    struct stages *stages = context;
    struct key_queue *key_queue = prepared->job->key_queue;
    stop_holding(stages, 1);
    if (stages->settings->ordering == ORDERING_KEY) return;
    prepared->job->key_queue = NULL;
    key_order_leave(stages->key_order, key_queue);
}

void flow_on_resumed(void *context) {
    start_holding(context, 1);
}

void flow_on_dropped(void *context, struct prepared *prepared) {
    flow_drop(context, prepared);
}

static void log_rarely(
    struct stages *stages, struct rare *rare, const char *what, const struct error *err) {
    pthread_mutex_lock(&stages->lock);
    uint64_t count = ++rare->count;
    bool is_due = clock_ns() >= rare->due_ns;
    if (is_due) rare->due_ns = clock_ns() + RARE_LOG_NS;
    pthread_mutex_unlock(&stages->lock);
    if (!is_due) return;
    log_error(LOG_WARN, what, err);
    log_line(LOG_WARN, "%s: %" PRIu64 " times since the start", what, count);
}

/* The job goes on: only those that name the digest alone may miss the payload, after a restart. */
void flow_on_not_stored(void *context, const struct error *err) {
    struct stages *stages = context;
    log_rarely(stages, &stages->not_stored, "a static was not stored", err);
}

/* The job goes on: the next that names the blob fetches it again. */
void flow_on_not_cached(void *context, const struct error *err) {
    struct stages *stages = context;
    log_rarely(stages, &stages->not_cached, "a blob was not kept in the cache", err);
}

static void log_batch(const struct job_telemetry *job) {
    const struct batch_telemetry *batch = &job->batch;
    if (batch->id == 0) return; /* it expired in the queue */
    log_line(LOG_DEBUG,
        "batch %" PRIu64 ": %" PRIu64 " jobs, %" PRIu64 " launches, stage %" PRIu64
        " ns, enqueue %" PRIu64 " ns, wait %" PRIu64 " ns",
        batch->id, batch->jobs, batch->launches, job->stage_ns, job->enqueue_ns, job->wait_ns);
}

/* The run of a job that holds nothing any more is over. NULL: nothing is to be pushed. */
static struct publication *conclude(
    struct stages *stages, struct job *job, const struct outcome *outcome) {
    if (outcome->code == ERR_OK) {
        refusals_note_success(&stages->refusals, job);
        return encode(stages, job, outcome);
    }
    struct outcome failed = *outcome;
    if (retries_take(stages->retries, job, &failed.err)) return NULL;
    failed.code = failed.err.code;
    log_error(LOG_DEBUG, "job failed", &failed.err);
    return encode(stages, job, &failed);
}

static void finish_some(struct stages *stages, const struct batch_item *items, size_t count) {
    struct publication *publications[FLOW_GROUP_MAX];
    for (size_t i = 0; i < count; i++)
        prepared_release(items[i].prepared, stages->statics, stages->residents);
    for (size_t i = 0; i < count; i++)
        publications[i] = conclude(stages, items[i].prepared->job, &items[i].outcome);
    publisher_push(stages->publisher, publications, count);
}

void flow_on_done(void *context, const struct batch_item *items, size_t count) {
    if (log_is_on(LOG_DEBUG)) log_batch(&items[0].outcome.telemetry);
    for (size_t i = 0; i < count; i += FLOW_GROUP_MAX)
        finish_some(context, items + i, count - i < FLOW_GROUP_MAX ? count - i : FLOW_GROUP_MAX);
}

void flow_on_released(void *context, size_t count) {
    stop_holding(context, count);
}

void flow_drop(struct stages *stages, struct prepared *prepared) {
    let_go(stages, prepared);
    abandon(stages, prepared->job);
}

void flow_on_lost(void *context, struct prepared **jobs, size_t count, const struct error *err) {
    struct stages *stages = context;
    stages_fail(stages, err);
    for (size_t i = 0; i < count; i++) flow_drop(stages, jobs[i]);
}

static void leave_narrow(struct stages *stages, struct prepared *prepared) {
    prepared_release(prepared, stages->statics, stages->residents);
    pthread_mutex_lock(&stages->lock);
    stages->starved--;
    wake_waiters(stages);
    pthread_mutex_unlock(&stages->lock);
}

void flow_on_narrow_done(void *context, struct prepared *prepared, const struct outcome *outcome) {
    struct stages *stages = context;
    leave_narrow(stages, prepared);
    struct publication *publication = conclude(stages, prepared->job, outcome);
    publisher_push(stages->publisher, &publication, 1);
}

void flow_on_narrow_refused(void *context, struct prepared *prepared, const struct error *err) {
    struct stages *stages = context;
    struct error failure = *err;
    leave_narrow(stages, prepared);
    /* Nobody else held anything, so another try would find no more room. */
    if (err_is_shortage(err->code) && !stages_has_failed(stages))
        flow_reject(stages, prepared->job, err);
    else refuse(stages, prepared->job, &failure);
}

void flow_on_encoded(void *context, const struct outcome *outcome) {
    account_job(((struct stages *)context)->counters, outcome->code, &outcome->telemetry);
}

void flow_on_not_stored_outputs(void *context, struct job *job, const struct outcome *outcome) {
    struct stages *stages = context;
    struct publication *publication = conclude(stages, job, outcome);
    publisher_push(stages->publisher, &publication, 1);
}

void flow_on_queued(void *context, struct key_queue *key_queue, bool is_suspect) {
    struct stages *stages = context;
    if (is_suspect) suspects_answered(stages->suspects);
    key_order_leave(stages->key_order, key_queue);
}

/* With the lock held. */
static void end_flight(struct stages *stages, uint64_t jobs, uint64_t bytes) {
    stages->in_flight -= jobs;
    stages->bytes_in_flight -= bytes;
    wake_waiters(stages);
}

void flow_hand_back(struct stages *stages, struct job *job) {
    while (job != NULL) {
        struct key_queue *key_queue = job->key_queue;
        if (job->delivery->is_suspect) suspects_handed_back(stages->suspects);
        pthread_mutex_lock(&stages->lock);
        end_flight(stages, 1, job->delivery->held_bytes);
        pthread_mutex_unlock(&stages->lock);
        flow_end_carrying(stages, job, true);
        job_destroy(job);
        job = key_order_take_next(stages->key_order, key_queue);
    }
}

void flow_on_published(void *context, const struct published *items, size_t count) {
    struct stages *stages = context;
    uint64_t bytes = 0, ok = 0, errors = 0, suspects = 0;
    for (size_t i = 0; i < count; i++) {
        bytes += items[i].delivery->held_bytes;
        suspects += items[i].delivery->is_suspect;
        if (items[i].is_dropped) continue;
        source_finish(stages->source, &items[i].delivery->position);
        counters_add_outcome(stages->counters, items[i].code);
        if (items[i].code != ERR_OK) errors++;
        else ok++;
    }
    pthread_mutex_lock(&stages->lock);
    suspects_published(stages->suspects, suspects);
    stages->summary.errors += errors;
    stages->summary.ok += ok;
    end_flight(stages, count, bytes);
    pthread_mutex_unlock(&stages->lock);
    state_count(stages->state, ok, errors);
}

void flow_on_publish_failed(void *context, const struct error *err) {
    stages_fail(context, err);
}
