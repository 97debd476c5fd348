#include "batch/ready.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/invariant.h"
#include "base/pulse.h"
#include "base/wakeup.h"
#include "batch/array.h"
#include "batch/array_queue.h"
#include "batch/coalesce.h"
#include "batch/composition.h"
#include "batch/offers.h"
#include "batch/quick_queue.h"
#include "batch/slow_groups.h"
#include "batch/slow_lanes.h"
#include "plan/extent.h"

enum {
    QUICK_PART = 4,         /* so many jobs that run side by side must fit the span to be quick */
    STAGED_SPANS = 5,       /* a job that takes longer does not wait for another in its lane */
    QUICK_SHARE_MIN = 64,   /* quick jobs of a batch, before the others' lanes are thought of */
    QUICK_MEMORY_MS = 1000, /* so long after a quick job or slice, others are expected */
    FIRST_MS = 100, /* so long a signature's first batch is waited for; then others begin as well */
    LAUNCH_US = 200, /* so long a launch of a slow slice may be: quick jobs run between two */
    SLICE_MS = 50    /* and so long all of its launches, if one instance takes less */
};

struct ready {
    struct ready_options options;
    struct composition_limits limits;
    struct durations durations;
    pthread_mutex_t lock;
    struct wakeup has_jobs;
    pthread_cond_t has_messages; /* for admission threads */
    pthread_cond_t all_admitted; /* for ready_close_offers() */
    uint32_t lanes_waiting;
    bool has_closed_offers;
    bool is_closed;
    bool is_waking; /* a lane was signalled, or is lent, and has not arrived yet */
    enum { LENT_NO, LENT_OUT, LENT_BACK_BUSY } lending; /* of READY_LENT_LANE */
    struct offers offers;
    size_t admitting; /* messages: claimed, and not admitted yet */
    size_t count;     /* of all jobs */
    struct quick_queue quick;
    struct slow_groups groups;
    struct array_queue arrays;
    struct array_clock array_clock;
    uint64_t quick_ns;      /* when a quick job came, or a quick slice went, last; 0: none */
    bool is_turn_of_long;   /* of arrays and slow jobs, before quick jobs */
    bool is_turn_of_arrays; /* before slow jobs */
    struct slow_lanes slow_lanes;
};

struct ready *ready_create(const struct ready_options *options) {
    INVARIANT(options->lanes <= READY_LANES_MAX, "the settings allow no more lanes");
    struct ready *ready = calloc(1, sizeof *ready);
    if (ready == NULL) return NULL;
    ready->options = *options;
    ready->limits =
        (struct composition_limits){.span_ns = options->span_ns, .slab_bytes = options->slab_bytes};
    durations_init(&ready->durations);
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
    slow_groups_fini(&ready->groups);
    free(ready);
}

/* --- what is known of a job --- */

/* Of jobs that run side by side, a batch that fits the span should hold some. */
static bool is_quick(struct ready *ready, const struct job *job) {
    const struct ready_options *options = &ready->options;
    uint64_t ns = durations_expect(&ready->durations, composition_signature(job), 1);
    if (ns == DURATIONS_UNKNOWN || ns > options->span_ns || composition_runs_alone(job) ||
        job->is_uneven)
        return false;
    return ns <= options->span_ns / QUICK_PART ||
           coalesce_jobs_at_once(job, options->multiprocessors) == 1;
}

/* --- quick jobs --- */

/* Groups of a signature that turned out to be quick go to the queue. */
static void move_quick_groups(struct ready *ready, uint64_t signature) {
    struct job *group = slow_groups_find(&ready->groups, signature, NULL);
    while (group != NULL && is_quick(ready, group)) {
        slow_groups_remove(&ready->groups, group);
        quick_queue_append(&ready->quick, group, group->place.last);
        group = slow_groups_find(&ready->groups, signature, NULL);
    }
}

