#include "pipeline/lifecycle.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log_limit.h"
#include "base/pulse.h"
#include "base/text.h"
#include "batch/graphs.h"
#include "gpu/locality.h"
#include "metrics/meter.h"
#include "metrics/reporter.h"
#include "pipeline/admission.h"
#include "pipeline/control.h"
#include "pipeline/ends.h"
#include "pipeline/flow.h"
#include "pipeline/ordering.h"
#include "pipeline/reload.h"
#include "pipeline/resources.h"
#include "pipeline/retries.h"
#include "pipeline/serial.h"
#include "pipeline/spare.h"
#include "prepare/providers.h"
#include "publish/feed.h"
#include "quarantine/fetches.h"
#include "quarantine/suspects.h"
#include "trace/tracer.h"

enum { PUBLISH_TIMEOUT_MS = 30000 };

static bool keep_waiting(void *context, struct delivery *delivery) {
    struct stages *stages = context;
    struct error err;
    if (delivery_keep(delivery)) return true;
    error_set(&err, ERR_NO_MEMORY, 0, "lower limits.bytes_in_flight",
        "no memory for a message of %zu bytes", delivery->payload.size);
    stages_drop(stages, delivery);
    stages_fail(stages, &err);
    return false;
}

static void drop_waiting(void *context, struct delivery *delivery) {
    stages_drop(context, delivery);
}

static void take_life(struct stages *stages, const struct executor_life *life) {
    stages->source = life->source;
    stages->sink = life->sink;
    stages->telemetry = life->telemetry;
    stages->progress = life->progress;
    stages->control_reader = life->control;
    stages->state = life->state;
}

/* The stages above are ready for any life. A spare waits here for its own. */
static enum err begin_life(struct stages *stages, struct error *err) {
    const struct executor_options *options = stages->options;
    struct executor_life life;
    enum err code = options->spare_fd > 0 ? spare_wait(stages, options->spare_fd, err) : ERR_OK;
    if (code != ERR_OK || options->begin == NULL) return code;
    code = options->begin(options->context, &life, err);
    if (code == ERR_OK) take_life(stages, &life);
    return code;
}

/* Not while jobs wait for memory, which those that rest may hold. */
static uint64_t park(void *context, bool are_parked) {
    struct stages *stages = context;
    bool parks = are_parked && stages->flight.waiting_for_memory == 0;
    size_t parked = stages->ready != NULL ? ready_park_long(stages->ready, parks) : 0;
    return parks && parked > 0 ? parked + ordering_count_aside(stages) : 0;
}

/* From here on a start that hangs is seen. */
static enum err start_quarantine(struct stages *stages, struct error *err) {
    const struct settings *settings = stages->settings;
    const struct suspension_rules rules = {.convictions = settings->suspend.convictions,
        .window_ms = settings->suspend.window_ms,
        .for_ms = settings->suspend.for_ms};
    const struct suspects_options options = {.state = stages->state,
        .shape = {.lanes = settings->lanes + 1, /* and the serial fallback */
            .depth = settings->lane_depth,
            .batch_jobs = settings->batch.jobs},
        .device = stages->device_index,
        .uuid = stages->device.uuid,
        .rules = rules,
        .keeps_key_order = settings->ordering == ORDERING_KEY,
        .lock = &stages->flight.lock,
        .changed = &stages->flight.changed,
        .in_flight = &stages->flight.messages,
        .park = park,
        .keep = keep_waiting,
        .drop = drop_waiting,
        .context = stages};
    enum err code = suspects_start(&options, &stages->suspects, err);
    stages->refusals =
        (struct refusals){.state = stages->state, .suspects = stages->suspects, .rules = rules};
    pulse_start("start");
    state_set_programs(
        stages->state, (uint32_t)registry_count(editions_current(stages->editions)->registry));
    return code;
}

static void describe_self(struct stages *stages) {
    if (gethostname(stages->host, sizeof stages->host - 1) != 0) stages->host[0] = 0;
    text_mend(stages->host);
    text_mend(stages->device.name);
    stages->identity = (struct identity){.host = stages->host,
        .device = stages->device.name,
        .device_index = stages->device_index,
        .uuid = stages->device.uuid,
        .version = GPU_WORKER_VERSION};
}

static enum err start_publisher(struct stages *stages, struct error *err) {
    struct publisher_options options = {.sink = stages->sink,
        .identity = &stages->identity,
        .blobs = stages->settings->results.inline_max_bytes > 0 ? stages->blobs : NULL,
        .inline_bytes_max = stages->settings->results.inline_max_bytes,
        .state = stages->state,
        .queue_length = stages_jobs_max(stages),
        .on_encoded = ends_on_encoded,
        .on_not_uploaded = ends_on_not_uploaded,
        .on_queued = ends_on_queued,
        .on_published = ends_on_published,
        .on_failed = flow_on_publish_failed,
        .context = stages};
    stages->sink = NULL;
    describe_self(stages);
    return publisher_start(&options, &stages->publisher, err);
}

