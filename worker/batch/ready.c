#include "batch/ready.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/invariant.h"
#include "base/pulse.h"
#include "base/wakeup.h"
#include "batch/ready_policy.h"

struct ready {
    struct ready_policy policy;
    pthread_mutex_t lock; /* guards it, but for its durations, and what follows */
    struct wakeup has_jobs;
    pthread_cond_t has_messages; /* for admission threads */
    pthread_cond_t all_admitted; /* for ready_close_offers() */
    uint32_t lanes_waiting;
    bool has_closed_offers;
    bool is_closed;
    bool is_waking; /* a lane was signalled, or is lent, and has not arrived yet */
    enum { LENT_NO, LENT_OUT, LENT_BACK_BUSY } lending; /* of READY_LENT_LANE */
    size_t offered;                                     /* messages that wait to be admitted */
    uint64_t offered_bytes;
    size_t admitting; /* messages: claimed, and not admitted yet */
};

struct ready *ready_create(const struct ready_options *options) {
    INVARIANT(options->lanes <= READY_LANES_MAX, "the settings allow no more lanes");
    struct ready *ready = calloc(1, sizeof *ready);
    if (ready == NULL) return NULL;
    ready_policy_init(&ready->policy, options);
    pthread_mutex_init(&ready->lock, NULL);
    wakeup_init(&ready->has_jobs, options->spins);
    pthread_cond_init(&ready->has_messages, NULL);
    pthread_cond_init(&ready->all_admitted, NULL);
    return ready;
}

void ready_destroy(struct ready *ready) {
    if (ready == NULL) return;
    pthread_cond_destroy(&ready->all_admitted);
    pthread_cond_destroy(&ready->has_messages);
    wakeup_fini(&ready->has_jobs);
    pthread_mutex_destroy(&ready->lock);
    ready_policy_fini(&ready->policy);
    free(ready);
}

/* --- lanes --- */

static void wake_a_lane(struct ready *ready) {
    if (ready->is_waking) return;
    ready->is_waking = true;
    wakeup_signal(&ready->has_jobs);
}

/* Wakes a thread that admits messages: a waiting lane, which can then run the jobs, or else an
 * admission thread. */
static void wake_for_messages(struct ready *ready) {
    if (ready->offered == 0) return;
    if (ready->lanes_waiting > (ready->lending == LENT_OUT)) wake_a_lane(ready);
    else pthread_cond_signal(&ready->has_messages);
}

/* `most`, or as many as together have READY_CLAIM_BYTES_MAX, at least one. Each counts as large as
 * they are on average. */
static size_t claim(struct ready *ready, size_t most) {
    if (ready->offered == 0) return 0;
    uint64_t each = ready->offered_bytes / ready->offered;
    size_t count = ready->offered < most ? ready->offered : most;
    if (count * each > READY_CLAIM_BYTES_MAX) count = READY_CLAIM_BYTES_MAX / each;
    if (count == 0) count = 1;
    ready->offered -= count;
    ready->offered_bytes -= count * each;
    ready->admitting += count;
    return count;
}

static void wait_for_work(struct ready *ready) {
    uint64_t until_ns =
        ready_policy_may_come_due(&ready->policy) ? clock_ns_in(READY_FIRST_MS) : UINT64_MAX;
    ready->lanes_waiting++;
    wakeup_wait_until(&ready->has_jobs, &ready->lock, until_ns);
    ready->lanes_waiting--;
}

/* While its lane is lent, a thread waits, and passes on what it is woken for. True: the lane comes
 * back with a batch in flight. */
static bool wait_for_own_lane(struct ready *ready, uint32_t lane) {
    if (lane != READY_LENT_LANE) return false;
    while (ready->lending == LENT_OUT) {
        if (ready->offered > 0 || ready_policy_has_work(&ready->policy))
            wakeup_signal(&ready->has_jobs);
        wait_for_work(ready);
    }
    bool is_busy = ready->lending == LENT_BACK_BUSY;
    ready->lending = LENT_NO;
    return is_busy;
}

