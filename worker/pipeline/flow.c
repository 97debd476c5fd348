#include "pipeline/flow.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/invariant.h"
#include "base/log_limit.h"
#include "pipeline/control.h"
#include "pipeline/ends.h"
#include "pipeline/serial.h"
#include "publish/feed.h"
#include "quarantine/refusals.h"
#include "trace/tracer.h"

/* Smaller outputs are copied out of the pinned memory that they came to. That takes a few
 * microseconds, and the memory is free at once; else a result keeps it until it is acknowledged. */
enum { ROOM_OUTPUT_BYTES_MIN = 256 << 10 };

/* A worker that stops starts nothing more: what waits is left to the next owner of its message. */
static bool is_stopping(const struct stages *stages) {
    /* relaxed: it orders nothing; the job that starts this moment is only finished */
    return atomic_load_explicit(&stages->hands_back, memory_order_relaxed);
}

static enum err leave_to_others(struct error *err) {
    return error_set(err, ERR_REVOKED, 0, "nothing needs to be done: it is read again",
        "the job was left to another worker before it had ended");
}

/* In seconds, or from now on, it lies in the first year; a wait did not make it pass. */
static enum err refuse_late(uint64_t deadline_ms, uint64_t now_ms, struct error *err) {
    const uint64_t year_ms = 365ull * 24 * 3600 * 1000;
    if (deadline_ms < year_ms)
        return error_set(err, ERR_DEADLINE_EXCEEDED, 0,
            "send milliseconds since 1970: a time in seconds times 1000",
            "deadline_ms %" PRIu64 " is in 1970, if it is in milliseconds", deadline_ms);
    return error_set(err, ERR_DEADLINE_EXCEEDED, 0, "send it with a later deadline, or add workers",
        "the job was still waiting %" PRIu64 " ms after its deadline", now_ms - deadline_ms);
}

static bool has_begun(const struct job *job) {
    return job->long_job != NULL && job->long_job->is_on_device;
}

static enum err check_wanted(
    const struct stages *stages, const struct job *job, struct error *err) {
    enum control_action action = control_find(stages->control, job->id);
    if (action == CONTROL_CANCEL || (action == CONTROL_STOP && !has_begun(job)))
        return error_set(err, ERR_CANCELLED, 0,
            "send it again under another id, or after cancels.ttl_ms", "the job was cancelled %s",
            has_begun(job) ? "while it ran" : "before it ran");
    uint64_t deadline_ms = job->deadline_unix_ms;
    if (deadline_ms == 0 || has_begun(job)) return refusals_check(&stages->refusals, job, err);
    uint64_t now_ms = clock_unix_ms();
    if (now_ms <= deadline_ms) return refusals_check(&stages->refusals, job, err);
    return refuse_late(deadline_ms, now_ms, err);
}

enum err flow_still_wanted(void *context, const struct job *job, struct error *err) {
    const struct stages *stages = context;
    bool is_left = is_stopping(stages) || !source_keeps(stages->source, &job->delivery->position);
    return is_left ? leave_to_others(err) : check_wanted(stages, job, err);
}

enum err flow_start(void *context, struct job *job, struct error *err) {
    const struct stages *stages = context;
    const struct position *position = &job->delivery->position;
    /* What has started is left whole: an array between slices, a long job between chunks. */
    bool is_part = job->array != NULL || job->long_job != NULL;
    bool is_left = is_stopping(stages) || (is_part && !source_keeps(stages->source, position)) ||
                   !source_start(stages->source, position);
    if (is_left) return leave_to_others(err);
    job->has_started = true;
    if (has_begun(job) && control_find(stages->control, job->id) == CONTROL_STOP)
        job->long_job->is_stopped = true;
    return check_wanted(stages, job, err);
}

/* --- to the lanes --- */

static void go_serial(struct stages *stages, struct job *job) {
    job_put_back(stages, job);
    job_release(stages, job);
    spools_end(job->spools, job->output_count);
    if (job->state == JOB_PREPARING) job_move(job, JOB_READY);
    flight_count_jobs(&stages->flight, &job, 1, COUNT_WAITING_FOR_MEMORY);
    serial_push(stages->serial, job);
}

/* To the lanes, but for suspects, which run alone. */
static void push_ready(struct stages *stages, struct job *const *jobs, size_t count) {
    struct job *ready[STAGES_GROUP_MAX];
    size_t left = 0;
    for (size_t i = 0; i < count; i++) {
        if (jobs[i]->delivery->is_suspect) go_serial(stages, jobs[i]);
        else ready[left++] = jobs[i];
    }
    ready_push(stages->ready, ready, left); /* closed only once preparation has ended */
}

/* An array that is a suspect may have instances to name. */
static size_t result_bytes_max(
    const struct stages *stages, const struct job *job, const struct plan *plan) {
    bool may_fail_partly = job->instances > 0 && job->delivery->is_suspect;
    return plan->result_bytes_max +
           (may_fail_partly ? message_failed_bytes(stages->settings->limits.convictions_per_job)
                            : 0);
}

/* Whether the result leaves from the pinned memory that the outputs of a large job come to. Not
 * where kernels of another tenant, which can read it there, may run before it has left. */
static bool has_room(const struct stages *stages, const struct plan *plan) {
    return stages->tenancy == NULL && plan->d2h_bytes >= ROOM_OUTPUT_BYTES_MIN &&
           batch_is_large(plan, stages->settings->lane_slab_bytes);
}

