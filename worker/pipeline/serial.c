#include "pipeline/serial.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/crew.h"
#include "base/pulse.h"
#include "batch/array.h"
#include "batch/coalesce.h"
#include "gpu/event.h"
#include "plan/extent.h"

enum { WAIT_MS = 10 };

struct serial {
    struct stages *stages;
    struct serial_options options;
    struct queue *queue;
    struct crew *crew;
    struct stream_lease lease;
    struct batch_context context; /* without slabs: each job takes its own blocks */
    struct batch batch;
    uint64_t batch_id; /* counts down from the top: the lanes' count up */
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

/* Slice by slice. A slice that is refused, or fails, ends the array. */
static enum err run_array(
    struct serial *serial, struct job *array, bool is_guarded, struct error *err) {
    const struct serial_options *options = &serial->options;
    uint32_t most = extent_instances(array->plan, serial->stages->settings->lane_slab_bytes);
    struct job *slice = &serial->batch.slice;
    enum err code = ERR_OK;
    if (most > COALESCED_ROWS_MAX) most = COALESCED_ROWS_MAX;
    array_reset(array);
    if (array->state == JOB_READY) job_move(array, JOB_ON_DEVICE);
    while (code == ERR_OK && array_has_more(array)) {
        struct array_slice next = array_take(array, most, clock_ns());
        array_make_slice(array, next, clock_ns(), slice);
        code = options->still_wanted(options->context, slice, err);
        if (code == ERR_OK) code = array_check_time(slice, err);
        if (code == ERR_OK) code = run_batch(serial, slice, is_guarded, err);
        if (code != ERR_OK) return code;
        batch_recycle(&serial->batch);
        (void)array_merge(array, slice);
    }
    return ERR_OK;
}

/*
 * ERR_OK: the job has run, and its outcome stands in the batch. After a shortage the job holds
 * nothing.
 */
static enum err try_to_run(
    struct serial *serial, struct job *job, bool is_guarded, struct error *err) {
    struct stages *stages = serial->stages;
    enum err code = serial->options.still_wanted(serial->options.context, job, err);
    if (code == ERR_OK) code = device_bind(&stages->device, err);
    if (code == ERR_OK) code = prepare_again(stages->prepare, job, err);
    if (code == ERR_OK)
        code = (job->instances > 0 ? run_array : run_batch)(serial, job, is_guarded, err);
    if (err_is_shortage(code)) prepare_release(job, stages->statics, stages->residents);
    return code;
}

static bool others_hold_memory(struct stages *stages) {
    pthread_mutex_lock(&stages->lock);
    bool others = stages->holding > 0 && !stages_has_failed(stages);
    pthread_mutex_unlock(&stages->lock);
    return others;
}

/* Waits until a job gives memory back, or returns at once where none holds any. */
static void wait_for_others(struct stages *stages) {
    pulse_idle();
    pthread_mutex_lock(&stages->lock);
    if (stages->holding > 0 && !stages_has_failed(stages)) stages_wait(stages, WAIT_MS);
    pthread_mutex_unlock(&stages->lock);
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
    /* No job runs beside a suspect. Where guards make it too large, it runs without them. */
    if (job->delivery->is_suspect) code = try_to_run(serial, job, true, &err);
    if (!job->delivery->is_suspect || err_is_shortage(code))
        code = run_beside_others(serial, job, &err);
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
        return error_set(
            err, ERR_NO_MEMORY, 0, "give the process more memory", "no memory for a queue");
    }
    serial->stages = stages;
    serial->options = *options;
    serial->batch_id = UINT64_MAX;
    enum err code = stream_lease_take(stages->leases, false, &serial->lease, err);
    serial->context = (struct batch_context){.device = &stages->device,
        .device_pool = stages->device_pool,
        .pinned_pool = stages->pinned_pool,
        .statics = stages->statics,
        .device_counters = &stages->device_counters[stages->settings->lanes],
        .pinned_counters = &stages->pinned_counters[stages->settings->lanes],
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
