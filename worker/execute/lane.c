#include "execute/lane.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/crew.h"
#include "base/pulse.h"
#include "gpu/event.h"
#include "plan/shape.h"

struct lane {
    struct lanes *lanes;
    struct stream_lease lease;
    struct batch_context context;
    struct batch *batches; /* `depth`: a ring of which `in_flight` from `oldest` on run */
    uint32_t oldest, in_flight;
    uint64_t last_done_ns;
    struct prepared **jobs; /* room for one batch */
};

struct lanes {
    struct lanes_options options;
    struct pace pace;
    atomic_uint_fast64_t batch_id; /* the last one given out */
    struct crew *crew;
    struct lane items[];
};

/* --- who shares a batch --- */

/* How many jobs of other tenants a batch looks past for more of its own. */
enum { LOOK_PAST_MAX = 256 };

/* What is in the batch so far; asked for each job from the head of the queue on. */
struct composition {
    struct lanes *lanes;
    const struct prepared *first; /* NULL: empty */
    uint64_t bytes, ns;
    unsigned left; /* to others: jobs of other tenants */
};

static enum queue_fit joins(void *context, const void *item) {
    struct composition *composition = context;
    const struct lanes_options *options = &composition->lanes->options;
    const struct prepared *prepared = item;
    bool is_first = composition->first == NULL;
    if (!is_first && !slice_equal(composition->first->tenant, prepared->tenant))
        return composition->left++ < LOOK_PAST_MAX ? QUEUE_LEAVE : QUEUE_END;
    uint64_t ns = pace_get(&composition->lanes->pace, prepared->plan->shape_key);
    bool failed_before = prepared->job->retry_count > 0;
    if (ns == PACE_UNKNOWN || failed_before || ns > options->batch_span_ns)
        ns = options->batch_span_ns;
    uint64_t bytes = batch_job_bytes(prepared->plan);
    if (!is_first && (ns > options->batch_span_ns - composition->ns ||
                         bytes > options->slab_bytes - composition->bytes))
        return QUEUE_END;
    if (is_first) composition->first = prepared;
    composition->ns += ns;
    /* A first job that is larger than the slab leaves no room for others. */
    composition->bytes += bytes < options->slab_bytes ? bytes : options->slab_bytes;
    return QUEUE_TAKE;
}

/* --- jobs that are not worth running --- */

/* False: the job is answered without being run. */
static bool is_still_wanted(const struct lanes *lanes, struct prepared *prepared) {
    const struct lanes_options *options = &lanes->options;
    struct batch_item item = {.prepared = prepared};
    struct outcome *outcome = &item.outcome;
    outcome->code = options->still_wanted(options->context, prepared->job, &outcome->err);
    if (outcome->code == ERR_OK) return true;
    outcome->telemetry.wall_ns = clock_ns() - prepared->job->delivery->received_ns;
    options->on_done(options->context, &item, 1);
    options->on_released(options->context, 1);
    return false;
}

/* Takes the jobs of the next batch; 0 when there are none. */
static size_t take_jobs(struct lane *lane, int timeout_ms) {
    struct lanes *lanes = lane->lanes;
    size_t count = 0;
    while (count == 0) {
        struct composition composition = {.lanes = lanes};
        size_t popped = queue_pop_fitting(lanes->options.ready, (void **)lane->jobs,
            lanes->options.batch_jobs_max, timeout_ms, joins, &composition);
        if (popped == 0) return 0;
        for (size_t i = 0; i < popped; i++)
            if (is_still_wanted(lanes, lane->jobs[i])) lane->jobs[count++] = lane->jobs[i];
    }
    return count;
}

/* --- batches --- */

/* A batch of one shape says how long one such job takes, from when the lane's stream was free for
 * it. */
static void learn(struct lane *lane, const struct batch *batch, uint64_t done_ns) {
    const struct plan *plan = batch->items[0].prepared->plan;
    for (size_t i = 1; i < batch->count; i++)
        if (batch->items[i].prepared->plan->shape_key != plan->shape_key) return;
    uint64_t from = batch->staged_ns > lane->last_done_ns ? batch->staged_ns : lane->last_done_ns;
    pace_learn(&lane->lanes->pace, plan->shape_key, (done_ns - from) / batch->count);
}

