#include "batch/lane.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/crew.h"
#include "base/pulse.h"
#include "batch/array.h"
#include "batch/chunk.h"
#include "batch/composition.h"
#include "batch/ready.h"
#include "gpu/event.h"

struct lane {
    struct lanes *lanes;
    struct stream_lease lease;
    struct batch_context context;
    struct batch *batches; /* `depth`: a ring of which `in_flight` from `oldest` on run */
    uint32_t oldest, in_flight;
    uint64_t last_done_ns;
    struct job **jobs; /* of the next batch */
    struct job **done; /* of the one that is over */
    bool is_slow;      /* batches of slow jobs have the lane to themselves (ready.h) */
};

struct lanes {
    struct lanes_options options;
    atomic_uint_fast64_t batch_id; /* the last one given out */
    struct crew *crew;
    struct lane items[];
};

/* --- slices of arrays --- */

/* A slice is over. With its last slice an array is: it has an outcome, whatever became of it. */
static void end_slice(struct lane *lane, struct job *slice) {
    const struct lanes_options *options = &lane->lanes->options;
    struct job *array = slice->array;
    if (!ready_end_slice(options->ready, slice)) return;
    struct error err = array->outcome.err;
    if (err_is_shortage(array->outcome.code)) {
        options->on_memory_short(options->context, array, &err);
        return;
    }
    options->on_done(options->context, &array, 1);
    options->on_released(options->context, 1);
}

/* A slice that was not run, or not to its end. */
static void fail_slice(struct lane *lane, struct job *slice, const struct error *err) {
    slice->outcome.code = err->code;
    slice->outcome.err = *err;
    end_slice(lane, slice);
}

/* The job, if it is a long one, runs no more. */
static void end_long(struct lane *lane, struct job *job) {
    if (job->long_job != NULL) ready_end_long(lane->lanes->options.ready, job);
}

static void lose_job(struct lane *lane, struct job *job, const struct error *err) {
    const struct lanes_options *options = &lane->lanes->options;
    struct job *array = job->array;
    end_long(lane, job);
    if (array != NULL) {
        job->outcome.code = err->code;
        job->outcome.err = *err;
        if (!ready_end_slice(options->ready, job)) return;
    }
    options->on_lost(options->context, array != NULL ? array : job, err);
}

/* --- jobs that are not worth running --- */

/* False: the job is not the lane's any more. */
static bool start_job(struct lane *lane, struct job *job) {
    const struct lanes_options *options = &lane->lanes->options;
    struct error err;
    enum err code = options->start(options->context, job, &err);
    if (code == ERR_OK && job->array != NULL) code = array_check_time(job, &err);
    if (code == ERR_OK) return true;
    end_long(lane, job);
    if (job->array != NULL) fail_slice(lane, job, &err);
    else options->on_refused(options->context, job, &err);
    return false;
}

/* Of the first jobs in `lane->jobs`; returns how many are still the lane's. */
static size_t start_jobs(struct lane *lane, size_t count) {
    size_t started = 0;
    for (size_t i = 0; i < count; i++)
        if (start_job(lane, lane->jobs[i])) lane->jobs[started++] = lane->jobs[i];
    return started;
}

/* The batch that the lane begins next. */
static struct batch *next_batch(struct lane *lane) {
    return &lane->batches[(lane->oldest + lane->in_flight) % lane->lanes->options.depth];
}

/* A slow batch is over, whether it was run or not, and so many others are left. */
static void leave_slow(struct lane *lane, uint32_t left) {
    if (!lane->is_slow || left > 0) return;
    ready_leave(lane->lanes->options.ready, (uint32_t)(lane - lane->lanes->items));
    lane->is_slow = false;
}

static void admit(struct lane *lane, size_t count) {
    const struct lanes_options *options = &lane->lanes->options;
    options->admit(options->context, count);
}

/* Takes the jobs of the next batch, and admits messages until there are some. None: nothing is
 * there for a lane with others in flight, or for ever. */