static void on_spans_failed(void *context, const struct error *err) {
    static struct log_limit limit = LOG_LIMIT_ONCE_A_MINUTE;
    if (!log_limit_take(&limit, clock_ns(), NULL)) return;
    log_error_event(LOG_WARN, LOG_EVENT("spans_unexported"), "spans could not be exported", err);
}

static enum err start_tracing(struct stages *stages, struct error *err) {
    const struct settings *settings = stages->settings;
    const struct tracer_options options = {.url = settings->tracing.otlp_url,
        .identity = &stages->identity,
        .group = settings->kafka.group,
        .results_topic = settings->topics.results,
        .letters_topic = settings->topics.dead_letters,
        .counters = &stages->board->counters,
        .on_failed = on_spans_failed};
    if (settings->tracing.otlp_url[0] == 0) return ERR_OK;
    return tracer_start(&options, &stages->tracer, err);
}

static void on_revoked(void *context, const char *topic, int32_t partition) {
    struct stages *stages = context;
    if (stages->residents != NULL)
        residents_revoke(stages->residents, topic, partition, clock_ns());
    retries_hand_back(stages->retries, topic, partition);
    ordering_hand_back(stages, topic, partition);
}

static enum fetch_verdict ask_fetch(
    void *context, const char *topic, int32_t partition, int64_t offset) {
    static const enum fetch_verdict verdicts[] = {
        [FETCHES_READ] = FETCH_READ, [FETCHES_TRY] = FETCH_TRY, [FETCHES_ASIDE] = FETCH_ASIDE};
    struct stages *stages = context;
    flight_lock(&stages->flight); /* what is committed moves them, on another thread */
    enum fetches_verdict verdict = fetches_ask(stages->state, topic, partition, offset);
    flight_unlock(&stages->flight);
    return verdicts[verdict];
}

static void tell_fetch(
    void *context, enum fetch_event event, const char *topic, int32_t partition) {
    static void (*const tells[])(struct state *, const char *, int32_t) = {
        [FETCH_TRIAL_BEGINS] = fetches_try,
        [FETCH_TRIAL_INFLATES] = fetches_inflate,
        [FETCH_TRIAL_PASSED] = fetches_pass};
    struct stages *stages = context;
    flight_lock(&stages->flight);
    tells[event](stages->state, topic, partition);
    flight_unlock(&stages->flight);
}

/* Nothing is told before it is polled. */
static enum err watch_source(struct stages *stages, struct error *err) {
    const struct fetch_guard guard = {ask_fetch, tell_fetch, stages};
    source_watch_revoked(stages->source, on_revoked, stages);
    if (stages->suspects == NULL) return ERR_OK;
    source_watch_committed(stages->source, suspects_on_committed, stages->suspects);
    source_guard_fetches(stages->source, &guard);
    return ERR_OK;
}

static enum isolation isolation_of(const struct settings *settings) {
    static const enum isolation isolations[] = {[ISOLATE_NONE] = ISOLATION_NONE,
        [ISOLATE_PROGRAM] = ISOLATION_PROGRAM,
        [ISOLATE_KEY] = ISOLATION_KEY};
    return isolations[settings->batch.isolation];
}

static enum err start_providers(struct stages *stages, struct error *err) {
    stages->providers = providers_create();
    if (stages->providers != NULL) return ERR_OK;
    return error_no_memory(err, "no memory to note which jobs bring statics");
}

static enum err start_prepare(struct stages *stages, struct error *err) {
    struct prepare_options options = {.device = &stages->device,
        .providers = stages->providers,
        .statics = stages->statics,
        .residents = stages->residents,
        .blobs = stages->blobs,
        .isolation = isolation_of(stages->settings),
        .threads = stages->settings->prepare.threads,
        .queue_length = stages_jobs_max(stages),
        .still_wanted = flow_still_wanted,
        .on_begin = flow_on_begin,
        .on_end = flow_on_end,
        .on_ready = flow_on_ready,
        .on_failed = flow_on_failed,
        .on_waiting = flow_on_waiting,
        .on_resumed = flow_on_resumed,
        .on_dropped = ends_on_dropped,
        .on_not_stored = flow_on_not_stored,
        .context = stages};
    return prepare_create(&options, &stages->prepare, err);
}