/* Those at the front of the queue that have become slow. */
static void move_slow_jobs(struct ready *ready) {
    while (ready->quick.first != NULL && !is_quick(ready, ready->quick.first))
        slow_groups_add(&ready->groups, quick_queue_pop(&ready->quick));
}

/* A large batch pays where all lanes get one. */
static size_t quick_share(const struct ready *ready) {
    size_t share = ready->count / ready->options.lanes, most = ready->options.batch_jobs_max;
    if (share < QUICK_SHARE_MIN) share = QUICK_SHARE_MIN;
    return share < most ? share : most;
}

static size_t take_quick(struct ready *ready, struct job **jobs) {
    return quick_queue_take(
        &ready->quick, &ready->limits, &ready->durations, quick_share(ready), jobs);
}

/* --- slow jobs --- */

/* Whether one more lane may have a slow batch. */
static bool has_lane_for_slow(const struct ready *ready) {
    uint32_t lanes = ready->options.lanes;
    bool has_quick =
        ready->quick.first != NULL ||
        (ready->quick_ns != 0 && clock_ns() - ready->quick_ns < QUICK_MEMORY_MS * 1000000ull);
    return ready->slow_lanes.count < (has_quick && lanes > 1 ? lanes / 2 : lanes);
}

/* Whether the group may run now, or waits to learn from the first job of its signature. */
static bool is_due(struct ready *ready, const struct job *group) {
    uint64_t signature = composition_signature(group);
    if (composition_runs_alone(group) ||
        durations_expect(&ready->durations, signature, 1) != DURATIONS_UNKNOWN)
        return true;
    return !slow_lanes_have(&ready->slow_lanes, signature, FIRST_MS * 1000000ull, clock_ns());
}

/* The group whose turn it is; NULL: none may run. */
static struct job *find_group(struct ready *ready) {
    struct job *group = slow_groups_next(&ready->groups, NULL);
    for (int i = 0; group != NULL && i < COMPOSITION_PASSED_MAX; i++) {
        if (is_due(ready, group)) return group;
        group = slow_groups_next(&ready->groups, group);
    }
    return NULL;
}

static size_t allowed(struct ready *ready, const struct job *group) {
    const struct ready_options *options = &ready->options;
    if (composition_runs_alone(group)) return 1;
    size_t most = group->is_uneven ? COMPOSITION_UNEVEN_MAX : options->batch_jobs_max;
    if (most > options->batch_jobs_max) most = options->batch_jobs_max;
    size_t count = durations_allow(&ready->durations, composition_signature(group),
        options->span_ns, coalesce_jobs_at_once(group, options->multiprocessors));
    return count < most ? count : most;
}

static void enter(struct ready *ready, uint32_t lane, const struct job *job) {
    slow_lanes_enter(&ready->slow_lanes, lane, composition_signature(job), clock_ns());
}

/* As many jobs of the group as are allowed. */
static size_t take_group(struct ready *ready, struct job *group, struct job **jobs) {
    return slow_groups_take(&ready->groups, group, &ready->limits, allowed(ready, group), jobs);
}

/* False: no group may have a lane. A lane with batches in flight takes nothing, and is then empty
 * for it. */
static bool take_slow(struct ready *ready, uint32_t lane, bool is_busy, struct job **jobs,
    struct ready_batch *batch) {
    struct job *group = has_lane_for_slow(ready) ? find_group(ready) : NULL;
    if (group == NULL || is_busy) return group != NULL;
    batch->count = take_group(ready, group, jobs);
    enter(ready, lane, jobs[0]);
    ready->is_turn_of_arrays = true;
    ready->is_turn_of_long = false;
    return true;
}

/* Another batch like the slow one that the lane has, which the host stages while the device works;
 * unless it is the turn of others, or another lane is free for it, or may soon be. */
