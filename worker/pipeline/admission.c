#include "pipeline/admission.h"

#include <stdlib.h>

#include "base/crew.h"
#include "base/invariant.h"
#include "base/queue.h"
#include "decode/decode.h"
#include "gpu/profile.h"
#include "pipeline/ends.h"
#include "pipeline/flow.h"
#include "pipeline/ordering.h"
#include "prepare/providers.h"
#include "quarantine/refusals.h"
#include "quarantine/suspects.h"
#include "trace/tracer.h"

enum {
    SHARED_COUNT_MIN = 8,         /* fewer are admitted sooner than another thread wakes up, */
    SHARED_BYTES_MIN = 256 << 10, /* unless there is much to copy */
    WAITING_COUNT_MIN = STAGES_GROUP_MAX,
    WAITING_COUNT_MAX = 4 * STAGES_GROUP_MAX,
    HELPED_COUNT_MAX = 8,
    THREADS_MAX = 64 /* as the setting's range says */
};
_Static_assert((int)STAGES_GROUP_MAX <= (int)JOBS_GROUP_MAX, "a group is created at once");
_Static_assert(
    WAITING_COUNT_MAX + (READY_LANES_MAX + THREADS_MAX) * READY_CLAIM_MAX + STAGES_GROUP_MAX <=
        PROVIDERS_UNDECODED_MAX,
    "messages that were numbered and not decoded");

struct admission {
    struct stages *stages;
    struct queue *waiting; /* of struct delivery: offered to the lanes and the crew */
    struct crew *crew;
    bool has_offered; /* and they may not have been claimed yet; the intake's */
};

/* ---- one message ---- */

static bool is_allowed_reply_to(const struct settings *settings, struct slice topic) {
    for (size_t i = 0; i < settings->topics.reply_to.count; i++)
        if (slice_is_text(topic, settings->topics.reply_to.items[i])) return true;
    return false;
}

/* A job may name only topics that the configuration lists; its error goes to the usual one. */
static enum err check_reply_to(struct job *job, struct error *err) {
    struct slice topic = job->reply_to;
    if (topic.size == 0 || is_allowed_reply_to(&edition_of(job)->settings, topic)) return ERR_OK;
    job->reply_to = (struct slice){0};
    return error_set(err, ERR_REPLY_TO_FORBIDDEN, 0, "add the topic to topics.reply_to, or drop it",
        "reply_to '%.*s' is not a topic that this worker may answer to", SLICE_TEXT(topic));
}

/* Returns how many became jobs. For the others memory is short, which fails the run: they are
 * dropped. */
static size_t take(
    struct stages *stages, struct delivery *const *deliveries, size_t count, struct job **ret) {
    struct error err;
    struct edition *edition = editions_take(stages->editions, count);
    size_t taken = jobs_create(deliveries, count, ret);
    for (size_t i = 0; i < taken; i++) ret[i]->edition = &edition->shared;
    if (taken == count) return taken;
    shared_release_many(&edition->shared, count - taken);
    error_set(&err, ERR_NO_MEMORY, 0, "lower limits.bytes_in_flight",
        "no memory for a job and its message of %zu bytes", deliveries[taken]->payload.size);
    stages_fail(stages, &err);
    for (size_t i = taken; i < count; i++) stages_drop(stages, deliveries[i]);
    return taken;
}

static void note_conviction(
    struct stages *stages, const struct delivery *delivery, const struct job *job, enum err code) {
    if (refusals_note_conviction(&stages->refusals, delivery, job))
        ledger_note_conviction(&stages->board->ledger, code);
}

/* Decodes, unless that is known to cost an executor its life; as decode_job(). */
static enum err decode(struct stages *stages, struct job *job, struct error *err) {
    const struct delivery *delivery = job->delivery;
    struct error verdict_error;
    enum verdict verdict = suspects_verdict(stages->suspects, &delivery->position, &verdict_error);
    if (verdict == VERDICT_UNDECODABLE) {
        note_conviction(stages, delivery, NULL, verdict_error.code);
        *err = verdict_error;
        return err->code;
    }
    profile_push("decode");
    state_enter(stages->state, &delivery->position, 1);
    enum err code = decode_job(job, &edition_of(job)->decode_limits, err);
    if (stages->tracer != NULL) tracer_begin(stages->tracer, job);
    state_leave(stages->state);
    profile_pop();
    if (job->id.size == 0) return code;
    suspects_decoded(stages->suspects, delivery);
    if (verdict == VERDICT_GUILTY)
        note_conviction(stages, delivery, code == ERR_OK ? job : NULL, verdict_error.code);
    struct error reply_to_error;
    enum err reply_to_code = check_reply_to(job, &reply_to_error);
    if (code == ERR_OK && verdict == VERDICT_GUILTY) *err = verdict_error;
    else if (code == ERR_OK && reply_to_code != ERR_OK) *err = reply_to_error;
    else return code;
    return err->code;
}