/* The intake needs a core, too. */
static void warn_of_spinning(const struct settings *settings) {
    uint32_t cpus = locality_count_cpus();
    if (settings->lane_wait != LANE_WAIT_SPIN || cpus == 0 || settings->lanes < cpus) return;
    log_line(LOG_WARN,
        "lane_wait: spin needs more CPUs than lanes: %" PRIu32 " CPUs, %" PRIu32
        " lanes; lower lanes, or set lane_wait: block",
        cpus, settings->lanes);
}

static bool uses_graphs(const struct stages *stages) {
    if (stages->settings->batch.graphs == GRAPHS_NONE) return false;
    if (graphs_can(stages->device.driver)) return true;
    log_line(LOG_WARN,
        "batch.graphs: this driver lacks functions for graphs, so kernels are launched one by one; "
        "install a driver of CUDA 12 or newer");
    return false;
}

static enum err start_lanes(struct stages *stages, struct error *err) {
    const struct settings *settings = stages->settings;
    const struct ready_options ready = {.lanes = settings->lanes,
        .batch_jobs_max = settings->batch.jobs,
        .span_ns = settings->batch.span_ms * 1000000ull,
        .slab_bytes = settings->lane_slab_bytes,
        .multiprocessors = stages->device.limits.multiprocessors,
        .long_jobs_max = settings->limits.long_jobs,
        .state = stages->state,
        .spins = settings->lane_wait == LANE_WAIT_SPIN};
    stages->ready = ready_create(&ready);
    if (stages->ready == NULL) return error_no_memory(err, "no memory for the queue of ready jobs");
    warn_of_spinning(settings);
    struct lanes_options options = {.device = &stages->device,
        .device_pool = stages->device_pool,
        .pinned_pool = stages->pinned_pool,
        .statics = stages->statics,
        .device_counters = stages->device_counters,
        .pinned_counters = stages->pinned_counters,
        .counters = &stages->board->counters,
        .leases = stages->leases,
        .count = settings->lanes,
        .depth = settings->lane_depth,
        .slab_bytes = settings->lane_slab_bytes,
        .can_map = settings->batch.stream == STREAM_MAPPED && stages->device.limits.can_map,
        .has_graphs = uses_graphs(stages),
        .batch_jobs_max = settings->batch.jobs,
        .tenancy = stages->tenancy,
        .state = stages->state,
        .ready = stages->ready,
        .admit = admission_admit,
        .start = flow_start,
        .on_done = flow_on_done,
        .on_refused = flow_on_failed,
        .on_progress = flow_on_progress,
        .on_released = ends_on_released,
        .on_memory_short = flow_on_memory_short,
        .on_lost = ends_on_lost,
        .context = stages};
    return lanes_start(&options, &stages->lanes, err);
}

static enum err start_serial(struct stages *stages, struct error *err) {
    const struct serial_options options = {.start = flow_start,
        .on_done = flow_on_done,
        .on_progress = flow_on_progress,
        .on_failed = flow_on_failed,
        .context = stages};
    return serial_start(stages, &options, &stages->serial, err);
}

static enum err start_key_order(struct stages *stages, struct error *err) {
    return ordering_start(stages, &stages->key_order, err);
}

static enum err start_admission(struct stages *stages, struct error *err) {
    return admission_start(stages, &stages->admission, err);
}

static void on_handed_back(struct stages *stages, struct job *job) {
    job_end(stages, job, END_HANDED_BACK);
}

static enum err start_retries(struct stages *stages, struct error *err) {
    const struct retries_options options = {
        .still_wanted = flow_still_wanted, .on_due = flow_plan, .on_handed_back = on_handed_back};
    return retries_start(stages, &options, &stages->retries, err);
}

static enum err start_feed(struct stages *stages, struct error *err) {
    struct sink *sink = stages->progress;
    stages->progress = NULL;
    return sink != NULL ? feed_start(sink, flow_on_not_shown, &stages->feed, err) : ERR_OK;
}

static enum err start_control(struct stages *stages, struct error *err) {
    struct reader *reader = stages->control_reader;
    stages->control_reader = NULL;
    return control_start(stages, reader, &stages->control, err);
}

static void read_in_flight(void *context, struct gauges *ret) {
    struct stages *stages = context;
    flight_lock(&stages->flight);
    ret->jobs_in_flight = stages->flight.messages;
    ret->bytes_in_flight = stages->flight.bytes;
    ret->jobs_starved = stages->flight.waiting_for_memory;
    flight_unlock(&stages->flight);
    ret->jobs_ready = ready_count(stages->ready);
    ret->jobs_long = ready_long_count(stages->ready);
    ret->jobs_retrying = retries_count(stages->retries);
}