struct ready_batch ready_take(struct ready *ready, uint32_t lane, bool is_busy, struct job **jobs) {
    struct ready_batch batch = {.count = 0};
    pulse_idle();
    pthread_mutex_lock(&ready->lock);
    ready_policy_note_lane(&ready->policy, lane, is_busy);
    for (;;) {
        if (wait_for_own_lane(ready, lane)) break;
        ready->is_waking = false;
        bool may_claim = !ready->policy.slow_lanes[lane].is_taken;
        if (may_claim && !ready_policy_has_full_batch(&ready->policy))
            batch.claimed = claim(ready, READY_CLAIM_MAX);
        if (batch.claimed == 0)
            batch =
                ready_policy_take(&ready->policy, lane, is_busy, ready->lanes_waiting > 0, jobs);
        if (may_claim && batch.claimed == 0 && batch.count == 0)
            batch.claimed = claim(ready, READY_CLAIM_MAX);
        bool is_over = ready->is_closed && ready_policy_is_empty(&ready->policy);
        if (batch.count > 0 || batch.claimed > 0 || is_busy || is_over) break;
        wait_for_work(ready);
    }
    bool has_something = batch.count > 0 || batch.claimed > 0;
    if (has_something && ready->policy.count > 0) wake_a_lane(ready);
    wake_for_messages(ready);
    pthread_mutex_unlock(&ready->lock);
    if (has_something) pulse_busy();
    return batch;
}

/* --- a lane that is lent --- */

bool ready_borrow(struct ready *ready) {
    pthread_mutex_lock(&ready->lock);
    bool is_idle = ready->lanes_waiting == ready->policy.options.lanes && !ready->is_waking &&
                   ready->lending == LENT_NO && ready->policy.count == 0 && ready->offered == 0;
    if (is_idle) ready->lending = LENT_OUT;
    if (is_idle) ready->is_waking = true;
    pthread_mutex_unlock(&ready->lock);
    return is_idle;
}

struct ready_batch ready_take_short(struct ready *ready, struct job **jobs) {
    pthread_mutex_lock(&ready->lock);
    struct ready_batch batch = ready_policy_take_short(&ready->policy, jobs);
    ready_policy_note_lane(&ready->policy, READY_LENT_LANE, batch.count > 0);
    ready->is_waking = false;
    if (batch.count > 0 && ready_policy_has_work(&ready->policy)) wake_a_lane(ready);
    pthread_mutex_unlock(&ready->lock);
    return batch;
}

void ready_give_back(struct ready *ready, bool is_busy) {
    pthread_mutex_lock(&ready->lock);
    ready->lending = is_busy ? LENT_BACK_BUSY : LENT_NO;
    ready->is_waking = false; /* perhaps it was the lent one's thread that was signalled */
    ready_policy_note_lane(&ready->policy, READY_LENT_LANE, is_busy);
    if (is_busy) wakeup_broadcast(&ready->has_jobs);
    else if (ready->policy.count > 0) wake_a_lane(ready);
    wake_for_messages(ready);
    pthread_mutex_unlock(&ready->lock);
}

/* --- slices and slow batches --- */

void ready_make_slice(struct ready *ready, const struct ready_batch *batch, struct job *ret) {
    pthread_mutex_lock(&ready->lock); /* others change the array's progress and outcome */
    ready_policy_make_slice(&ready->policy, batch, ret);
    pthread_mutex_unlock(&ready->lock);
}

void ready_run_slice(struct ready *ready, struct job *slice) {
    pthread_mutex_lock(&ready->lock);
    ready_policy_run_slice(&ready->policy, slice);
    pthread_mutex_unlock(&ready->lock);
}

bool ready_end_slice(struct ready *ready, struct job *slice) {
    pthread_mutex_lock(&ready->lock);
    bool is_last = ready_policy_end_slice(&ready->policy, slice);
    if (ready->is_closed && ready_policy_is_empty(&ready->policy))
        wakeup_broadcast(&ready->has_jobs);
    pthread_mutex_unlock(&ready->lock);
    return is_last;
}

void ready_leave(struct ready *ready, uint32_t lane) {
    pthread_mutex_lock(&ready->lock);
    ready_policy_leave(&ready->policy, lane);
    if (ready->policy.count > 0 || ready->is_closed) wakeup_broadcast(&ready->has_jobs);
    pthread_mutex_unlock(&ready->lock);
}

void ready_learn(struct ready *ready, uint32_t lane, struct job *const *jobs, size_t count,
    bool is_ok, uint64_t ns) {
    pthread_mutex_lock(&ready->lock);
    uint32_t beside = ready_policy_count_beside(&ready->policy, lane);
    pthread_mutex_unlock(&ready->lock);
    composition_learn(&ready->policy.durations, jobs, count, is_ok, ns, beside);
    pthread_mutex_lock(&ready->lock);
    ready_policy_learned(&ready->policy, jobs, count);
    pthread_mutex_unlock(&ready->lock);
}

/* --- from outside --- */

