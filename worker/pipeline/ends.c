#include "pipeline/ends.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/log_limit.h"
#include "batch/chunk.h"
#include "gpu/profile.h"
#include "job/trace.h"
#include "metrics/accounting.h"
#include "pipeline/job_fields.h"
#include "pipeline/retries.h"
#include "prepare/prepare.h"
#include "prepare/providers.h"
#include "quarantine/refusals.h"
#include "quarantine/suspects.h"
#include "trace/tracer.h"

/* --- what a job holds --- */

void ends_on_released(void *context, size_t count) {
    struct stages *stages = context;
    flight_release(&stages->flight, count);
}

void job_put_back(struct stages *stages, struct job *job) {
    job->has_started = false;
    source_put_back(stages->source, &job->delivery->position);
}

/* Under a lock of its own: the pool may have to ask the driver, who may take long. Where the GPU
 * was lost it refuses, and the memory ends with the process. */
static void release_block(struct stages *stages, struct pool *pool, struct pool_counters *counters,
    struct pool_block block) {
    struct error err;
    pthread_mutex_lock(&stages->rooms_lock);
    enum err code = device_bind(&stages->device, &err);
    if (code == ERR_OK)
        code =
            pool_release(pool, &counters[stages->settings->lanes + POOL_USER_ROOMS], &block, &err);
    pthread_mutex_unlock(&stages->rooms_lock);
    if (code != ERR_OK) stages_fail(stages, &err);
}

/* Between two visits nothing of a long job is on its way on the device. */
static void release_long_job(struct stages *stages, struct long_job *long_job) {
    const struct pool_block block = {long_job->address, long_job->bytes};
    long_job->address = long_job->bytes = 0;
    if (block.bytes > 0) release_block(stages, stages->device_pool, stages->device_counters, block);
    chunk_reset(long_job);
}

void job_release(struct stages *stages, struct job *job) {
    prepare_release(job, stages->statics, stages->residents);
    if (job->long_job != NULL) release_long_job(stages, job->long_job);
}

/* The result has left, or there is none; an array's room ends with its arena. */
static void give_back_room(struct stages *stages, struct job *job) {
    struct result_room *room = &job->room;
    if (room->pinned_bytes == 0) return;
    const struct pool_block block = {(uintptr_t)room->data, room->pinned_bytes};
    room->data = NULL;
    room->pinned_bytes = 0;
    release_block(stages, stages->pinned_pool, stages->pinned_counters, block);
    flight_end_room(&stages->flight);
}

/* Of a job in a batch the batch holds memory, until ends_on_released(); but what its result leaves
 * from is the job's. */
static void let_go(struct stages *stages, struct job *job) {
    job_release(stages, job);
    if (job->state == JOB_ON_DEVICE && job->room.pinned_bytes > 0)
        flight_begin_room(&stages->flight);
    if (job->count == COUNT_NONE) return;
    if (job->state == JOB_ON_DEVICE && job->count == COUNT_HOLDING) job->count = COUNT_NONE;
    else flight_count_jobs(&stages->flight, &job, 1, COUNT_NONE);
}

/* Jobs that waited for a static of this one go on, or learn that no job provides it. If this one
 * `is_left` unanswered, those of its partition are left, too. */
static void end_providing(struct stages *stages, struct job *job, bool is_left) {
    struct job *woken = providers_end(stages->providers, job, is_left);
    if (woken != NULL) prepare_wake(stages->prepare, woken);
}

/* --- what its outcome asks for --- */

static bool is_kept(const struct stages *stages, const struct job *job) {
    return source_keeps(stages->source, &job->delivery->position);
}

/* The job's static was to come with a job that is handed back, or may be: so this one is as well.
 * If their partition has come back since, that job has come again with it. */
static bool goes_with_its_provider(const struct stages *stages, const struct job *job) {
    return (job->is_left && !is_kept(stages, job)) || retries_are_over(stages->retries);
}

/* No other job held memory when this one found none: another try would fail in the same way. */
static bool can_never_fit(const struct stages *stages, const struct job *job) {
    return job->count == COUNT_WAITING_FOR_MEMORY && err_is_shortage(job->outcome.code) &&
           !stages_has_failed(stages);
}

static enum end judge(struct stages *stages, struct job *job) {
    enum err code = job->outcome.code;
    if (code == ERR_OK) return END_ANSWERED;
    if (code == ERR_REVOKED) return END_HANDED_BACK;
    if (err_is_sticky(code)) { /* it is not known which job lost the GPU */
        stages_fail(stages, &job->outcome.err);
        return END_ABANDONED;
    }
    if (code == ERR_STATIC_MISSING && stages_has_failed(stages)) return END_ABANDONED;
    if (code == ERR_STATIC_MISSING && goes_with_its_provider(stages, job)) return END_HANDED_BACK;
    if (!can_never_fit(stages, job) && retries_want(stages->retries, job)) return END_RETRIED;
    return END_ANSWERED;
}