static enum err start_meter(struct stages *stages, struct error *err) {
    return meter_start(stages->device.uuid, &stages->meter, err);
}

static enum err start_reporter(struct stages *stages, struct error *err) {
    const struct reporter_options options = {.sink = stages->telemetry,
        .board = stages->board,
        .collector = &stages->collector,
        .identity = &stages->identity,
        .meter = stages->meter,
        .interval_ms = stages->settings->telemetry.interval_ms};
    stages->collector = (struct collector){.counters = &stages->board->counters,
        .source = stages->source,
        .device_books = {stages->device_counters, stages->pool_user_count},
        .pinned_books = {stages->pinned_counters, stages->pool_user_count},
        .statics = stages->statics,
        .residents = stages->residents,
        .modules = stages->modules,
        .leases = stages->leases,
        .device_budget = &stages->device_budget,
        .pinned_budget = &stages->pinned_budget,
        .statics_budget_bytes = resources_statics_bytes(stages),
        .read_in_flight = read_in_flight,
        .context = stages};
    stages->telemetry = NULL;
    return reporter_start(&options, &stages->reporter, err);
}

static void log_ready(struct stages *stages) {
    struct edition *edition = editions_take(stages->editions, 1);
    log_event(LOG_INFO, LOG_EVENT("ready"),
        "ready: %s through the %s driver, %" PRIu32 " lanes, %zu programs", stages->device.name,
        stages->device.driver->name, stages->settings->lanes, registry_count(edition->registry));
    shared_release(&edition->shared);
}

static enum err start_reload(struct stages *stages, struct error *err) {
    return reload_start(stages, stages->reloads, stages->is_supervised, &stages->reload, err);
}

/* ---- finish: what a stage has runs to its end, and nothing new is taken ---- */

static enum err finish_reload(struct stages *stages, struct error *err) {
    reload_stop(stages->reload);
    return ERR_OK;
}

static enum err finish_retries(struct stages *stages, struct error *err) {
    retries_finish(stages->retries);
    return ERR_OK;
}

static enum err finish_admission(struct stages *stages, struct error *err) {
    admission_finish(stages->admission);
    return ERR_OK;
}

static enum err finish_key_order(struct stages *stages, struct error *err) {
    key_order_finish(stages->key_order);
    return ERR_OK;
}

static enum err finish_prepare(struct stages *stages, struct error *err) {
    prepare_finish(stages->prepare);
    return ERR_OK;
}

/* Jobs that no lane took, because the GPU was lost: they were not answered, and are read again. */
static void drop_ready(struct stages *stages) {
    struct job *job;
    if (stages->ready == NULL) return;
    ready_close(stages->ready);
    while ((job = ready_pop(stages->ready)) != NULL) job_end(stages, job, END_ABANDONED);
}

static enum err finish_lanes(struct stages *stages, struct error *err) {
    lanes_stop(stages->lanes);
    drop_ready(stages);
    return ERR_OK;
}

static enum err finish_serial(struct stages *stages, struct error *err) {
    serial_stop(stages->serial);
    return ERR_OK;
}

static enum err finish_providers(struct stages *stages, struct error *err) {
    prepare_drop_waiting(stages->prepare);
    return ERR_OK;
}

static enum err finish_publisher(struct stages *stages, struct error *err) {
    enum err code = publisher_stop(stages->publisher, PUBLISH_TIMEOUT_MS, err);
    sink_destroy(stages->sink);
    return code;
}

/* The source commits what was finished. */
static enum err finish_source(struct stages *stages, struct error *err) {
    if (stages->source == NULL) return ERR_OK;
    return source_close(stages->source, (int)stages->settings->drain_timeout_ms, err);
}

/* ---- destroy: nothing runs any more ---- */

static void destroy_reporter(struct stages *stages) {
    reporter_stop(stages->reporter); /* while everything that it counts is still there */
    sink_destroy(stages->telemetry);
}

/* All jobs are answered, and the code with which the process ends is theirs. */
static void destroy_meter(struct stages *stages) {
    stages->flight.summary.is_hung = !meter_stop(stages->meter);
    if (stages->flight.summary.is_hung)
        log_line(LOG_WARN, "NVML hangs, and is left as it is; check that nvidia-smi works");
}

/* The lanes have ended. */
static void destroy_feed(struct stages *stages) {
    feed_stop(stages->feed);
    sink_destroy(stages->progress);
}

static void destroy_tracing(struct stages *stages) {
    tracer_stop(stages->tracer);
}

static void destroy_control(struct stages *stages) {
    control_stop(stages->control);
    reader_destroy(stages->control_reader);
}