/* Decodes the message. False: what is wrong with it was answered, or the run has failed. */
static bool admit(struct stages *stages, struct job *job) {
    struct error err;
    if (decode(stages, job, &err) != ERR_OK) {
        job_reject(stages, job, &err);
        return false;
    }
    job_move(job, JOB_DECODED);
    providers_add(stages->providers, job);
    return true;
}

/* The host memory that its result takes, while it waits, and what the decoded job itself takes,
 * with the copy of the key that its line may keep. */
static size_t bytes_of_job(const struct job *job) {
    size_t bytes = PLAN_RESULT_OVERHEAD_BYTES + JOB_BYTES + job->arena.reserved;
    bytes += job->delivery->key.size;
    if (job->instances > 0) bytes += PLAN_RESULT_OVERHEAD_BYTES; /* before its outputs */
    for (size_t k = 0; k < job->output_count; k++) bytes += job_output_bytes(job, k);
    return bytes;
}

/* Results count from now on, instead of what was reserved when the messages were taken. */
static void hold_results(struct stages *stages, struct job *const *jobs, size_t count) {
    uint64_t held = 0, reserved = 0, largest = PLAN_RESULT_OVERHEAD_BYTES; /* of an error */
    for (size_t i = 0; i < count; i++) {
        struct delivery *delivery = jobs[i]->delivery;
        size_t bytes = bytes_of_job(jobs[i]);
        held += bytes;
        reserved += delivery->reserved_bytes;
        delivery->held_bytes += bytes - delivery->reserved_bytes;
        delivery->reserved_bytes = 0;
        if (bytes > largest) largest = bytes;
    }
    flight_decoded(&stages->flight, held, reserved, largest);
}

/* ---- several ---- */

static void admit_all(struct stages *stages, struct delivery *const *deliveries, size_t count) {
    struct job *jobs[STAGES_GROUP_MAX];
    uint64_t numbers[STAGES_GROUP_MAX] = {0};
    size_t job_count = 0;
    INVARIANT(count <= STAGES_GROUP_MAX, "a group of messages is no larger than STAGES_GROUP_MAX");
    for (size_t i = 0; i < count; i++) numbers[i] = deliveries[i]->number;
    size_t taken = take(stages, deliveries, count, jobs);
    for (size_t i = 0; i < taken; i++)
        if (admit(stages, jobs[i])) jobs[job_count++] = jobs[i];
    /* Before any is planned: it may wait until those ahead are decoded, on other threads too. */
    providers_decoded(stages->providers, numbers, count);
    hold_results(stages, jobs, job_count);
    size_t passed_count = 0; /* the others wait for jobs of their key */
    for (size_t i = 0; i < job_count; i++)
        if (ordering_enter(stages, jobs[i])) jobs[passed_count++] = jobs[i];
    flow_plan(stages, jobs, passed_count);
}

/* Dropped messages get no answer, and are read again. */
static void drop(struct stages *stages, struct delivery *const *deliveries, size_t count) {
    uint64_t numbers[STAGES_GROUP_MAX];
    for (size_t i = 0; i < count; i++) {
        numbers[i] = deliveries[i]->number;
        stages_drop(stages, deliveries[i]);
    }
    providers_decoded(stages->providers, numbers, count);
}

/* Claimed messages, the oldest that wait. Exactly so many are there: a message is pushed before it
 * is offered, and claimed once. */
static void admit_claimed(struct admission *admission, size_t count) {
    void *claimed[READY_CLAIM_MAX];
    size_t popped = queue_pop(admission->waiting, claimed, count, 0);
    INVARIANT(popped == count, "what is claimed was offered");
    struct delivery *const *deliveries = (struct delivery *const *)claimed;
    if (stages_has_failed(admission->stages)) drop(admission->stages, deliveries, count);
    else admit_all(admission->stages, deliveries, count);
    ready_admitted(admission->stages->ready, count);
}