/* --- unanswered --- */

static void destroy(struct stages *stages, struct job *job) {
    end_providing(stages, job, true);
    give_back_room(stages, job);
    flight_end(&stages->flight, 1, job->delivery->held_bytes);
    job_destroy(job);
}

/* If it has started it stays so: its partition is not handed over as if nothing had happened. */
static void abandon(struct stages *stages, struct job *job) {
    struct key_queue *key_queue = job->key_queue;
    destroy(stages, job);
    key_order_leave(stages->key_order, key_queue);
}

static void hand_back(struct stages *stages, struct job *job) {
    flight_note_complete(&stages->flight, false);
    job_put_back(stages, job);
    bool was_kept = is_kept(stages, job);
    do {
        struct key_queue *key_queue = job->key_queue;
        if (job->delivery->is_suspect) suspects_handed_back(stages->suspects);
        destroy(stages, job);
        job = key_order_take_next(stages->key_order, key_queue);
    } while (job != NULL && is_kept(stages, job) == was_kept);
    /* The partition has come back since, and this job with it. */
    if (job != NULL) key_order_pass(stages->key_order, job);
}

/* --- answers --- */

static void log_dead_letter(const struct job *job) {
    static struct log_limit limit = LOG_LIMIT_OF_SENDERS;
    const struct position *position = &job->delivery->position;
    uint64_t left_out;
    if (!log_limit_take(&limit, clock_ns(), &left_out)) return;
    if (left_out > 0) log_line(LOG_WARN, "%" PRIu64 " more dead letters, without a line", left_out);
    const struct log_fields fields = job_fields(job, "dead_letter");
    log_event(LOG_WARN, &fields, "dead letter: %s/%" PRId32 "/%" PRId64 ": %s: %s", position->topic,
        position->partition, position->offset, err_code(job->outcome.code),
        job->outcome.err.message);
}

/* Shows, with log_batch(), the same stages as a profiler. */
static void log_answer(const struct job *job, uint64_t publish_ns) {
    const struct position *position = &job->delivery->position;
    const struct job_telemetry *telemetry = &job->outcome.telemetry;
    const struct log_fields fields = job_fields(job, "job_answered");
    log_event(LOG_DEBUG, &fields,
        "job %s/%" PRId32 "/%" PRId64 ": batch %" PRIu64 ", decode %" PRIu64 " ns, publish %" PRIu64
        " ns",
        position->topic, position->partition, position->offset, telemetry->batch.id,
        telemetry->decode_ns, publish_ns);
}

static void log_failure(const struct job *job) {
    if (!log_is_on(LOG_DEBUG)) return;
    const struct log_fields fields = job_fields(job, "job_failed");
    log_error_event(LOG_DEBUG, &fields, "job failed", &job->outcome.err);
}

/* One that is loaded: what a message alone names is no name for counts. */
static const char *program_of(const struct job *job) {
    bool is_known = job->plan != NULL && job->plan->launch_count > 0;
    return is_known ? job->plan->launches[0].program->name : "";
}

/* Some instances of an array ended executors: that counts once. The intake takes nothing beside a
 * suspect, so that it does not count meanwhile. */
static void note_conviction(struct stages *stages, const struct job *job) {
    if (refusals_note_conviction(&stages->refusals, job->delivery, job))
        ledger_note_conviction(&stages->board->ledger, job->outcome.code);
    log_failure(job);
}

/* True where the answer is to be pushed; else the job is over, or its outputs are under way. */
static bool answer(struct stages *stages, struct job *job) {
    struct error err;
    bool is_encoded;
    if (job->outcome.code == ERR_OK) refusals_note_success(&stages->refusals, job);
    else if (job->outcome.code == ERR_INSTANCES_FAILED) note_conviction(stages, job);
    else if (job->id.size == 0) log_dead_letter(job);
    else log_failure(job);
    end_providing(stages, job, false);
    job->counted_as = program_of(job);
    if (job->trace != NULL) job->trace->ended_ns = clock_ns();
    uint64_t start_ns = log_is_on(LOG_DEBUG) ? clock_ns() : 0;
    profile_push("publish");
    enum err code = publisher_encode(stages->publisher, job, &is_encoded, &err);
    profile_pop();
    if (start_ns != 0 && is_encoded) log_answer(job, clock_ns() - start_ns);
    if (code == ERR_OK) return is_encoded;
    stages_fail(stages, &err);
    abandon(stages, job);
    return false;
}