/* The job if it may run at once; NULL: it is on its way elsewhere. */
static struct job *plan_and_prepare(struct stages *stages, struct job *job) {
    struct error err;
    const struct plan *plan;
    struct job *ready = NULL;
    enum err code = flow_still_wanted(stages, job, &err);
    if (code == ERR_OK && job->plan != NULL) return prepare_resubmit(stages->prepare, job);
    const struct edition *edition = edition_of(job);
    if (code == ERR_OK) code = plan_job(job, edition->registry, &edition->plan_limits, &plan, &err);
    if (code == ERR_OK && job->result == NULL)
        code = publisher_reserve(
            job, plan, result_bytes_max(stages, job, plan), has_room(stages, plan), &err);
    if (code == ERR_OK)
        code = prepare_submit(stages->prepare, job, plan, edition->modules, &ready, &err);
    if (code != ERR_OK) job_fail(stages, job, &err);
    return ready;
}

void flow_plan(struct stages *stages, struct job *const *jobs, size_t count) {
    struct job *ready[STAGES_GROUP_MAX];
    size_t ready_count = 0;
    INVARIANT(count <= STAGES_GROUP_MAX, "a group of jobs is no larger than STAGES_GROUP_MAX");
    flight_count_jobs(&stages->flight, jobs, count, COUNT_HOLDING); /* from here on they may */
    for (size_t i = 0; i < count; i++) {
        struct job *job = plan_and_prepare(stages, jobs[i]);
        if (job != NULL) ready[ready_count++] = job;
    }
    push_ready(stages, ready, ready_count);
}

/* --- what the stages call --- */

void flow_on_begin(void *context, const struct job *job) {
    struct stages *stages = context;
    state_enter(stages->state, &job->delivery->position, job->retry_count + 1);
}

void flow_on_end(void *context) {
    struct stages *stages = context;
    state_leave(stages->state);
}

/* Without key order the job ahead may have come to the queue of their key after this one, which
 * therefore leaves its place in it. */
void flow_on_waiting(void *context, struct job *job) {
    struct stages *stages = context;
    struct key_queue *key_queue = job->key_queue;
    flight_count_jobs(&stages->flight, &job, 1, COUNT_NONE);
    if (stages->settings->ordering == ORDERING_KEY) return;
    job->key_queue = NULL;
    key_order_leave(stages->key_order, key_queue);
}

void flow_on_resumed(void *context, struct job *job) {
    struct stages *stages = context;
    flight_count_jobs(&stages->flight, &job, 1, COUNT_HOLDING);
}

void flow_on_ready(void *context, struct job *job) {
    push_ready(context, &job, 1);
}

void flow_on_memory_short(void *context, struct job *job, const struct error *err) {
    go_serial(context, job);
}

void flow_on_failed(void *context, struct job *job, const struct error *err) {
    if (err_is_shortage(err->code) && job->count != COUNT_WAITING_FOR_MEMORY)
        go_serial(context, job);
    else job_fail(context, job, err);
}

static void log_batch(const struct job *job) {
    const struct job_telemetry *telemetry = &job->outcome.telemetry;
    const struct batch_telemetry *batch = &telemetry->batch;
    log_event(LOG_DEBUG, LOG_EVENT("batch"),
        "batch %" PRIu64 ": %" PRIu64 " jobs, %" PRIu64 " launches, stage %" PRIu64
        " ns, enqueue %" PRIu64 " ns, wait %" PRIu64 " ns",
        batch->id, batch->jobs, batch->launches, telemetry->stage_ns, telemetry->enqueue_ns,
        telemetry->wait_ns);
}

void flow_on_done(void *context, struct job *const *jobs, size_t count) {
    const struct stages *stages = context;
    if (log_is_on(LOG_DEBUG)) log_batch(jobs[0]);
    if (stages->tracer != NULL) tracer_note_batch(stages->tracer, jobs, count);
    jobs_end(context, jobs, count);
}

void flow_on_progress(void *context, const struct job *job) {
    const struct stages *stages = context;
    if (stages->feed != NULL) feed_show(stages->feed, job);
}

static void log_rarely(struct log_limit *limit, const char *what, const struct error *err) {
    uint64_t left_out;
    if (!log_limit_take(limit, clock_ns(), &left_out)) return;
    log_error(LOG_WARN, what, err);
    if (left_out > 0) log_line(LOG_WARN, "%s: %" PRIu64 " more times before", what, left_out);
}

/* The job goes on: only those that name the digest alone may miss the payload, after a restart. */
void flow_on_not_stored(void *context, const struct error *err) {
    static struct log_limit limit = LOG_LIMIT_ONCE_A_MINUTE;
    log_rarely(&limit, "a static was not stored", err);
}

/* The job goes on: the next that names the blob fetches it again. */
void flow_on_not_cached(void *context, const struct error *err) {
    static struct log_limit limit = LOG_LIMIT_ONCE_A_MINUTE;
    log_rarely(&limit, "a blob was not kept in the cache", err);
}

void flow_on_not_shown(const struct error *err) {
    static struct log_limit limit = LOG_LIMIT_ONCE_A_MINUTE;
    log_rarely(&limit, "what long jobs show could not be published", err);
}

void flow_on_publish_failed(void *context, const struct error *err) {
    stages_fail(context, err);
}