static struct ready_batch take_jobs(struct lane *lane) {
    struct lanes *lanes = lane->lanes;
    struct ready_batch batch = {.count = 0};
    while (batch.count == 0) {
        batch = ready_take(
            lanes->options.ready, (uint32_t)(lane - lanes->items), lane->in_flight > 0, lane->jobs);
        if (batch.claimed > 0) {
            admit(lane, batch.claimed);
            continue;
        }
        if (batch.count == 0) return batch;
        lane->is_slow = batch.is_slow;
        if (batch.array != NULL) {
            lane->jobs[0] = &next_batch(lane)->slice;
            ready_make_slice(lanes->options.ready, &batch, lane->jobs[0]);
        }
        batch.count = start_jobs(lane, batch.count);
        if (batch.count == 0) leave_slow(lane, lane->in_flight);
    }
    return batch;
}

/* --- batches --- */

/* A batch says how long its jobs take, from when the lane's stream was free for it. A chunk of a
 * long job takes as long as was planned for it. */
static void learn(struct lane *lane, const struct batch *batch, uint64_t done_ns) {
    bool is_ok = true;
    if (batch_long_job(batch) != NULL) return;
    for (size_t i = 0; i < batch->count; i++)
        is_ok = is_ok && lane->done[i]->outcome.code == ERR_OK;
    uint64_t from = batch->staged_ns > lane->last_done_ns ? batch->staged_ns : lane->last_done_ns;
    ready_learn(lane->lanes->options.ready, (uint32_t)(lane - lane->lanes->items), lane->done,
        batch->count, is_ok, done_ns - from);
}

/* While the device works, there is time for messages. False: it is done, or there are none. */
static bool admit_meanwhile(struct lane *lane, struct batch *batch) {
    size_t count =
        batch_is_done(batch) ? 0 : ready_claim(lane->lanes->options.ready, READY_CLAIM_MAX);
    if (count > 0) admit(lane, count);
    return count > 0;
}

/* Of the batches in flight the oldest is the one that the device works on. */
static void note_oldest(struct lane *lane) {
    const struct batch *batch = &lane->batches[lane->oldest];
    if (lane->in_flight == 0 || batch->items[0].job->array == NULL) return;
    ready_run_slice(lane->lanes->options.ready, batch->items[0].job);
}

/* May only do a part of it: messages that were admitted may make another batch. */
static enum err finish_oldest(struct lane *lane, struct error *err) {
    const struct lanes_options *options = &lane->lanes->options;
    struct batch *batch = &lane->batches[lane->oldest];
    if (admit_meanwhile(lane, batch)) return ERR_OK;
    pulse_idle(); /* the watchdog knows how long a batch may take */
    enum err code = batch_finish(batch, err);
    pulse_busy();
    if (code != ERR_OK) return code;
    uint64_t done_ns = clock_ns();
    size_t count = batch->count;
    for (size_t i = 0; i < count; i++) lane->done[i] = batch->items[i].job;
    learn(lane, batch, done_ns);
    leave_slow(lane, lane->in_flight - 1);
    lane->last_done_ns = done_ns;
    struct job *first = lane->done[0];
    bool is_slice = first->array != NULL; /* its outputs are with its array */
    bool goes_on = first->long_job != NULL && !chunk_was_last(first);
    if (goes_on && first->long_job->is_shown) options->on_progress(options->context, first);
    if (!goes_on) end_long(lane, first);
    if (!is_slice && !goes_on) options->on_done(options->context, lane->done, count);
    batch_recycle(batch);
    if (is_slice) end_slice(lane, first);
    else if (goes_on) ready_put_back(options->ready, first);
    else options->on_released(options->context, count);
    lane->oldest = (lane->oldest + 1) % options->depth;
    lane->in_flight--;
    note_oldest(lane);
    return ERR_OK;
}

static enum err finish_all(struct lane *lane, struct error *err) {
    enum err code = ERR_OK;
    while (lane->in_flight > 0 && code == ERR_OK) code = finish_oldest(lane, err);
    return code;
}