/* --- the way out --- */

/* Answers are given by the owner of the message alone. An array's slices started for it. */
static bool may_answer(struct stages *stages, const struct job *job) {
    return job->has_started || source_start(stages->source, &job->delivery->position);
}

static void let_go_of_outputs(struct stages *stages, struct job *job) {
    spools_end(job->spools, job->output_count);
    give_back_room(stages, job);
}

/* True where the caller is to push the answer. */
static bool end(struct stages *stages, struct job *job, enum end how) {
    let_go(stages, job);
    if (how == END_ANSWERED && !may_answer(stages, job)) how = END_HANDED_BACK;
    if (how == END_RETRIED) job_put_back(stages, job);
    if (how != END_ANSWERED || !outcome_has_outputs(&job->outcome)) let_go_of_outputs(stages, job);
    enum err code = job->outcome.code;
    if (how == END_RETRIED && !retries_add(stages->retries, job)) how = END_HANDED_BACK;
    else if (how == END_RETRIED) ledger_note_retry(&stages->board->ledger, code);
    if (how == END_ANSWERED) return answer(stages, job);
    if (how == END_HANDED_BACK) hand_back(stages, job);
    if (how == END_ABANDONED) abandon(stages, job);
    return false;
}

void job_end(struct stages *stages, struct job *job, enum end how) {
    if (end(stages, job, how)) publisher_push(stages->publisher, &job, 1);
}

void jobs_end(struct stages *stages, struct job *const *jobs, size_t count) {
    struct job *encoded[STAGES_GROUP_MAX];
    size_t encoded_count = 0;
    for (size_t i = 0; i < count; i++) {
        if (end(stages, jobs[i], judge(stages, jobs[i]))) encoded[encoded_count++] = jobs[i];
        if (encoded_count < STAGES_GROUP_MAX && i + 1 < count) continue;
        publisher_push(stages->publisher, encoded, encoded_count);
        encoded_count = 0;
    }
}

static void set_failure(struct job *job, const struct error *err) {
    job->outcome = (struct outcome){.code = err->code, .err = *err};
    job->outcome.telemetry.decode_ns = job->decode_ns;
    job->outcome.telemetry.wall_ns = clock_ns() - job->delivery->received_ns;
}

void job_fail(struct stages *stages, struct job *job, const struct error *err) {
    set_failure(job, err);
    jobs_end(stages, &job, 1);
}

void job_reject(struct stages *stages, struct job *job, const struct error *err) {
    set_failure(job, err);
    job_end(stages, job, END_ANSWERED);
}

/* --- what the stages call --- */

void ends_on_encoded(void *context, const struct job *job) {
    struct stages *stages = context;
    account_job(&stages->board->counters, job->outcome.code, &job->outcome.telemetry);
}

void ends_on_not_uploaded(void *context, struct job *job) {
    jobs_end(context, &job, 1);
}

void ends_on_queued(void *context, struct key_queue *key_queue, bool is_suspect) {
    struct stages *stages = context;
    if (is_suspect) suspects_answered(stages->suspects);
    key_order_leave(stages->key_order, key_queue);
}

void ends_on_published(void *context, struct job *const *jobs, size_t count) {
    struct stages *stages = context;
    uint64_t now_ns = clock_ns(), bytes = 0, ok = 0, errors = 0, suspects = 0;
    for (size_t i = 0; i < count; i++) {
        struct job *job = jobs[i];
        bytes += job->delivery->held_bytes;
        give_back_room(stages, job);
        if (!job->is_lost) suspects += job->delivery->is_suspect;
        if (job->is_lost || job->is_dropped) continue;
        source_finish(stages->source, &job->delivery->position);
        account_answer(stages->board, job, job->counted_as, now_ns);
        if (job->trace != NULL) tracer_end(stages->tracer, job, job->counted_as, now_ns);
        if (job->outcome.code != ERR_OK) errors++;
        else ok++;
    }
    suspects_published(stages->suspects, suspects);
    flight_tally(&stages->flight, ok, errors);
    flight_end(&stages->flight, count, bytes);
    state_count(stages->state, ok, errors);
    jobs_destroy(jobs, count);
}

void ends_on_dropped(void *context, struct job *job) {
    job_end(context, job, END_ABANDONED);
}

void ends_on_lost(void *context, struct job *job, const struct error *err) {
    struct stages *stages = context;
    stages_fail(stages, err);
    flight_count_jobs(
        &stages->flight, &job, 1, COUNT_NONE); /* its batch is not released any more */
    job_end(stages, job, END_ABANDONED);
}