size_t ready_offer(struct ready *ready, size_t count, uint64_t bytes) {
    pthread_mutex_lock(&ready->lock);
    ready->offered += count;
    ready->offered_bytes += bytes;
    size_t waiting = ready->offered;
    wake_for_messages(ready);
    pthread_mutex_unlock(&ready->lock);
    return waiting;
}

size_t ready_wait_for_messages(struct ready *ready) {
    pulse_idle();
    pthread_mutex_lock(&ready->lock);
    while (ready->offered == 0 && !ready->has_closed_offers)
        pthread_cond_wait(&ready->has_messages, &ready->lock);
    size_t count = claim(ready, READY_CLAIM_MAX);
    wake_for_messages(ready);
    pthread_mutex_unlock(&ready->lock);
    if (count > 0) pulse_busy();
    return count;
}

void ready_close_offers(struct ready *ready) {
    pthread_mutex_lock(&ready->lock);
    ready->has_closed_offers = true;
    pthread_cond_broadcast(&ready->has_messages);
    while (ready->admitting > 0) pthread_cond_wait(&ready->all_admitted, &ready->lock);
    pthread_mutex_unlock(&ready->lock);
}

void ready_admitted(struct ready *ready, size_t count) {
    pthread_mutex_lock(&ready->lock);
    INVARIANT(count <= ready->admitting, "what is admitted was claimed");
    ready->admitting -= count;
    if (ready->admitting == 0) pthread_cond_signal(&ready->all_admitted);
    pthread_mutex_unlock(&ready->lock);
}

size_t ready_claim(struct ready *ready, size_t most) {
    pthread_mutex_lock(&ready->lock);
    size_t count = claim(ready, most);
    pthread_mutex_unlock(&ready->lock);
    return count;
}

void ready_push(struct ready *ready, struct job *const *jobs, size_t count) {
    for (size_t i = 0; i < count; i++)
        jobs[i]->is_uneven = composition_is_uneven(ready->policy.options.state, jobs[i]);
    pthread_mutex_lock(&ready->lock);
    INVARIANT(!ready->is_closed, "the lanes stop after all that sends them jobs");
    ready_policy_add(&ready->policy, jobs, count);
    if (count > 0) wake_a_lane(ready);
    pthread_mutex_unlock(&ready->lock);
}

static void put_back(struct ready *ready, struct job *job) {
    job_move(job, JOB_READY);
    ready_policy_add(&ready->policy, &job, 1);
    wake_a_lane(ready);
}

void ready_put_back(struct ready *ready, struct job *job) {
    pthread_mutex_lock(&ready->lock);
    put_back(ready, job);
    pthread_mutex_unlock(&ready->lock);
}

bool ready_take_over(struct ready *ready, struct job *job) {
    pthread_mutex_lock(&ready->lock);
    bool takes = !ready->is_closed;
    if (takes) put_back(ready, job);
    pthread_mutex_unlock(&ready->lock);
    return takes;
}

void ready_end_long(struct ready *ready, struct job *job) {
    pthread_mutex_lock(&ready->lock);
    ready_policy_end_long(&ready->policy, job);
    if (ready->policy.count > 0 || ready->is_closed) wakeup_broadcast(&ready->has_jobs);
    pthread_mutex_unlock(&ready->lock);
}

size_t ready_park_long(struct ready *ready, bool are_parked) {
    pthread_mutex_lock(&ready->lock);
    struct ready_policy *policy = &ready->policy;
    bool were_parked = policy->are_long_parked;
    policy->are_long_parked = are_parked && !ready->is_closed;
    if (were_parked && !policy->are_long_parked) wakeup_broadcast(&ready->has_jobs);
    size_t count = policy->long_queued;
    pthread_mutex_unlock(&ready->lock);
    return count;
}

size_t ready_long_count(struct ready *ready) {
    pthread_mutex_lock(&ready->lock);
    size_t count = ready->policy.long_places;
    pthread_mutex_unlock(&ready->lock);
    return count;
}

void ready_close(struct ready *ready) {
    pthread_mutex_lock(&ready->lock);
    ready->is_closed = true;
    ready->policy.are_long_parked = false;
    wakeup_broadcast(&ready->has_jobs);
    pthread_mutex_unlock(&ready->lock);
}

struct job *ready_pop(struct ready *ready) {
    return ready_policy_pop(&ready->policy);
}

size_t ready_count(struct ready *ready) {
    pthread_mutex_lock(&ready->lock);
    size_t count = ready->policy.count;
    pthread_mutex_unlock(&ready->lock);
    return count;
}
