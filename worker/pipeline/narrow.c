#include "pipeline/narrow.h"

#include <stdlib.h>

#include "base/crew.h"
#include "base/pulse.h"
#include "gpu/event.h"

enum { WAIT_MS = 10 };

struct narrow {
    struct stages *stages;
    struct narrow_options options;
    struct queue *queue;
    struct crew *crew;
    struct stream_lease lease;
    struct batch_context context; /* without slabs: every job brings its own blocks */
    struct batch batch;
    uint64_t batch_id; /* from the top down, so that no lane's is met */
};

/*
 * ERR_OK: the job has run, and its outcome stands in the batch. After a shortage the job holds
 * nothing.
 */
static enum err try_to_run(
    struct narrow *narrow, struct job *job, bool is_guarded, struct error *err) {
    struct stages *stages = narrow->stages;
    enum err code = narrow->options.still_wanted(narrow->options.context, job, err);
    if (code == ERR_OK) code = device_bind(&stages->device, err);
    if (code == ERR_OK) code = prepare_again(stages->prepare, job, err);
    pulse_idle(); /* others' batches end, and the watchdog knows how long ours may take */
    if (code == ERR_OK)
        code = tenancy_enter(stages->tenancy, job->tenant, narrow->lease.stream, err);
    pulse_busy();
    if (code == ERR_OK)
        code = batch_begin(&narrow->batch, &job, 1, 0, is_guarded, narrow->batch_id--, err);
    pulse_idle();
    if (code == ERR_OK) code = batch_finish(&narrow->batch, err);
    pulse_busy();
    if (err_is_shortage(code)) prepare_release(job, stages->statics, stages->residents);
    return code;
}

static bool others_hold_memory(struct stages *stages) {
    pthread_mutex_lock(&stages->lock);
    bool others = stages->holding > 0 && !stages_has_failed(stages);
    pthread_mutex_unlock(&stages->lock);
    return others;
}

/* Until somebody gives something back, or has just done so. */
static void wait_for_others(struct stages *stages) {
    pulse_idle();
    pthread_mutex_lock(&stages->lock);
    if (stages->holding > 0 && !stages_has_failed(stages)) stages_wait(stages, WAIT_MS);
    pthread_mutex_unlock(&stages->lock);
}

/* Only a shortage that was met while nobody else held anything is one for good: what others have
 * given back since then may be enough. */
static enum err run_beside_others(struct narrow *narrow, struct job *job, struct error *err) {
    for (;;) {
        bool may_wait = others_hold_memory(narrow->stages);
        enum err code = try_to_run(narrow, job, false, err);
        if (!err_is_shortage(code) || !may_wait) return code;
        wait_for_others(narrow->stages);
    }
}

static void run_when_there_is_room(struct narrow *narrow, struct job *job) {
    const struct narrow_options *options = &narrow->options;
    struct error err;
    enum err code = ERR_OK;
    /* Nobody runs beside a suspect. Where guards make it too large, it runs without. */
    if (job->delivery->is_suspect) code = try_to_run(narrow, job, true, &err);
    if (!job->delivery->is_suspect || err_is_shortage(code))
        code = run_beside_others(narrow, job, &err);
    if (code == ERR_OK) options->on_done(options->context, &job, 1);
    else options->on_failed(options->context, job, &err);
    batch_recycle(&narrow->batch);
}

static void run_narrow(void *context, uint32_t index) {
    struct narrow *narrow = context;
    void *item;
    while (queue_pop(narrow->queue, &item, 1, -1) == 1) run_when_there_is_room(narrow, item);
}

enum err narrow_start(struct stages *stages, const struct narrow_options *options,
    struct narrow **ret, struct error *err) {
    struct narrow *narrow = calloc(1, sizeof *narrow);
    if (narrow != NULL) narrow->queue = queue_create(stages_jobs_max(stages));
    if (narrow == NULL || narrow->queue == NULL) {
        free(narrow);
        return error_set(
            err, ERR_NO_MEMORY, 0, "give the process more memory", "no memory for a queue");
    }
    narrow->stages = stages;
    narrow->options = *options;
    narrow->batch_id = UINT64_MAX;
    enum err code = stream_lease_take(stages->leases, false, &narrow->lease, err);
    narrow->context = (struct batch_context){.device = &stages->device,
        .device_pool = stages->device_pool,
        .pinned_pool = stages->pinned_pool,
        .statics = stages->statics,
        .device_counters = &stages->device_counters[stages->settings->lanes],
        .pinned_counters = &stages->pinned_counters[stages->settings->lanes],
        .counters = stages->counters,
        .leases = stages->leases,
        .tenancy = stages->tenancy,
        .stream = narrow->lease.stream,
        .state = stages->state,
        .lane = stages->settings->lanes,
        .jobs_max = 1};
    if (code == ERR_OK) code = batch_init(&narrow->batch, &narrow->context, 0, err);
    const struct crew_options crew = {
        .name = "narrow", .count = 1, .run = run_narrow, .context = narrow};
    if (code == ERR_OK) code = crew_start(&crew, &narrow->crew, err);
    if (code == ERR_OK) *ret = narrow;
    else narrow_stop(narrow);
    return code;
}

void narrow_stop(struct narrow *narrow) {
    if (narrow == NULL) return;
    struct error err;
    queue_close(narrow->queue);
    crew_join(&narrow->crew);
    bool is_idle = narrow->lease.stream == NULL ||
                   stream_wait(&narrow->stages->device, narrow->lease.stream, &err) == ERR_OK;
    (is_idle ? batch_fini : batch_abandon)(&narrow->batch);
    if (is_idle) (void)!stream_lease_release(narrow->stages->leases, &narrow->lease, &err);
    queue_destroy(narrow->queue);
    free(narrow);
}

void narrow_push(struct narrow *narrow, struct job *job) {
    queue_must_push(narrow->queue, job);
}
