#include "batch/ready_policy.h"

#include "base/clock.h"
#include "base/invariant.h"
#include "batch/array.h"
#include "batch/coalesce.h"
#include "plan/extent.h"

enum {
    QUICK_PART = 4,         /* so many jobs that run side by side must fit the span to be quick */
    STAGED_SPANS = 5,       /* a job that takes longer does not wait for another in its lane */
    QUICK_SHARE_MIN = 64,   /* quick jobs of a batch, before the others' lanes are thought of */
    QUICK_MEMORY_MS = 1000, /* so long after a quick job or slice, others are expected */
    LAUNCH_US = 200, /* so long a launch of a slow slice may be: quick jobs run between two */
    SLICE_MS = 50    /* and so long all of its launches, if one instance takes less */
};

void ready_policy_init(struct ready_policy *policy, const struct ready_options *options) {
    policy->options = *options;
    policy->limits =
        (struct composition_limits){.span_ns = options->span_ns, .slab_bytes = options->slab_bytes};
}

void ready_policy_fini(struct ready_policy *policy) {
    slow_groups_fini(&policy->groups);
}

/* --- queues --- */

/* Adds jobs that are linked already, from `first` to `last`. */
static void append(struct ready_queue *queue, struct job *first, struct job *last) {
    if (queue->first == NULL) queue->first = first;
    else queue->last->place.next = first;
    queue->last = last;
}

static void add(struct ready_queue *queue, struct job *job) {
    job->place = (struct ready_place){.next = NULL};
    append(queue, job, job);
}

/* `before`: the one in front of it; NULL: it is the first. */
static void remove_after(struct ready_queue *queue, struct job *before, struct job *job) {
    if (before == NULL) queue->first = job->place.next;
    else before->place.next = job->place.next;
    if (queue->last == job) queue->last = before;
}

/* False: it was not there. */
static bool remove_job(struct ready_queue *queue, struct job *job) {
    struct job *before = NULL, *other = queue->first;
    for (; other != NULL && other != job; other = other->place.next) before = other;
    if (other != NULL) remove_after(queue, before, job);
    return other != NULL;
}

static struct job *pop(struct ready_queue *queue) {
    struct job *job = queue->first;
    if (job != NULL) remove_after(queue, NULL, job);
    return job;
}

/* --- what is known of a job --- */

/* Of jobs that run side by side, a batch that fits the span should hold some. */
static bool is_quick(struct ready_policy *policy, const struct job *job) {
    const struct ready_options *options = &policy->options;
    uint64_t ns = durations_expect(&policy->durations, composition_signature(job), 1);
    if (ns == DURATIONS_UNKNOWN || ns > options->span_ns || composition_runs_alone(job) ||
        job->is_uneven)
        return false;
    return ns <= options->span_ns / QUICK_PART ||
           coalesce_jobs_at_once(job, options->multiprocessors) == 1;
}

/* --- quick jobs --- */

/* Groups of a signature that turned out to be quick go to the queue. */
static void move_quick_groups(struct ready_policy *policy, uint64_t signature) {
    struct job *group = slow_groups_find(&policy->groups, signature, NULL);
    while (group != NULL && is_quick(policy, group)) {
        slow_groups_remove(&policy->groups, group);
        append(&policy->quick, group, group->place.last);
        group = slow_groups_find(&policy->groups, signature, NULL);
    }
}

/* Moves jobs at the front of the queue that have become slow. */
static void move_slow_jobs(struct ready_policy *policy) {
    while (policy->quick.first != NULL && !is_quick(policy, policy->quick.first))
        slow_groups_add(&policy->groups, pop(&policy->quick));
}

/* A large batch pays where all lanes get one. */
static size_t quick_share(const struct ready_policy *policy) {
    size_t share = policy->count / policy->options.lanes, most = policy->options.batch_jobs_max;
    if (share < QUICK_SHARE_MIN) share = QUICK_SHARE_MIN;
    return share < most ? share : most;
}

