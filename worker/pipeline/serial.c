#include "pipeline/serial.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/crew.h"
#include "base/pulse.h"
#include "batch/array.h"
#include "batch/chunk.h"
#include "batch/coalesce.h"
#include "gpu/event.h"
#include "pipeline/ends.h"
#include "plan/extent.h"
#include "quarantine/culprits.h"
#include "quarantine/suspects.h"

enum { WAIT_MS = 10, SLICE_LAUNCHES_MAX = 256 };

struct serial {
    struct stages *stages;
    struct serial_options options;
    struct queue *queue;
    struct crew *crew;
    struct stream_lease lease;
    struct batch_context context; /* without slabs: each job takes its own blocks */
    struct batch batch;
    uint64_t batch_id; /* counts down from the top: the lanes' count up */
    bool has_left;     /* the job that was run goes on in the lanes */
};

/* A job, or a slice. Its outcome stands in it. */
static enum err run_batch(
    struct serial *serial, struct job *job, bool is_guarded, struct error *err) {
    struct stages *stages = serial->stages;
    pulse_idle(); /* the watchdog knows how long batches may take, ours and those we wait for */
    enum err code = tenancy_enter(stages->tenancy, job->tenant, serial->lease.stream, err);
    pulse_busy();
    if (code == ERR_OK)
        code = batch_begin(&serial->batch, &job, 1, 0, is_guarded, serial->batch_id--, err);
    pulse_idle();
    if (code == ERR_OK) code = batch_finish(&serial->batch, err);
    pulse_busy();
    return code;
}

/* A slice whose outcome stands in it. After a sticky error its instances stand as running. */
static enum err run_slice(struct serial *serial, struct job *array, struct culprits_walk *walk,
    struct array_slice range, bool is_guarded, struct error *err) {
    const struct serial_options *options = &serial->options;
    struct job *slice = &serial->batch.slice;
    array_begin_slice(array, range);
    array_make_slice(array, range, clock_ns(), 1, slice);
    array_run_slice(slice, clock_ns());
    enum err code = options->start(options->context, slice, err);
    if (code == ERR_OK) code = array_check_time(slice, err);
    if (code != ERR_OK) {
        culprits_walk_fence(walk);
        return code;
    }
    code = run_batch(serial, slice, is_guarded, err);
    array_stop_slice(slice, clock_ns());
    array_note_run(array, slice);
    if (code == ERR_OK) batch_recycle(&serial->batch);
    return code;
}

/* What a guarded slice wrote outside of its buffers is blamed on its instances, as a death is. */
static bool is_blamed(const struct job *slice, struct state_search *search) {
    const struct outcome *outcome = &slice->outcome;
    return search != NULL && outcome->code == ERR_GPU_STRAY_WRITE &&
           culprits_blame(search, outcome->code, outcome->err.message);
}

static enum err leave_out_culprits(
    struct job *array, const struct state_search *search, struct error *err) {
    enum err code = ERR_OK;
    for (uint32_t i = 0; search != NULL && i < search->culprit_count && code == ERR_OK; i++)
        code = array_leave_out(array, search->culprits[i].instance, err);
    return code;
}

/* A slice ends soon, so that a cancel or a stop does not wait for many launches. */
static uint32_t slice_instances(const struct serial *serial, const struct job *array) {
    uint64_t most = extent_instances(array->plan, serial->stages->settings->lane_slab_bytes);
    uint64_t launches = array->plan->kernel_launches / array->instances;
    if (!coalesce_can(array) && launches > 0 && most > SLICE_LAUNCHES_MAX / launches)
        most = SLICE_LAUNCHES_MAX / launches;
    if (most > COALESCED_ROWS_MAX) most = COALESCED_ROWS_MAX;
    return most > 0 ? (uint32_t)most : 1;
}

/* Slice by slice, from the start. A slice that is refused, or fails, ends the array. `*is_over`
 * false: one was blamed, and the array is to be run again without its culprits. */
static enum err run_slices(struct serial *serial, struct job *array, struct state_search *search,
    bool is_guarded, bool *is_over, struct error *err) {
    struct array_slice range;
    struct culprits_walk walk =
        culprits_walk(search, array->instances, slice_instances(serial, array));
    uint64_t used_ns = array->progress.used_ns; /* also when it is run again without culprits */
    array_reset(array);
    array->progress.used_ns = used_ns;
    *is_over = true;
    enum err code = leave_out_culprits(array, search, err);
    if (code != ERR_OK) return code;
    while (array_has_more(array) && culprits_walk_next(&walk, &range)) {
        const struct job *slice = &serial->batch.slice;
        code = run_slice(serial, array, &walk, range, is_guarded, err);
        bool is_lost = err_is_sticky(code);
        *is_over = code != ERR_OK || !is_blamed(slice, search);
        if (!*is_over) return ERR_OK;
        if (!is_lost) culprits_walk_fence(&walk);
        if (code != ERR_OK) return code;
        (void)array_merge(array, slice);
    }
    return ERR_OK;
}