/* A lane that waits for its tenant's turn has no batch in flight, for which others might wait. */
static enum err enter_tenancy(struct lane *lane, struct error *err) {
    const struct batch_context *context = &lane->context;
    struct slice tenant = lane->jobs[0]->tenant;
    bool has_entered;
    enum err code = tenancy_try_enter(context->tenancy, tenant, context->stream, &has_entered, err);
    if (code != ERR_OK || has_entered) return code;
    code = finish_all(lane, err);
    if (code != ERR_OK) return code;
    pulse_idle();
    code = tenancy_enter(context->tenancy, tenant, context->stream, err);
    pulse_busy();
    return code;
}

static enum err begin(struct lane *lane, const struct ready_batch *taken, struct error *err) {
    struct lanes *lanes = lane->lanes;
    enum err code = enter_tenancy(lane, err);
    if (code != ERR_OK) return code;
    /* relaxed: only uniqueness matters */
    uint64_t id = atomic_fetch_add_explicit(&lanes->batch_id, 1, memory_order_relaxed) + 1;
    code = batch_begin(next_batch(lane), lane->jobs, taken->count, taken->span_ns, false, id, err);
    if (code != ERR_OK) return code;
    lane->in_flight++;
    note_oldest(lane);
    return ERR_OK;
}

/* Only jobs that are larger than a slab ask for memory here, and they run alone. */
static enum err begin_or_pass_on(
    struct lane *lane, const struct ready_batch *taken, struct error *err) {
    enum err code = begin(lane, taken, err);
    if (err_is_shortage(code) && lane->in_flight > 0) {
        code = finish_all(lane, err);
        if (code == ERR_OK) code = begin(lane, taken, err);
    }
    if (code == ERR_OK || err_is_sticky(code)) return code;
    leave_slow(lane, lane->in_flight);
    const struct lanes_options *options = &lane->lanes->options;
    if (taken->array != NULL) fail_slice(lane, lane->jobs[0], err);
    for (size_t i = 0; i < taken->count && taken->array == NULL; i++) {
        end_long(lane, lane->jobs[i]);
        options->on_memory_short(options->context, lane->jobs[i], err);
    }
    return ERR_OK;
}

/* The jobs of all batches in flight; none of them has an outcome. */
static void give_up(struct lane *lane, size_t unstarted, const struct error *err) {
    const struct lanes_options *options = &lane->lanes->options;
    leave_slow(lane, 0);
    for (size_t i = 0; i < unstarted; i++) lose_job(lane, lane->jobs[i], err);
    for (uint32_t n = 0; n < lane->in_flight; n++) {
        struct batch *batch = &lane->batches[(lane->oldest + n) % options->depth];
        for (size_t i = 0; i < batch->count; i++) lose_job(lane, batch->items[i].job, err);
        batch_leave(batch);
    }
    lane->in_flight = 0;
}

static void run_lane(void *context, uint32_t index) {
    struct lane *lane = &((struct lanes *)context)->items[index];
    const struct lanes_options *options = &lane->lanes->options;
    struct error err;
    struct ready_batch taken = {.count = 0};
    enum err code = device_bind(options->device, &err);
    while (code == ERR_OK) {
        taken.count = 0;
        if (lane->in_flight < options->depth) taken = take_jobs(lane);
        if (taken.count > 0) code = begin_or_pass_on(lane, &taken, &err);
        else if (lane->in_flight > 0) code = finish_oldest(lane, &err);
        else break; /* closed and empty, or lost while it was lent */
    }
    if (code != ERR_OK) give_up(lane, taken.count, &err);
}

/* --- a lane that is lent --- */

/* Another tenant's turn may last long. */
bool lanes_borrow(struct lanes *lanes) {
    return lanes->options.tenancy == NULL && ready_borrow(lanes->options.ready);
}

/* A batch that takes longer than expected is left to the lane's own thread. */
static enum err run_short(struct lane *lane, struct ready_batch taken) {
    struct error err;
    taken.count = start_jobs(lane, taken.count);
    if (taken.count == 0) return ERR_OK;
    enum err code = begin_or_pass_on(lane, &taken, &err);
    size_t unstarted = code != ERR_OK ? taken.count : 0;
    if (lane->in_flight > 0 && batch_is_done_soon(&lane->batches[lane->oldest]))
        code = finish_oldest(lane, &err);
    if (code != ERR_OK) give_up(lane, unstarted, &err);
    return code;
}