/* All of the first one's tenant. */
static size_t take_quick(struct ready_policy *policy, struct job **ret) {
    struct composition composition = {.count = 0};
    struct ready_queue *queue = &policy->quick;
    struct job *before = NULL, *job = queue->first;
    size_t most = quick_share(policy);
    while (job != NULL && composition.count < most) {
        struct job *next = job->place.next;
        if (composition.count > 0 && !slice_equal(ret[0]->tenant, job->tenant)) {
            if (composition.passed_over++ == COMPOSITION_PASSED_MAX) break;
            before = job;
        } else {
            size_t index = composition.count;
            if (!composition_join(&composition, &policy->limits, &policy->durations, job)) break;
            ret[index] = job;
            remove_after(queue, before, job);
        }
        job = next;
    }
    return composition.count;
}

/* --- slow jobs --- */

/* Whether one more lane may have a slow batch. */
static bool has_lane_for_slow(const struct ready_policy *policy) {
    uint32_t lanes = policy->options.lanes;
    bool has_quick =
        policy->quick.first != NULL ||
        (policy->quick_ns != 0 && clock_ns() - policy->quick_ns < QUICK_MEMORY_MS * 1000000ull);
    return policy->slow_lane_count < (has_quick && lanes > 1 ? lanes / 2 : lanes);
}

/* Whether a lane took a batch of the signature a short while ago, and still has it. */
static bool has_just_begun(const struct ready_policy *policy, uint64_t signature) {
    uint64_t now_ns = clock_ns();
    for (uint32_t i = 0; i < policy->options.lanes; i++) {
        const struct slow_lane *lane = &policy->slow_lanes[i];
        if (lane->is_taken && lane->signature == signature &&
            now_ns - lane->taken_ns < READY_FIRST_MS * 1000000ull)
            return true;
    }
    return false;
}

/* Whether the group may run now, or waits to learn from the first job of its signature. */
static bool is_due(struct ready_policy *policy, const struct job *group) {
    uint64_t signature = composition_signature(group);
    if (group->long_job != NULL) return !policy->are_long_parked;
    if (composition_runs_alone(group) ||
        durations_expect(&policy->durations, signature, 1) != DURATIONS_UNKNOWN)
        return true;
    return !has_just_begun(policy, signature);
}

/* The group whose turn it is; NULL: none may run. */
static struct job *find_group(struct ready_policy *policy) {
    struct job *group = slow_groups_next(&policy->groups, NULL);
    for (int i = 0; group != NULL && i < COMPOSITION_PASSED_MAX; i++) {
        if (is_due(policy, group)) return group;
        group = slow_groups_next(&policy->groups, group);
    }
    return NULL;
}

static size_t allowed(struct ready_policy *policy, const struct job *group) {
    const struct ready_options *options = &policy->options;
    if (composition_runs_alone(group)) return 1;
    size_t most = group->is_uneven ? COMPOSITION_UNEVEN_MAX : options->batch_jobs_max;
    if (most > options->batch_jobs_max) most = options->batch_jobs_max;
    size_t count = durations_allow(&policy->durations, composition_signature(group),
        options->span_ns, coalesce_jobs_at_once(group, options->multiprocessors));
    return count < most ? count : most;
}

static void enter(struct ready_policy *policy, uint32_t lane, const struct job *job) {
    policy->slow_lanes[lane] = (struct slow_lane){.is_taken = true,
        .signature = composition_signature(job),
        .number = ++policy->slow_batches,
        .others = policy->slow_lane_count++,
        .taken_ns = clock_ns()};
}

/* As many jobs of the group as are allowed. */
static size_t take_group(struct ready_policy *policy, struct job *group, struct job **jobs) {
    return slow_groups_take(&policy->groups, group, &policy->limits, allowed(policy, group), jobs);
}

/* False: no group may have a lane. A lane with batches in flight takes nothing, and is then empty
 * for it. */