static void take_more(
    struct ready *ready, uint32_t lane, struct job **jobs, struct ready_batch *batch) {
    uint64_t signature = ready->slow_lanes.of[lane].signature;
    struct job *group = NULL;
    if (ready->quick.first == NULL && ready->arrays.first == NULL &&
        (ready->lanes_waiting == 0 || !has_lane_for_slow(ready)) &&
        durations_expect(&ready->durations, signature, 1) <= STAGED_SPANS * ready->options.span_ns)
        group = find_group(ready);
    if (group != NULL && composition_signature(group) == signature)
        batch->count = take_group(ready, group, jobs);
}

/* --- slices of arrays --- */

/* How long a slice of many launches may take, which has its lane to itself; else 0. */
static uint64_t slow_slice_ns(const struct ready *ready, const struct job *array) {
    uint64_t launches = array->plan->kernel_launches / array->instances;
    uint64_t most = SLICE_MS * 1000000ull, ns = launches * LAUNCH_US * 1000;
    if (ns > most) ns = most;
    return ns > ready->options.span_ns ? ns : 0;
}

static bool is_quick_array(struct ready *ready, const struct job *array) {
    return is_quick(ready, array) && slow_slice_ns(ready, array) == 0;
}

/* Of an array that is not known as many as run side by side, which take about as long as one. A
 * long one is shared by the lanes: they copy its data at the same time. */
static uint32_t slice_count(struct ready *ready, const struct job *array) {
    const struct ready_options *options = &ready->options;
    uint64_t signature = composition_signature(array), slow_ns = slow_slice_ns(ready, array);
    uint32_t fitting = extent_instances(array->plan, options->slab_bytes);
    uint32_t at_once = coalesce_jobs_at_once(array, options->multiprocessors), count = at_once;
    if (durations_expect(&ready->durations, signature, 1) != DURATIONS_UNKNOWN)
        count = durations_allow(
            &ready->durations, signature, slow_ns > 0 ? slow_ns : options->span_ns, at_once);
    uint32_t share = array->instances / options->lanes + 1;
    if (slow_ns > 0 && count > share) count = share > at_once ? share : at_once;
    if (count > fitting) count = fitting;
    return count < COALESCED_ROWS_MAX ? count : COALESCED_ROWS_MAX;
}

/* Whether a lane may have the array's next slice. A quick one needs no lane to itself. */
static bool may_take(struct ready *ready, const struct job *array) {
    return is_quick_array(ready, array) || (has_lane_for_slow(ready) && is_due(ready, array));
}

/* The array whose turn it is; NULL: none may have a lane. */
static struct job *find_array(struct ready *ready) {
    struct job *array = ready->arrays.first;
    for (int i = 0; array != NULL && i < COMPOSITION_PASSED_MAX; i++, array = array->place.next)
        if (may_take(ready, array)) return array;
    return NULL;
}

/* The same as take_slow(). The array then stands behind the others, if it has more. */
static bool take_slice(
    struct ready *ready, uint32_t lane, bool is_busy, struct ready_batch *batch) {
    struct job *array = find_array(ready);
    bool is_slow = array != NULL && !is_quick_array(ready, array);
    if (array == NULL || (is_slow && is_busy)) return array != NULL;
    if (array->state == JOB_READY) job_move(array, JOB_ON_DEVICE);
    batch->array = array;
    batch->slice = array_take(array, slice_count(ready, array));
    batch->count = 1;
    (void)array_queue_remove(&ready->arrays, array);
    if (array_has_more(array)) array_queue_add(&ready->arrays, array);
    else ready->count--;
    if (is_slow) enter(ready, lane, array);
    else ready->quick_ns = clock_ns();
    ready->is_turn_of_arrays = false;
    ready->is_turn_of_long = false;
    return true;
}

void ready_make_slice(struct ready *ready, const struct ready_batch *batch, struct job *ret) {
    pthread_mutex_lock(&ready->lock); /* others change the array's progress and outcome */
    uint64_t now_ns = array_clock_read(&ready->array_clock, clock_ns());
    array_make_slice(
        batch->array, batch->slice, now_ns, array_clock_lanes(&ready->array_clock), ret);
    pthread_mutex_unlock(&ready->lock);
}