void admission_admit(void *context, size_t count) {
    struct stages *stages = context;
    admit_claimed(stages->admission, count);
}

static void run_admission(void *context, uint32_t index) {
    struct admission *admission = context;
    struct stages *stages = admission->stages;
    struct error err;
    size_t count;
    if (device_bind(&stages->device, &err) != ERR_OK) stages_fail(stages, &err);
    while ((count = ready_wait_for_messages(stages->ready)) > 0) admit_claimed(admission, count);
}

void admission_help(struct admission *admission) {
    size_t count;
    admission->has_offered = false;
    while ((count = ready_claim(admission->stages->ready, READY_CLAIM_MAX)) > 0)
        admit_claimed(admission, count);
}

static uint64_t bytes_of(struct delivery *const *deliveries, size_t count) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += deliveries[i]->held_bytes - deliveries[i]->reserved_bytes;
    return bytes;
}

bool admission_is_due(const struct admission *admission) {
    return admission->has_offered;
}

/* How many messages may wait. What they will hold is not known yet, and not counted: so few, as
 * long as there are not many others in flight. */
static size_t waiting_max(struct stages *stages) {
    uint64_t share = flight_messages(&stages->flight) / 4;
    if (share < WAITING_COUNT_MIN) return WAITING_COUNT_MIN;
    return share < WAITING_COUNT_MAX ? (size_t)share : WAITING_COUNT_MAX;
}

/* The lanes and the crew admit these. Where too many wait, all of them have other things to do:
 * then this thread admits some. But a few at a time, since meanwhile it brings no more, and they
 * would have none. */
static void offer(
    struct admission *admission, struct delivery *const *deliveries, size_t count, uint64_t bytes) {
    struct ready *ready = admission->stages->ready;
    size_t most = waiting_max(admission->stages);
    queue_must_push_all(admission->waiting, (void *const *)deliveries, count);
    admission->has_offered = true;
    size_t waiting = ready_offer(ready, count, bytes), claimed;
    for (; waiting > most && (claimed = ready_claim(ready, HELPED_COUNT_MAX)) > 0;
         waiting -= claimed)
        admit_claimed(admission, claimed);
}

void admission_take(struct admission *admission, struct delivery *const *deliveries, size_t count) {
    struct stages *stages = admission->stages;
    for (size_t i = 0; i < count; i++) providers_number(stages->providers, deliveries[i]);
    bool is_in_order =
        stages->settings->ordering == ORDERING_KEY || suspects_are_known(stages->suspects);
    uint64_t bytes = bytes_of(deliveries, count);
    if (!is_in_order && (count >= SHARED_COUNT_MIN || bytes >= SHARED_BYTES_MIN)) {
        offer(admission, deliveries, count, bytes);
        return;
    }
    admission_help(admission); /* older ones first: these may wait for what they bring */
    bool has_lane = count < SHARED_COUNT_MIN && lanes_borrow(stages->lanes);
    admit_all(stages, deliveries, count);
    if (has_lane) lanes_run_borrowed(stages->lanes);
}

enum err admission_start(struct stages *stages, struct admission **ret, struct error *err) {
    const struct settings *settings = stages->settings;
    uint32_t threads = settings->ordering == ORDERING_KEY ? 0 : settings->admission.threads;
    struct admission *admission = calloc(1, sizeof *admission);
    if (admission != NULL) admission->waiting = queue_create(PROVIDERS_UNDECODED_MAX);
    if (admission == NULL || admission->waiting == NULL) {
        free(admission);
        return error_no_memory(err, "no memory for the queue of messages that came");
    }
    admission->stages = stages;
    const struct crew_options crew = {
        .name = "admission", .count = threads, .run = run_admission, .context = admission};
    *ret = admission;
    return crew_start(&crew, &admission->crew, err);
}

void admission_finish(struct admission *admission) {
    if (admission == NULL) return;
    admission_help(admission);
    ready_close_offers(admission->stages->ready);
    crew_join(&admission->crew);
}

void admission_destroy(struct admission *admission) {
    if (admission == NULL) return;
    queue_destroy(admission->waiting);
    free(admission);
}