void lanes_run_borrowed(struct lanes *lanes) {
    struct lane *lane = &lanes->items[READY_LENT_LANE];
    enum err code = run_short(lane, ready_take_short(lanes->options.ready, lane->jobs));
    /* its thread finds that nothing is in flight, and ends, if the GPU was lost */
    ready_give_back(lanes->options.ready, code != ERR_OK || lane->in_flight > 0);
}

/* --- start and stop --- */

static enum err lane_init(struct lane *lane, struct lanes *lanes, struct error *err) {
    const struct lanes_options *options = &lanes->options;
    size_t index = (size_t)(lane - lanes->items);
    lane->lanes = lanes;
    lane->jobs = calloc(options->batch_jobs_max, sizeof lane->jobs[0]);
    lane->done = calloc(options->batch_jobs_max, sizeof lane->done[0]);
    lane->batches = calloc(options->depth, sizeof lane->batches[0]);
    if (lane->jobs == NULL || lane->done == NULL || lane->batches == NULL)
        return error_no_memory(err, "no memory for a lane");
    enum err code = stream_lease_take(options->leases, false, &lane->lease, err);
    if (code != ERR_OK) return code;
    lane->context = (struct batch_context){.device = options->device,
        .device_pool = options->device_pool,
        .pinned_pool = options->pinned_pool,
        .statics = options->statics,
        .device_counters = &options->device_counters[index],
        .pinned_counters = &options->pinned_counters[index],
        .counters = options->counters,
        .leases = options->leases,
        .tenancy = options->tenancy,
        .stream = lane->lease.stream,
        .state = options->state,
        .lane = (uint32_t)index,
        .slab_bytes = options->slab_bytes,
        .can_map = options->can_map,
        .has_graphs = options->has_graphs,
        .jobs_max = options->batch_jobs_max};
    for (uint32_t i = 0; i < options->depth && code == ERR_OK; i++)
        code = batch_init(&lane->batches[i], &lane->context, i, err);
    return code;
}

/* Work that a lost context left behind is not waited for, and what it may still use is not
 * recycled. */
static void lane_fini(struct lane *lane) {
    const struct lanes_options *options = &lane->lanes->options;
    struct error err;
    bool is_idle = lane->lease.stream == NULL ||
                   stream_wait(options->device, lane->lease.stream, &err) == ERR_OK;
    for (uint32_t i = 0; lane->batches != NULL && i < options->depth; i++)
        (is_idle ? batch_fini : batch_abandon)(&lane->batches[i]);
    if (is_idle && lane->lease.stream != NULL)
        (void)!stream_lease_release(options->leases, &lane->lease, &err);
    free(lane->batches);
    free(lane->done);
    free(lane->jobs);
}

enum err lanes_start(const struct lanes_options *options, struct lanes **ret, struct error *err) {
    struct lanes *lanes = calloc(1, sizeof *lanes + options->count * sizeof lanes->items[0]);
    if (lanes == NULL) return error_no_memory(err, "no memory for the lanes");
    lanes->options = *options;
    enum err code = ERR_OK;
    for (uint32_t i = 0; i < options->count; i++) lanes->items[i].lanes = lanes;
    for (uint32_t i = 0; i < options->count && code == ERR_OK; i++)
        code = lane_init(&lanes->items[i], lanes, err);
    const struct crew_options crew = {
        .name = "lane", .count = options->count, .run = run_lane, .context = lanes};
    if (code == ERR_OK) code = crew_start(&crew, &lanes->crew, err);
    if (code != ERR_OK) lanes_stop(lanes);
    else *ret = lanes;
    return code;
}

void lanes_stop(struct lanes *lanes) {
    if (lanes == NULL) return;
    ready_close(lanes->options.ready);
    crew_join(&lanes->crew);
    for (uint32_t i = 0; i < lanes->options.count; i++) lane_fini(&lanes->items[i]);
    free(lanes);
}