void ready_run_slice(struct ready *ready, struct job *slice) {
    pthread_mutex_lock(&ready->lock);
    array_run_slice(slice, array_clock_read(&ready->array_clock, clock_ns()));
    pthread_mutex_unlock(&ready->lock);
}

bool ready_end_slice(struct ready *ready, struct job *slice) {
    pthread_mutex_lock(&ready->lock);
    array_stop_slice(slice, array_clock_read(&ready->array_clock, clock_ns()));
    bool is_last = array_merge(slice->array, slice);
    if (slice->array->progress.is_stopped && array_queue_remove(&ready->arrays, slice->array))
        ready->count--;
    if (ready->count == 0 && ready->is_closed) wakeup_broadcast(&ready->has_jobs);
    pthread_mutex_unlock(&ready->lock);
    return is_last;
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
    if (ready->offers.count == 0) return;
    if (ready->lanes_waiting > (ready->lending == LENT_OUT)) wake_a_lane(ready);
    else pthread_cond_signal(&ready->has_messages);
}

/* What no lane may have now, one may have after FIRST_MS: a lane must wait no longer. */
static bool may_come_due(const struct ready *ready) {
    return slow_groups_next(&ready->groups, NULL) != NULL || ready->arrays.first != NULL;
}

static bool has_work_for_a_lane(struct ready *ready) {
    return ready->quick.first != NULL || find_array(ready) != NULL ||
           (has_lane_for_slow(ready) && find_group(ready) != NULL);
}

/* Slow jobs, or a slice of an array. False: there is nothing of that for any lane. */
static bool take_long(struct ready *ready, uint32_t lane, bool is_busy, struct job **jobs,
    struct ready_batch *batch) {
    bool is_turn_of_arrays = ready->is_turn_of_arrays;
    if (is_turn_of_arrays && take_slice(ready, lane, is_busy, batch)) return true;
    if (take_slow(ready, lane, is_busy, jobs, batch)) return true;
    return !is_turn_of_arrays && take_slice(ready, lane, is_busy, batch);
}

/* Quick jobs and long work take turns in each lane: whatever is taken again and again, the other
 * comes next. */
static void take(struct ready *ready, uint32_t lane, bool is_busy, struct job **jobs,
    struct ready_batch *batch) {
    bool is_turn_of_long = ready->is_turn_of_long;
    move_slow_jobs(ready);
    if (ready->slow_lanes.of[lane].is_taken) {
        take_more(ready, lane, jobs, batch);
        return;
    }
    if (is_turn_of_long && take_long(ready, lane, is_busy, jobs, batch)) return;
    batch->count = take_quick(ready, jobs);
    if (batch->count > 0) ready->is_turn_of_long = true;
    else if (!is_turn_of_long) (void)take_long(ready, lane, is_busy, jobs, batch);
}

/* Whether the jobs that are ready make a whole batch. If not, messages may still add to it. */
static bool has_full_batch(const struct ready *ready) {
    return ready->count >=
           (ready->quick.first != NULL ? quick_share(ready) : ready->options.batch_jobs_max);
}

static size_t claim(struct ready *ready, size_t most) {
    size_t count = offers_claim(&ready->offers, most, READY_CLAIM_BYTES_MAX);
    ready->admitting += count;
    return count;
}

static uint64_t expected_span(struct ready *ready, const struct ready_batch *batch, uint64_t key) {
    uint32_t count = batch->array != NULL ? batch->slice.count : (uint32_t)batch->count;
    uint64_t ns = durations_expect(&ready->durations, key, count);
    return batch->is_slow && ns > ready->options.span_ns ? ns : ready->options.span_ns;
}

static void note_lane(struct ready *ready, uint32_t lane, bool is_running) {
    array_clock_note(&ready->array_clock, lane, is_running, clock_ns());
}