static bool take_slow(struct ready_policy *policy, uint32_t lane, bool is_busy, struct job **jobs,
    struct ready_batch *batch) {
    struct job *group = has_lane_for_slow(policy) ? find_group(policy) : NULL;
    if (group == NULL || is_busy) return group != NULL;
    batch->count = take_group(policy, group, jobs);
    if (jobs[0]->long_job != NULL) policy->long_queued--;
    enter(policy, lane, jobs[0]);
    policy->is_turn_of_arrays = true;
    policy->is_turn_of_long = false;
    return true;
}

/* Another batch like the slow one that the lane has, which the host stages while the device works;
 * unless it is the turn of others, or another lane is free for it, or may soon be. */
static void take_more(struct ready_policy *policy, uint32_t lane, bool has_free_lane,
    struct job **jobs, struct ready_batch *batch) {
    uint64_t signature = policy->slow_lanes[lane].signature;
    struct job *group = NULL;
    if (policy->quick.first == NULL && policy->arrays.first == NULL &&
        (!has_free_lane || !has_lane_for_slow(policy)) &&
        durations_expect(&policy->durations, signature, 1) <=
            STAGED_SPANS * policy->options.span_ns)
        group = find_group(policy);
    if (group != NULL && composition_signature(group) == signature)
        batch->count = take_group(policy, group, jobs);
}

void ready_policy_leave(struct ready_policy *policy, uint32_t lane) {
    INVARIANT(policy->slow_lanes[lane].is_taken, "the lane has a slow batch");
    policy->slow_lanes[lane].is_taken = false;
    policy->slow_lane_count--;
}

uint32_t ready_policy_count_beside(const struct ready_policy *policy, uint32_t lane) {
    const struct slow_lane *own = &policy->slow_lanes[lane];
    uint64_t most = policy->options.lanes - 1, beside = policy->slow_lane_count;
    if (own->is_taken) beside = own->others + (policy->slow_batches - own->number);
    return (uint32_t)(beside < most ? beside : most);
}

void ready_policy_learned(struct ready_policy *policy, struct job *const *jobs, size_t count) {
    bool has_groups = slow_groups_next(&policy->groups, NULL) != NULL;
    for (size_t i = 0; i < count && has_groups; i++)
        if (i == 0 || !composition_same_signature(jobs[i - 1], jobs[i]))
            move_quick_groups(policy, composition_signature(jobs[i]));
}

/* --- slices of arrays --- */

/* How long a slice of many launches may take, which has its lane to itself; else 0. */
static uint64_t slow_slice_ns(const struct ready_policy *policy, const struct job *array) {
    uint64_t launches = array->plan->kernel_launches / array->instances;
    uint64_t most = SLICE_MS * 1000000ull, ns = launches * LAUNCH_US * 1000;
    if (ns > most) ns = most;
    return ns > policy->options.span_ns ? ns : 0;
}

static bool is_quick_array(struct ready_policy *policy, const struct job *array) {
    return is_quick(policy, array) && slow_slice_ns(policy, array) == 0;
}

/* Of an array that is not known as many as run side by side, which take about as long as one. A
 * long one is shared by the lanes: they copy its data at the same time. */
static uint32_t slice_count(struct ready_policy *policy, const struct job *array) {
    const struct ready_options *options = &policy->options;
    uint64_t signature = composition_signature(array), slow_ns = slow_slice_ns(policy, array);
    uint32_t fitting = extent_instances(array->plan, options->slab_bytes);
    uint32_t at_once = coalesce_jobs_at_once(array, options->multiprocessors), count = at_once;
    if (durations_expect(&policy->durations, signature, 1) != DURATIONS_UNKNOWN)
        count = durations_allow(
            &policy->durations, signature, slow_ns > 0 ? slow_ns : options->span_ns, at_once);
    uint32_t share = array->instances / options->lanes + 1;
    if (slow_ns > 0 && count > share) count = share > at_once ? share : at_once;
    if (count > fitting) count = fitting;
    return count < COALESCED_ROWS_MAX ? count : COALESCED_ROWS_MAX;
}

/* Whether a lane may have the array's next slice. A quick one needs no lane to itself. */
static bool may_take(struct ready_policy *policy, const struct job *array) {
    return is_quick_array(policy, array) || (has_lane_for_slow(policy) && is_due(policy, array));
}