static int compare_instances(const void *a, const void *b) {
    const struct failed_instance *left = a, *right = b;
    return (left->instance > right->instance) - (left->instance < right->instance);
}

/* All others have run well: the array has their outputs, and its culprits for an error. In the
 * residents that it changes, parts are missing. */
static enum err end_partly(
    struct job *array, const struct state_search *search, struct error *err) {
    struct outcome *outcome = &array->outcome;
    uint32_t count = search->culprit_count;
    struct failed_instance *failed = arena_alloc_beyond(&array->arena, count * sizeof *failed);
    char *texts = arena_alloc_beyond(&array->arena, count * (size_t)STATE_MESSAGE_BYTES);
    if (failed == NULL || texts == NULL)
        return error_no_memory(err, "no memory to say which instances have failed");
    for (uint32_t i = 0; i < count; i++, texts += STATE_MESSAGE_BYTES) {
        memcpy(texts, search->culprits[i].message, STATE_MESSAGE_BYTES);
        failed[i] = (struct failed_instance){
            search->culprits[i].instance, .code = search->culprits[i].code, .message = texts};
    }
    qsort(failed, count, sizeof *failed, compare_instances);
    array->run = RUN_STARTED;
    outcome->generations = NULL;
    outcome->failed = failed;
    outcome->failed_count = count;
    outcome->code = error_set(&outcome->err, ERR_INSTANCES_FAILED, 0,
        "correct what these instances are given, and send them again",
        "%" PRIu32 " of %" PRIu32 " instances failed; the first is %" PRIu32 ": %s: %s", count,
        array->instances, failed[0].instance, err_code(failed[0].code), failed[0].message);
    return ERR_OK;
}

/* Whether it may run from its first instance again: what it changes has its start value then. */
static bool can_start_again(const struct job *array) {
    bool can = true;
    for (size_t i = 0; i < array->buffer_count && can; i++)
        can = !array->plan->buffers[i].is_update || resident_is_fresh(array->residents[i]);
    return can;
}

/* A suspect is run without its culprits, and goes on looking for others (quarantine/culprits.h). */
static enum err run_array(
    struct serial *serial, struct job *array, bool is_guarded, struct error *err) {
    struct stages *stages = serial->stages;
    struct state_search *search = NULL;
    if (array->delivery->is_suspect && can_start_again(array))
        search = culprits_search(stages->state, &array->delivery->position, array->instances,
            stages->settings->limits.convictions_per_job);
    array_reset(array);
    if (array->state == JOB_READY) job_move(array, JOB_ON_DEVICE);
    enum err code;
    bool is_over;
    do code = run_slices(serial, array, search, is_guarded, &is_over, err);
    while (!is_over);
    bool has_ended_well = code == ERR_OK && array->outcome.code == ERR_OK;
    if (has_ended_well && search != NULL && search->culprit_count > 0)
        code = end_partly(array, search, err);
    return code;
}

/* Once it holds its memory it needs this thread no more; a suspect not before it has passed all
 * rounds of which one may have ended an executor. */
static bool go_to_lanes(struct serial *serial, struct job *job) {
    struct stages *stages = serial->stages;
    bool is_suspect = job->delivery->is_suspect;
    if (is_suspect && job->long_job->rounds <= suspects_rounds(stages->suspects)) return false;
    if (is_suspect) suspects_acquit(stages->suspects, job->delivery);
    flight_count_jobs(&stages->flight, &job, 1, COUNT_HOLDING); /* it may be theirs at once */
    serial->has_left = ready_take_over(stages->ready, job);
    if (!serial->has_left) flight_count_jobs(&stages->flight, &job, 1, COUNT_WAITING_FOR_MEMORY);
    return serial->has_left;
}

/* Chunk by chunk, and then in the lanes. Its buffers stay where they are, so that there are no
 * guards around them. */
static enum err run_long_job(
    struct serial *serial, struct job *job, bool is_guarded, struct error *err) {
    const struct serial_options *options = &serial->options;
    enum err code = run_batch(serial, job, false, err);
    while (code == ERR_OK && !chunk_was_last(job)) {
        if (job->long_job->is_shown) options->on_progress(options->context, job);
        batch_recycle(&serial->batch);
        if (go_to_lanes(serial, job)) return ERR_OK;
        job_move(job, JOB_READY);
        code = options->start(options->context, job, err);
        if (code == ERR_OK) code = run_batch(serial, job, false, err);
    }
    return code;
}

typedef enum err run_function(
    struct serial *serial, struct job *job, bool is_guarded, struct error *err);

static run_function *runner_of(const struct job *job) {
    if (job->long_job != NULL) return run_long_job;
    return job->instances > 0 ? run_array : run_batch;
}

/*
 * ERR_OK: the job has run, and its outcome stands in the batch. After a shortage the job holds
 * nothing.
 */