static enum err finish_oldest(struct lane *lane, struct error *err) {
    const struct lanes_options *options = &lane->lanes->options;
    struct batch *batch = &lane->batches[lane->oldest];
    pulse_idle(); /* the watchdog knows how long a batch may take */
    enum err code = batch_finish(batch, err);
    pulse_busy();
    if (code != ERR_OK) return code;
    uint64_t done_ns = clock_ns();
    learn(lane, batch, done_ns);
    lane->last_done_ns = done_ns;
    size_t count = batch->count;
    options->on_done(options->context, batch->items, count);
    batch_recycle(batch);
    options->on_released(options->context, count);
    lane->oldest = (lane->oldest + 1) % options->depth;
    lane->in_flight--;
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

static enum err begin(struct lane *lane, size_t count, struct error *err) {
    struct lanes *lanes = lane->lanes;
    enum err code = enter_tenancy(lane, err);
    if (code != ERR_OK) return code;
    uint32_t next = (lane->oldest + lane->in_flight) % lanes->options.depth;
    /* relaxed: only uniqueness matters */
    uint64_t id = atomic_fetch_add_explicit(&lanes->batch_id, 1, memory_order_relaxed) + 1;
    code = batch_begin(&lane->batches[next], lane->jobs, count, false, id, err);
    if (code == ERR_OK) lane->in_flight++;
    return code;
}

/* Only jobs that are larger than a slab ask for memory here, and they run alone. */
static enum err begin_or_pass_on(struct lane *lane, size_t count, struct error *err) {
    enum err code = begin(lane, count, err);
    if (err_is_shortage(code) && lane->in_flight > 0) {
        code = finish_all(lane, err);
        if (code == ERR_OK) code = begin(lane, count, err);
    }
    if (code == ERR_OK || err_is_sticky(code)) return code;
    for (size_t i = 0; i < count; i++)
        lane->lanes->options.on_starved(lane->lanes->options.context, lane->jobs[i], err);
    return ERR_OK;
}

/* The jobs of all batches in flight; none of them has an outcome. */
static void give_up(struct lane *lane, size_t unstarted, const struct error *err) {
    const struct lanes_options *options = &lane->lanes->options;
    options->on_lost(options->context, lane->jobs, unstarted, err);
    for (uint32_t n = 0; n < lane->in_flight; n++) {
        struct batch *batch = &lane->batches[(lane->oldest + n) % options->depth];
        for (size_t i = 0; i < batch->count; i++)
            options->on_lost(options->context, &batch->items[i].prepared, 1, err);
        batch_leave(batch);
    }
}

static void run_lane(void *context, uint32_t index) {
    struct lane *lane = &((struct lanes *)context)->items[index];
    const struct lanes_options *options = &lane->lanes->options;
    struct error err;
    size_t count = 0;
    enum err code = device_bind(options->device, &err);
    while (code == ERR_OK) {
        count = 0;
        if (lane->in_flight < options->depth) count = take_jobs(lane, lane->in_flight > 0 ? 0 : -1);
        if (count > 0) code = begin_or_pass_on(lane, count, &err);
        else if (lane->in_flight > 0) code = finish_oldest(lane, &err);
        else break; /* closed and empty */
    }
    if (code != ERR_OK) give_up(lane, count, &err);
}

/* --- start and stop --- */

static enum err lane_init(struct lane *lane, struct lanes *lanes, struct error *err) {
    const struct lanes_options *options = &lanes->options;
    size_t index = (size_t)(lane - lanes->items);
    lane->lanes = lanes;
    lane->jobs = calloc(options->batch_jobs_max, sizeof lane->jobs[0]);
    lane->batches = calloc(options->depth, sizeof lane->batches[0]);
    if (lane->jobs == NULL || lane->batches == NULL)
        return error_set(
            err, ERR_NO_MEMORY, 0, "give the process more memory", "no memory for a lane");
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
        .span_ns = options->batch_span_ns,
        .slab_bytes = options->slab_bytes,
        .can_map = options->can_map,
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
    free(lane->jobs);
}

enum err lanes_start(const struct lanes_options *options, struct lanes **ret, struct error *err) {
    struct lanes *lanes = calloc(1, sizeof *lanes + options->count * sizeof lanes->items[0]);
    if (lanes == NULL)
        return error_set(
            err, ERR_NO_MEMORY, 0, "give the process more memory", "no memory for the lanes");
    lanes->options = *options;
    pace_init(&lanes->pace);
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
    queue_close(lanes->options.ready);
    crew_join(&lanes->crew);
    for (uint32_t i = 0; i < lanes->options.count; i++) lane_fini(&lanes->items[i]);
    free(lanes);
}