/* The array whose turn it is; NULL: none may have a lane. */
static struct job *find_array(struct ready_policy *policy) {
    struct job *array = policy->arrays.first;
    for (int i = 0; array != NULL && i < COMPOSITION_PASSED_MAX; i++, array = array->place.next)
        if (may_take(policy, array)) return array;
    return NULL;
}

/* As take_slow(). The array then stands behind the others, if it has more. */
static bool take_slice(
    struct ready_policy *policy, uint32_t lane, bool is_busy, struct ready_batch *batch) {
    struct job *array = find_array(policy);
    bool is_slow = array != NULL && !is_quick_array(policy, array);
    if (array == NULL || (is_slow && is_busy)) return array != NULL;
    if (array->state == JOB_READY) job_move(array, JOB_ON_DEVICE);
    batch->array = array;
    batch->slice = array_take(array, slice_count(policy, array));
    batch->count = 1;
    (void)remove_job(&policy->arrays, array);
    if (array_has_more(array)) add(&policy->arrays, array);
    else policy->count--;
    if (is_slow) enter(policy, lane, array);
    else policy->quick_ns = clock_ns();
    policy->is_turn_of_arrays = false;
    policy->is_turn_of_long = false;
    return true;
}

void ready_policy_make_slice(
    struct ready_policy *policy, const struct ready_batch *batch, struct job *ret) {
    uint64_t now_ns = array_clock_read(&policy->array_clock, clock_ns());
    array_make_slice(
        batch->array, batch->slice, now_ns, array_clock_lanes(&policy->array_clock), ret);
}

void ready_policy_run_slice(struct ready_policy *policy, struct job *slice) {
    array_run_slice(slice, array_clock_read(&policy->array_clock, clock_ns()));
}

bool ready_policy_end_slice(struct ready_policy *policy, struct job *slice) {
    array_stop_slice(slice, array_clock_read(&policy->array_clock, clock_ns()));
    bool is_last = array_merge(slice->array, slice);
    if (slice->array->progress.is_stopped && remove_job(&policy->arrays, slice->array))
        policy->count--;
    return is_last;
}

/* --- what runs next --- */

bool ready_policy_may_come_due(const struct ready_policy *policy) {
    return slow_groups_next(&policy->groups, NULL) != NULL || policy->arrays.first != NULL;
}

bool ready_policy_has_work(struct ready_policy *policy) {
    return policy->quick.first != NULL || find_array(policy) != NULL ||
           (has_lane_for_slow(policy) && find_group(policy) != NULL);
}

bool ready_policy_has_full_batch(const struct ready_policy *policy) {
    return policy->count >=
           (policy->quick.first != NULL ? quick_share(policy) : policy->options.batch_jobs_max);
}

/* Slow jobs, or a slice of an array. False: there is nothing of that for any lane. */
static bool take_long(struct ready_policy *policy, uint32_t lane, bool is_busy, struct job **jobs,
    struct ready_batch *batch) {
    bool is_turn_of_arrays = policy->is_turn_of_arrays;
    if (is_turn_of_arrays && take_slice(policy, lane, is_busy, batch)) return true;
    if (take_slow(policy, lane, is_busy, jobs, batch)) return true;
    return !is_turn_of_arrays && take_slice(policy, lane, is_busy, batch);
}

/* Quick jobs and long work take turns in each lane: whatever is taken again and again, the other
 * comes next. */
static void take(struct ready_policy *policy, uint32_t lane, bool is_busy, bool has_free_lane,
    struct job **jobs, struct ready_batch *batch) {
    bool is_turn_of_long = policy->is_turn_of_long;
    move_slow_jobs(policy);
    if (policy->slow_lanes[lane].is_taken) {
        take_more(policy, lane, has_free_lane, jobs, batch);
        return;
    }
    if (is_turn_of_long && take_long(policy, lane, is_busy, jobs, batch)) return;
    batch->count = take_quick(policy, jobs);
    if (batch->count > 0) policy->is_turn_of_long = true;
    else if (!is_turn_of_long) (void)take_long(policy, lane, is_busy, jobs, batch);
}