static enum err try_to_run(
    struct serial *serial, struct job *job, bool is_guarded, struct error *err) {
    struct stages *stages = serial->stages;
    enum err code = serial->options.start(serial->options.context, job, err);
    if (code == ERR_OK) code = device_bind(&stages->device, err);
    if (code == ERR_OK) code = prepare_again(stages->prepare, job, err);
    if (code == ERR_OK) code = runner_of(job)(serial, job, is_guarded, err);
    if (err_is_shortage(code)) {
        job_put_back(stages, job);
        job_release(stages, job);
        spools_end(job->spools, job->output_count);
    }
    return code;
}

/* With the lock. Also jobs that have run hold some while their outputs are on their way to the blob
 * store, or their results to the sink. The caller's job holds nothing. */
static bool others_hold_some(struct stages *stages) {
    const struct flight *flight = &stages->flight;
    bool some = flight->holding > 0 || flight->rooms > 0 || blobs_are_held(stages->blobs);
    return some && !stages_has_failed(stages);
}

static bool others_hold_memory(struct stages *stages) {
    flight_lock(&stages->flight);
    bool others = others_hold_some(stages);
    flight_unlock(&stages->flight);
    return others;
}

/* Waits until a job gives memory back, or returns at once where none holds any. */
static void wait_for_others(struct stages *stages) {
    pulse_idle();
    flight_lock(&stages->flight);
    if (others_hold_some(stages)) flight_wait(&stages->flight, WAIT_MS);
    flight_unlock(&stages->flight);
}

/* A shortage is final only where no other job held memory before the try: what others have given
 * back meanwhile may be enough. */
static enum err run_beside_others(struct serial *serial, struct job *job, struct error *err) {
    for (;;) {
        bool may_wait = others_hold_memory(serial->stages);
        enum err code = try_to_run(serial, job, false, err);
        if (!err_is_shortage(code) || !may_wait) return code;
        wait_for_others(serial->stages);
    }
}

static void run_when_there_is_room(struct serial *serial, struct job *job) {
    const struct serial_options *options = &serial->options;
    struct error err;
    enum err code = ERR_OK;
    bool is_suspect = job->delivery->is_suspect;
    serial->has_left = false;
    /* No job runs beside a suspect. Where guards make it too large, it runs without them. */
    if (is_suspect) code = try_to_run(serial, job, true, &err);
    if (!is_suspect || err_is_shortage(code)) code = run_beside_others(serial, job, &err);
    if (serial->has_left) return;
    if (code == ERR_OK && is_suspect) refusals_note_acquittal(&serial->stages->refusals, job);
    if (code == ERR_OK) options->on_done(options->context, &job, 1);
    else options->on_failed(options->context, job, &err);
    batch_recycle(&serial->batch);
}

static void run_serial(void *context, uint32_t index) {
    struct serial *serial = context;
    void *item;
    while (queue_pop(serial->queue, &item, 1, -1) == 1) run_when_there_is_room(serial, item);
}

enum err serial_start(struct stages *stages, const struct serial_options *options,
    struct serial **ret, struct error *err) {
    struct serial *serial = calloc(1, sizeof *serial);
    if (serial != NULL) serial->queue = queue_create(stages_jobs_max(stages));
    if (serial == NULL || serial->queue == NULL) {
        free(serial);
        return error_no_memory(err, "no memory for a queue");
    }
    serial->stages = stages;
    serial->options = *options;
    serial->batch_id = UINT64_MAX;
    size_t user = stages->settings->lanes + POOL_USER_SERIAL;
    enum err code = stream_lease_take(stages->leases, false, &serial->lease, err);
    serial->context = (struct batch_context){.device = &stages->device,
        .device_pool = stages->device_pool,
        .pinned_pool = stages->pinned_pool,
        .statics = stages->statics,
        .device_counters = &stages->device_counters[user],
        .pinned_counters = &stages->pinned_counters[user],
        .counters = &stages->board->counters,
        .leases = stages->leases,
        .tenancy = stages->tenancy,
        .stream = serial->lease.stream,
        .state = stages->state,
        .lane = stages->settings->lanes,
        .jobs_max = 1};
    if (code == ERR_OK) code = batch_init(&serial->batch, &serial->context, 0, err);
    const struct crew_options crew = {
        .name = "serial", .count = 1, .run = run_serial, .context = serial};
    if (code == ERR_OK) code = crew_start(&crew, &serial->crew, err);
    if (code == ERR_OK) *ret = serial;
    else serial_stop(serial);
    return code;
}

void serial_stop(struct serial *serial) {
    if (serial == NULL) return;
    struct error err;
    queue_close(serial->queue);
    crew_join(&serial->crew);
    bool is_idle = serial->lease.stream == NULL ||
                   stream_wait(&serial->stages->device, serial->lease.stream, &err) == ERR_OK;
    (is_idle ? batch_fini : batch_abandon)(&serial->batch);
    if (is_idle) (void)!stream_lease_release(serial->stages->leases, &serial->lease, &err);
    queue_destroy(serial->queue);
    free(serial);
}

void serial_push(struct serial *serial, struct job *job) {
    queue_must_push(serial->queue, job);
}