static void wait_for_work(struct ready *ready) {
    ready->lanes_waiting++;
    wakeup_wait_until(
        &ready->has_jobs, &ready->lock, may_come_due(ready) ? clock_ns_in(FIRST_MS) : UINT64_MAX);
    ready->lanes_waiting--;
}

/* While its lane is lent, a thread waits, and passes on what it is woken for. True: the lane comes
 * back with a batch in flight. */
static bool wait_for_own_lane(struct ready *ready, uint32_t lane) {
    if (lane != READY_LENT_LANE) return false;
    while (ready->lending == LENT_OUT) {
        if (ready->offers.count > 0 || has_work_for_a_lane(ready)) wakeup_signal(&ready->has_jobs);
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
    note_lane(ready, lane, is_busy);
    for (;;) {
        if (wait_for_own_lane(ready, lane)) break;
        ready->is_waking = false;
        bool may_claim = !ready->slow_lanes.of[lane].is_taken;
        if (may_claim && !has_full_batch(ready)) batch.claimed = claim(ready, READY_CLAIM_MAX);
        if (batch.claimed == 0) take(ready, lane, is_busy, jobs, &batch);
        if (may_claim && batch.claimed == 0 && batch.count == 0)
            batch.claimed = claim(ready, READY_CLAIM_MAX);
        bool is_over = ready->count == 0 && ready->is_closed;
        if (batch.count > 0 || batch.claimed > 0 || is_busy || is_over) break;
        wait_for_work(ready);
    }
    if (batch.count > 0) {
        note_lane(ready, lane, true);
        const struct job *first = batch.array != NULL ? batch.array : jobs[0];
        if (batch.array == NULL) ready->count -= batch.count;
        batch.is_slow = ready->slow_lanes.of[lane].is_taken;
        batch.span_ns = expected_span(ready, &batch, composition_signature(first));
        if (batch.array == NULL)
            batch.span_ns = composition_allowance(jobs, batch.count, batch.span_ns);
    }
    bool has_something = batch.count > 0 || batch.claimed > 0;
    if (has_something && (ready->quick.first != NULL || may_come_due(ready))) wake_a_lane(ready);
    wake_for_messages(ready);
    pthread_mutex_unlock(&ready->lock);
    if (has_something) pulse_busy();
    return batch;
}

/* --- a lane that is lent --- */

bool ready_borrow(struct ready *ready) {
    pthread_mutex_lock(&ready->lock);
    bool is_idle = ready->lanes_waiting == ready->options.lanes && !ready->is_waking &&
                   ready->lending == LENT_NO && ready->count == 0 && ready->offers.count == 0;
    if (is_idle) ready->lending = LENT_OUT;
    if (is_idle) ready->is_waking = true;
    pthread_mutex_unlock(&ready->lock);
    return is_idle;
}

struct ready_batch ready_take_short(struct ready *ready, struct job **jobs) {
    struct ready_batch batch = {.span_ns = ready->options.span_ns};
    pthread_mutex_lock(&ready->lock);
    bool is_short = ready->quick.first != NULL &&
                    durations_expect(&ready->durations, composition_signature(ready->quick.first),
                        (uint32_t)ready->count) <= READY_SHORT_NS;
    if (is_short) batch.count = take_quick(ready, jobs);
    ready->count -= batch.count;
    note_lane(ready, READY_LENT_LANE, batch.count > 0);
    ready->is_waking = false;
    if (batch.count > 0 && has_work_for_a_lane(ready)) wake_a_lane(ready);
    pthread_mutex_unlock(&ready->lock);
    return batch;
}

void ready_give_back(struct ready *ready, bool is_busy) {
    pthread_mutex_lock(&ready->lock);
    ready->lending = is_busy ? LENT_BACK_BUSY : LENT_NO;
    ready->is_waking = false; /* perhaps it was the lent one's thread that was signalled */
    note_lane(ready, READY_LENT_LANE, is_busy);
    if (is_busy) wakeup_broadcast(&ready->has_jobs);
    else if (ready->count > 0) wake_a_lane(ready);
    wake_for_messages(ready);
    pthread_mutex_unlock(&ready->lock);
}

void ready_leave(struct ready *ready, uint32_t lane) {
    pthread_mutex_lock(&ready->lock);
    slow_lanes_leave(&ready->slow_lanes, lane);
    if (ready->count > 0 || ready->is_closed) wakeup_broadcast(&ready->has_jobs);
    pthread_mutex_unlock(&ready->lock);
}

static uint32_t count_beside(struct ready *ready, uint32_t lane) {
    pthread_mutex_lock(&ready->lock);
    uint64_t beside = slow_lanes_beside(&ready->slow_lanes, lane);
    pthread_mutex_unlock(&ready->lock);
    uint64_t most = ready->options.lanes - 1;
    return (uint32_t)(beside < most ? beside : most);
}

void ready_learn(struct ready *ready, uint32_t lane, struct job *const *jobs, size_t count,
    bool is_ok, uint64_t ns) {
    composition_learn(&ready->durations, jobs, count, is_ok, ns, count_beside(ready, lane));
    pthread_mutex_lock(&ready->lock);
    bool has_groups = slow_groups_next(&ready->groups, NULL) != NULL;
    for (size_t i = 0; i < count && has_groups; i++)
        if (i == 0 || !composition_same_signature(jobs[i - 1], jobs[i]))
            move_quick_groups(ready, composition_signature(jobs[i]));
    pthread_mutex_unlock(&ready->lock);
}

/* --- from outside --- */

size_t ready_offer(struct ready *ready, size_t count, uint64_t bytes) {
    pthread_mutex_lock(&ready->lock);
    ready->offers.count += count;
    ready->offers.bytes += bytes;
    size_t waiting = ready->offers.count;
    wake_for_messages(ready);
    pthread_mutex_unlock(&ready->lock);
    return waiting;
}

size_t ready_wait_for_messages(struct ready *ready) {
    pulse_idle();
    pthread_mutex_lock(&ready->lock);
    while (ready->offers.count == 0 && !ready->has_closed_offers)
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
    size_t quick = 0;
    for (size_t i = 0; i < count; i++)
        jobs[i]->is_uneven = composition_is_uneven(ready->options.state, jobs[i]);
    pthread_mutex_lock(&ready->lock);
    INVARIANT(!ready->is_closed, "the lanes stop after all that sends them jobs");
    for (size_t i = 0; i < count; i++) {
        if (jobs[i]->instances > 0) {
            array_reset(jobs[i]);
            array_queue_add(&ready->arrays, jobs[i]);
            continue;
        }
        bool is_for_queue = is_quick(ready, jobs[i]);
        if (is_for_queue) quick_queue_add(&ready->quick, jobs[i]);
        else slow_groups_add(&ready->groups, jobs[i]);
        if (is_for_queue) quick++;
    }
    if (quick > 0) ready->quick_ns = clock_ns();
    ready->count += count;
    if (count > 0) wake_a_lane(ready);
    pthread_mutex_unlock(&ready->lock);
}

void ready_close(struct ready *ready) {
    pthread_mutex_lock(&ready->lock);
    ready->is_closed = true;
    wakeup_broadcast(&ready->has_jobs);
    pthread_mutex_unlock(&ready->lock);
}

struct job *ready_pop(struct ready *ready) {
    struct job *job = quick_queue_pop(&ready->quick);
    if (job == NULL) job = slow_groups_pop(&ready->groups);
    return job != NULL ? job : array_queue_pop(&ready->arrays);
}

size_t ready_count(struct ready *ready) {
    pthread_mutex_lock(&ready->lock);
    size_t count = ready->count;
    pthread_mutex_unlock(&ready->lock);
    return count;
}