static uint64_t expected_span(
    struct ready_policy *policy, const struct ready_batch *batch, uint64_t key) {
    uint32_t count = batch->array != NULL ? batch->slice.count : (uint32_t)batch->count;
    uint64_t ns = durations_expect(&policy->durations, key, count);
    return batch->is_slow && ns > policy->options.span_ns ? ns : policy->options.span_ns;
}

void ready_policy_note_lane(struct ready_policy *policy, uint32_t lane, bool is_running) {
    array_clock_note(&policy->array_clock, lane, is_running, clock_ns());
}

struct ready_batch ready_policy_take(struct ready_policy *policy, uint32_t lane, bool is_busy,
    bool has_free_lane, struct job **jobs) {
    struct ready_batch batch = {.count = 0};
    take(policy, lane, is_busy, has_free_lane, jobs, &batch);
    if (batch.count == 0) return batch;
    ready_policy_note_lane(policy, lane, true);
    const struct job *first = batch.array != NULL ? batch.array : jobs[0];
    batch.is_slow = policy->slow_lanes[lane].is_taken;
    batch.span_ns = expected_span(policy, &batch, composition_signature(first));
    if (batch.array != NULL) return batch;
    policy->count -= batch.count;
    batch.span_ns = composition_allowance(jobs, batch.count, batch.span_ns);
    return batch;
}

struct ready_batch ready_policy_take_short(struct ready_policy *policy, struct job **jobs) {
    struct ready_batch batch = {.span_ns = policy->options.span_ns};
    const struct job *first = policy->quick.first;
    bool is_short =
        first != NULL && durations_expect(&policy->durations, composition_signature(first),
                             (uint32_t)policy->count) <= READY_SHORT_NS;
    if (is_short) batch.count = take_quick(policy, jobs);
    policy->count -= batch.count;
    return batch;
}

/* --- coming and going --- */

/* One that has begun keeps its place between two chunks. */
static void add_long(struct ready_policy *policy, struct job *job) {
    struct long_job *long_job = job->long_job;
    policy->long_queued++;
    if (!long_job->has_place && policy->long_places == policy->options.long_jobs_max) {
        add(&policy->long_jobs, job);
        return;
    }
    if (!long_job->has_place) policy->long_places++;
    long_job->has_place = true;
    slow_groups_add(&policy->groups, job);
    policy->count++;
}

void ready_policy_end_long(struct ready_policy *policy, struct job *job) {
    if (!job->long_job->has_place) return;
    job->long_job->has_place = false;
    policy->long_places--;
    struct job *next = pop(&policy->long_jobs);
    if (next == NULL) return;
    policy->long_queued--;
    add_long(policy, next);
}

bool ready_policy_is_empty(const struct ready_policy *policy) {
    return policy->count == 0 && policy->long_jobs.first == NULL;
}

void ready_policy_add(struct ready_policy *policy, struct job *const *jobs, size_t count) {
    bool has_quick = false;
    for (size_t i = 0; i < count; i++) {
        if (jobs[i]->long_job != NULL) {
            add_long(policy, jobs[i]);
            continue;
        }
        policy->count++;
        if (jobs[i]->instances > 0) {
            array_reset(jobs[i]);
            add(&policy->arrays, jobs[i]);
        } else if (is_quick(policy, jobs[i])) {
            add(&policy->quick, jobs[i]);
            has_quick = true;
        } else {
            slow_groups_add(&policy->groups, jobs[i]);
        }
    }
    if (has_quick) policy->quick_ns = clock_ns();
}

struct job *ready_policy_pop(struct ready_policy *policy) {
    struct job *job = pop(&policy->quick);
    if (job == NULL) job = slow_groups_pop(&policy->groups);
    if (job == NULL) job = pop(&policy->arrays);
    return job != NULL ? job : pop(&policy->long_jobs);
}