static void destroy_retries(struct stages *stages) {
    retries_destroy(stages->retries);
}

static void destroy_admission(struct stages *stages) {
    admission_destroy(stages->admission);
}

static void destroy_key_order(struct stages *stages) {
    key_order_destroy(stages->key_order);
}

static void destroy_prepare(struct stages *stages) {
    prepare_destroy(stages->prepare);
}

static void destroy_lanes(struct stages *stages) {
    ready_destroy(stages->ready);
}

static void destroy_providers(struct stages *stages) {
    providers_destroy(stages->providers);
}

static void destroy_source(struct stages *stages) {
    source_destroy(stages->source);
}

static void stop_quarantine(struct stages *stages) {
    suspects_stop(stages->suspects, err_is_sticky(stages->flight.failure.code));
}

/* ---- the table ---- */

/*
 * Started downwards; finished upwards, and then destroyed upwards. Each stage may use those above
 * it until it is destroyed, and sends jobs to any that are not finished: the serial fallback stands
 * above all that send jobs to it. Every function copes with a stage that was not started.
 */
static const struct stage {
    const char *name;
    enum err (*start)(struct stages *stages, struct error *err);
    enum err (*finish)(struct stages *stages, struct error *err); /* NULL: it has no jobs */
    void (*destroy)(struct stages *stages);                       /* NULL: it has ended then */
} table[] = {
    {"device", resources_open_device, NULL, resources_close_device},
    {"programs", resources_load_programs, NULL, resources_drop_programs},
    {"pools", resources_create_pools, NULL, resources_destroy_pools},
    {"life", begin_life, NULL, NULL},
    {"quarantine", start_quarantine, NULL, stop_quarantine},
    {"blobs", resources_open_blobs, NULL, resources_close_blobs},
    {"source", watch_source, finish_source, destroy_source},
    {"publisher", start_publisher, finish_publisher, NULL},
    {"feed", start_feed, NULL, destroy_feed},
    {"tracing", start_tracing, NULL, destroy_tracing},
    {"statics", resources_create_statics, NULL, resources_destroy_statics},
    {"residents", resources_create_residents, NULL, resources_destroy_residents},
    {"providers", start_providers, finish_providers, destroy_providers},
    {"serial fallback", start_serial, finish_serial, NULL},
    {"lanes", start_lanes, finish_lanes, destroy_lanes},
    {"prepare", start_prepare, finish_prepare, destroy_prepare},
    {"key order", start_key_order, finish_key_order, destroy_key_order},
    {"admission", start_admission, finish_admission, destroy_admission},
    {"retries", start_retries, finish_retries, destroy_retries},
    {"control", start_control, NULL, destroy_control},
    {"meter", start_meter, NULL, destroy_meter},
    {"reporter", start_reporter, NULL, destroy_reporter},
    {"reload", start_reload, finish_reload, NULL},
};

enum { STAGE_COUNT = sizeof table / sizeof table[0] };

enum err lifecycle_start(
    struct stages *stages, const struct executor_options *options, struct error *err) {
    *stages = (struct stages){.settings = options->settings,
        .stop = options->stop,
        .options = options,
        .on_lost = options->on_lost,
        .device_index = options->device,
        .sysfs = options->sysfs,
        .board = options->board,
        .reloads = options->reloads,
        .is_supervised = options->is_supervised};
    take_life(stages, &options->life);
    flight_init(&stages->flight, stages->settings->limits.result_bytes);
    pthread_mutex_init(&stages->rooms_lock, NULL);
    enum err code = ERR_OK;
    for (size_t i = 0; i < STAGE_COUNT && code == ERR_OK; i++) {
        log_line(LOG_DEBUG, "starting: %s", table[i].name);
        code = table[i].start(stages, err);
        pulse_busy(); /* each may take its time */
    }
    if (code == ERR_OK) log_ready(stages);
    return code;
}

enum err lifecycle_stop(struct stages *stages, struct error *err) {
    enum err code = ERR_OK;
    for (size_t i = STAGE_COUNT; i-- > 0;) {
        if (table[i].finish == NULL) continue;
        struct error failure;
        log_line(LOG_DEBUG, "finishing: %s", table[i].name);
        enum err finished = table[i].finish(stages, &failure);
        if (code != ERR_OK || finished == ERR_OK) continue;
        code = finished; /* the first one is told */
        *err = failure;
    }
    for (size_t i = STAGE_COUNT; i-- > 0;)
        if (table[i].destroy != NULL) table[i].destroy(stages);
    pthread_mutex_destroy(&stages->rooms_lock);
    flight_fini(&stages->flight);
    return code;
}
