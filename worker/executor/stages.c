#include "executor/stages.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/pulse.h"
#include "base/text.h"
#include "executor/admission.h"
#include "executor/control.h"
#include "executor/devices.h"
#include "executor/fitness.h"
#include "executor/flow.h"
#include "executor/narrow.h"
#include "executor/reload.h"
#include "executor/retries.h"
#include "executor/suspects.h"
#include "executor/turns.h"
#include "gpu/profile.h"
#include "metrics/reporter.h"
#include "prepare/carriers.h"
#include "state/fetches.h"

enum {
    PUBLISH_TIMEOUT_MS = 30000,
    STATICS_SHARE = 32,
    STAGING_EACH = 4, /* of both kinds of preparation threads: one is filled, one is copied */
    DEVICE_POOL_MIN = 256 << 20,
    PINNED_POOL_MIN = 128 << 20
};

uint32_t stages_jobs_max(const struct stages *stages) {
    return stages->settings->limits.jobs_in_flight + TURNS_ASIDE_MAX + 1;
}

static enum err open_device(struct stages *stages, struct error *err) {
    const struct settings *settings = stages->settings;
    const struct gpu_driver *driver;
    enum err code = profile_open(settings->profile.nvtx_library, err);
    if (code != ERR_OK) return code;
    code = devices_open_driver(settings, &driver, err);
    if (code != ERR_OK) return code;
    return device_open(&stages->device, driver, (int)stages->device_index, err);
}

/* As the supervisor saw them, unless they have changed since: then nothing is taken either. */
static enum err load_programs(struct stages *stages, struct error *err) {
    struct problems problems;
    problems_init(&problems);
    struct registry *registry = fitness_load_programs(stages->settings, NULL, NULL, &problems);
    enum err code = problems_check(&problems, err);
    problems_fini(&problems);
    if (code == ERR_OK) code = reload_begin(stages, registry, err);
    if (code != ERR_OK) registry_destroy(registry);
    return code;
}

static enum err start_editions(struct stages *stages, struct error *err) {
    enum err code = modules_create(&stages->device, MODULES_MAX, &stages->modules, err);
    if (code == ERR_OK)
        code = editions_create(stages->modules, &stages->device.limits, &stages->editions, err);
    return code == ERR_OK ? load_programs(stages, err) : code;
}

static void describe_self(struct stages *stages) {
    if (gethostname(stages->host, sizeof stages->host - 1) != 0) stages->host[0] = 0;
    text_mend(stages->host);
    text_mend(stages->device.name);
    stages->identity = (struct identity){.host = stages->host,
        .device = stages->device.name,
        .device_index = stages->device_index,
        .version = GPU_WORKER_VERSION};
}

/* Executors of several GPUs share a configuration, but not a cache. */
static enum err open_blobs(struct stages *stages, struct error *err) {
    const struct settings *settings = stages->settings;
    struct blobs_options options = {.dir = settings->blobs.dir,
        .cache_bytes = settings->blobs.cache_bytes,
        .bytes_max = settings->blobs.bytes_max,
        /* A job's own, and a static on its way: one job always fits. */
        .held_bytes_max = settings->limits.job_bytes + settings->blobs.bytes_max,
        .max_age_hours = settings->blobs.max_age_hours,
        .timeout_ms = settings->blobs.timeout_ms,
        .on_not_cached = flow_on_not_cached,
        .context = stages};
    char *cache_dir = NULL;
    if (settings->blobs.url[0] != 0) {
        options.url = settings->blobs.url;
        (void)mkdir(settings->blobs.cache_dir, 0700); /* else opening what is in it fails */
        if (asprintf(
                &cache_dir, "%s/gpu%" PRIu32, settings->blobs.cache_dir, stages->device_index) < 0)
            return error_set(
                err, ERR_NO_MEMORY, 0, "give the process more memory", "no memory for a path");
        options.cache_dir = cache_dir;
    } else if (settings->blobs.dir[0] == 0) {
        return ERR_OK;
    }
    enum err code = blobs_create(&options, &stages->blobs, err);
    free(cache_dir);
    return code;
}

static enum err start_publisher(struct stages *stages, struct error *err) {
    struct publisher_options options = {.sink = stages->sink,
        .identity = &stages->identity,
        .blobs = stages->settings->results.inline_max_bytes > 0 ? stages->blobs : NULL,
        .inline_bytes_max = stages->settings->results.inline_max_bytes,
        .state = stages->state,
        .queue_length = stages_jobs_max(stages),
        .on_encoded = flow_on_encoded,
        .on_not_stored = flow_on_not_stored_outputs,
        .on_queued = flow_on_queued,
        .on_published = flow_on_published,
        .on_failed = flow_on_publish_failed,
        .context = stages};
    stages->sink = NULL;
    return publisher_start(&options, &stages->publisher, err);
}

static void on_revoked(void *context, const char *topic, int32_t partition) {
    struct stages *stages = context;
    if (stages->residents != NULL)
        residents_revoke(stages->residents, topic, partition, clock_ns());
    retries_hand_back(stages->retries, topic, partition);
    (void)turns_hand_back(stages->turns, topic, partition);
}

static enum fetch_verdict ask_fetch(
    void *context, const char *topic, int32_t partition, int64_t offset) {
    static const enum fetch_verdict verdicts[] = {
        [FETCHES_READ] = FETCH_READ, [FETCHES_TRY] = FETCH_TRY, [FETCHES_ASIDE] = FETCH_ASIDE};
    struct stages *stages = context;
    pthread_mutex_lock(&stages->lock); /* what is committed moves them, on another thread */
    enum fetches_verdict verdict = fetches_ask(stages->state, topic, partition, offset);
    pthread_mutex_unlock(&stages->lock);
    return verdicts[verdict];
}

static void tell_fetch(
    void *context, enum fetch_event event, const char *topic, int32_t partition) {
    static void (*const tells[])(struct state *, const char *, int32_t) = {
        [FETCH_TRIAL_BEGINS] = fetches_try,
        [FETCH_TRIAL_INFLATES] = fetches_inflate,
        [FETCH_TRIAL_PASSED] = fetches_pass};
    struct stages *stages = context;
    pthread_mutex_lock(&stages->lock);
    tells[event](stages->state, topic, partition);
    pthread_mutex_unlock(&stages->lock);
}

static void watch_source(struct stages *stages) {
    const struct fetch_guard guard = {ask_fetch, tell_fetch, stages};
    source_watch_revoked(stages->source, on_revoked, stages);
    if (stages->suspects == NULL) return;
    source_watch_committed(stages->source, suspects_on_committed, stages->suspects);
    source_guard_fetches(stages->source, &guard);
}

static enum err start_residents(struct stages *stages, struct error *err) {
    const struct settings *settings = stages->settings;
    if (settings->ordering != ORDERING_KEY) return ERR_OK;
    const struct residents_options options = {.device = &stages->device,
        .pool = stages->device_pool,
        .statics = stages->statics,
        .budget = &stages->device_budget,
        .idle_ns = settings->residents.idle_timeout_ms * 1000000ull,
        .entries_max = settings->residents.entries_max};
    return residents_create(&options, &stages->residents, err);
}

static enum isolation isolation_of(const struct settings *settings) {
    static const enum isolation isolations[] = {[ISOLATE_NONE] = ISOLATION_NONE,
        [ISOLATE_PROGRAM] = ISOLATION_PROGRAM,
        [ISOLATE_KEY] = ISOLATION_KEY};
    return isolations[settings->batch.isolation];
}

static enum err start_prepare(struct stages *stages, struct error *err) {
    stages->carriers = carriers_create();
    if (stages->carriers == NULL)
        return error_set(err, ERR_NO_MEMORY, 0, "give the process more memory",
            "no memory to note which jobs bring statics");
    struct prepare_options options = {.device = &stages->device,
        .carriers = stages->carriers,
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
        .on_failed = flow_on_prepare_failed,
        .on_waiting = flow_on_waiting,
        .on_resumed = flow_on_resumed,
        .on_dropped = flow_on_dropped,
        .on_not_stored = flow_on_not_stored,
        .context = stages};
    return prepare_create(&options, &stages->prepare, err);
}

/* What the driver may hand out: what is taken for good, and one largest job beside it. */
static uint64_t pool_bytes(uint64_t configured, uint64_t taken, uint64_t job, uint64_t least) {
    uint64_t bytes = taken + job > least ? taken + job : least;
    return configured != 0 ? configured : bytes;
}

static uint64_t statics_bytes(const struct stages *stages) {
    uint64_t configured = stages->settings->statics.budget_bytes;
    return configured != 0 ? configured : stages->device.limits.memory_bytes / STATICS_SHARE;
}

static enum err start_statics(struct stages *stages, struct error *err) {
    const struct statics_options options = {.device = &stages->device,
        .leases = stages->leases,
        .device_pool = stages->device_pool,
        .pinned_pool = stages->pinned_pool,
        .budget_bytes = statics_bytes(stages),
        .entries_max = stages->settings->statics.entries_max,
        .staging_count = STAGING_EACH * stages->settings->prepare.threads};
    return statics_create(&options, &stages->statics, err);
}

static enum err create_counters(struct stages *stages, struct error *err) {
    size_t count = stages->settings->lanes + 2;
    stages->pool_user_count = count;
    stages->device_counters = calloc(count, sizeof stages->device_counters[0]);
    stages->pinned_counters = calloc(count, sizeof stages->pinned_counters[0]);
    stages->counters = counters_create();
    if (stages->device_counters != NULL && stages->pinned_counters != NULL &&
        stages->counters != NULL)
        return ERR_OK;
    return error_set(err, ERR_NO_MEMORY, 0, "give the process more memory", "no memory to count");
}

/* Memory that passes from one tenant to another is wiped. */
static enum err keep_apart(struct stages *stages, struct error *err) {
    if (stages->device.limits.reaches_host && !stages->device.on_cpu)
        log_line(LOG_WARN,
            "batch.isolation does not cover the host's memory here: kernels can read all memory of "
            "this process, messages of all tenants among it; see Tenants in worker/README.md");
    enum err code = pool_start_wiping(stages->device_pool, err);
    if (code == ERR_OK) code = pool_start_wiping(stages->pinned_pool, err);
    if (code == ERR_OK)
        code = tenancy_create(&stages->device, stages->leases, &stages->tenancy, err);
    return code;
}

static enum err start_pools(struct stages *stages, struct error *err) {
    const struct settings *settings = stages->settings;
    uint64_t slabs = (uint64_t)settings->lanes * settings->lane_depth * settings->lane_slab_bytes;
    uint64_t staging = (uint64_t)STAGING_EACH * settings->prepare.threads * STAGING_BYTES;
    uint64_t job = settings->limits.job_bytes;
    budget_init(&stages->device_budget, "device pool", ERR_DEVICE_MEMORY,
        pool_bytes(
            settings->pools.device_bytes, slabs + statics_bytes(stages), job, DEVICE_POOL_MIN));
    budget_init(&stages->pinned_budget, "pinned pool", ERR_NO_MEMORY,
        pool_bytes(settings->pools.pinned_bytes, 2 * slabs + staging, job, PINNED_POOL_MIN));
    enum err code = create_counters(stages, err);
    if (code == ERR_OK)
        code = pool_create(
            &stages->device, POOL_DEVICE, &stages->device_budget, &stages->device_pool, err);
    if (code == ERR_OK)
        code = pool_create(
            &stages->device, POOL_PINNED, &stages->pinned_budget, &stages->pinned_pool, err);
    if (code == ERR_OK) code = lease_pool_create(&stages->device, &stages->leases, err);
    if (code == ERR_OK && settings->batch.isolation != ISOLATE_NONE) code = keep_apart(stages, err);
    return code;
}

static enum err start_lanes(struct stages *stages, struct error *err) {
    const struct settings *settings = stages->settings;
    stages->ready = queue_create(stages_jobs_max(stages));
    if (stages->ready == NULL)
        return error_set(err, ERR_NO_MEMORY, 0, "lower limits.jobs_in_flight",
            "no memory for the queue of ready jobs");
    struct lanes_options options = {.device = &stages->device,
        .device_pool = stages->device_pool,
        .pinned_pool = stages->pinned_pool,
        .statics = stages->statics,
        .device_counters = stages->device_counters,
        .pinned_counters = stages->pinned_counters,
        .counters = stages->counters,
        .leases = stages->leases,
        .count = settings->lanes,
        .depth = settings->lane_depth,
        .slab_bytes = settings->lane_slab_bytes,
        .can_map = settings->batch.stream == STREAM_MAPPED && stages->device.limits.can_map,
        .batch_jobs_max = settings->batch.jobs,
        .batch_span_ns = settings->batch.span_ms * 1000000ull,
        .tenancy = stages->tenancy,
        .state = stages->state,
        .ready = stages->ready,
        .still_wanted = flow_still_wanted,
        .on_done = flow_on_done,
        .on_released = flow_on_released,
        .on_starved = flow_on_starved,
        .on_lost = flow_on_lost,
        .context = stages};
    return lanes_start(&options, &stages->lanes, err);
}

static enum err start_control(struct stages *stages, struct error *err) {
    struct reader *reader = stages->control_reader;
    stages->control_reader = NULL;
    return control_start(stages, reader, &stages->control, err);
}

static void read_in_flight(void *context, struct gauges *ret) {
    struct stages *stages = context;
    pthread_mutex_lock(&stages->lock);
    ret->jobs_in_flight = stages->in_flight;
    ret->bytes_in_flight = stages->bytes_in_flight;
    ret->jobs_starved = stages->starved;
    pthread_mutex_unlock(&stages->lock);
    ret->jobs_ready = queue_length(stages->ready);
    ret->jobs_retrying = retries_count(stages->retries);
}

static enum err start_reporter(struct stages *stages, struct error *err) {
    const struct reporter_options options = {.sink = stages->telemetry,
        .collector = &stages->collector,
        .identity = &stages->identity,
        .interval_ms = stages->settings->telemetry.interval_ms};
    stages->collector = (struct collector){.counters = stages->counters,
        .source = stages->source,
        .device_books = {stages->device_counters, stages->pool_user_count},
        .pinned_books = {stages->pinned_counters, stages->pool_user_count},
        .statics = stages->statics,
        .residents = stages->residents,
        .modules = stages->modules,
        .leases = stages->leases,
        .read_in_flight = read_in_flight,
        .context = stages};
    stages->telemetry = NULL;
    return reporter_start(&options, &stages->reporter, err);
}

static void log_ready(struct stages *stages) {
    struct edition *edition = editions_take(stages->editions);
    log_line(LOG_INFO, "ready: %s through the %s driver, %" PRIu32 " lanes, %zu programs",
        stages->device.name, stages->device.driver->name, stages->settings->lanes,
        registry_count(edition->registry));
    shared_release(&edition->shared);
}

enum err stages_start(
    struct stages *stages, const struct executor_options *options, struct error *err) {
    *stages = (struct stages){.settings = options->settings,
        .stop = options->stop,
        .source = options->source,
        .sink = options->sink,
        .control_reader = options->control,
        .telemetry = options->telemetry,
        .on_lost = options->on_lost,
        .device_index = options->device,
        .state = options->state};
    pthread_mutex_init(&stages->lock, NULL);
    pthread_cond_init(&stages->changed, NULL);
    enum err code = open_device(stages, err);
    if (code == ERR_OK) code = suspects_start(stages, &stages->suspects, err);
    pulse_start("start");
    pulse_busy();
    if (code == ERR_OK) code = start_editions(stages, err);
    if (code != ERR_OK) return code;
    pulse_busy();
    describe_self(stages);
    code = open_blobs(stages, err);
    if (code == ERR_OK) code = start_publisher(stages, err);
    if (code == ERR_OK) code = start_pools(stages, err);
    if (code == ERR_OK) code = start_statics(stages, err);
    if (code == ERR_OK) code = start_residents(stages, err);
    if (code == ERR_OK) code = turns_start(stages, &stages->turns, err);
    if (code == ERR_OK) code = retries_start(stages, &stages->retries, err);
    pulse_busy(); /* memory of the device may take its time */
    if (code == ERR_OK) code = start_lanes(stages, err);
    if (code == ERR_OK) code = start_prepare(stages, err);
    if (code == ERR_OK) code = narrow_start(stages, &stages->narrow, err);
    if (code == ERR_OK) code = admission_start(stages, &stages->admission, err);
    if (code == ERR_OK) code = start_control(stages, err);
    if (code == ERR_OK) code = start_reporter(stages, err);
    if (code == ERR_OK)
        code = reload_start(stages, options->reloads, options->is_supervised, &stages->reload, err);
    if (code == ERR_OK) watch_source(stages);
    if (code == ERR_OK) log_ready(stages);
    return code;
}

/* ---- stop ---- */

/* Jobs that no lane took, because the GPU was lost: they were not answered and come again. */
static void drop_ready(struct stages *stages) {
    void *item;
    if (stages->ready == NULL) return;
    queue_close(stages->ready);
    while (queue_pop(stages->ready, &item, 1, 0) == 1) flow_drop(stages, item);
}

/* With the last of the books. */
static void destroy_pools(struct stages *stages) {
    size_t last = stages->pool_user_count - 1;
    if (stages->pinned_pool != NULL)
        pool_destroy(stages->pinned_pool, &stages->pinned_counters[last]);
    if (stages->device_pool != NULL)
        pool_destroy(stages->device_pool, &stages->device_counters[last]);
    free(stages->pinned_counters);
    free(stages->device_counters);
    counters_destroy(stages->counters);
}

enum err stages_stop(struct stages *stages, struct error *err) {
    reload_stop(stages->reload);
    /* What stands behind may still send jobs to the narrow path, which needs nothing but prepare.
     */
    retries_finish(stages->retries);
    admission_destroy(stages->admission);
    turns_finish(stages->turns);
    prepare_finish(stages->prepare);
    lanes_stop(stages->lanes);
    drop_ready(stages);
    narrow_stop(stages->narrow);
    prepare_destroy(stages->prepare);
    control_stop(stages->control);
    reader_destroy(stages->control_reader);
    enum err code = publisher_stop(stages->publisher, PUBLISH_TIMEOUT_MS, err);
    sink_destroy(stages->sink);
    struct error close_error;
    enum err closed =
        source_close(stages->source, (int)stages->settings->drain_timeout_ms, &close_error);
    if (code == ERR_OK && closed != ERR_OK) {
        code = closed;
        *err = close_error;
    }
    turns_destroy(stages->turns); /* the source has told what it gave back */
    carriers_destroy(stages->carriers);
    suspects_stop(stages->suspects);
    reporter_stop(stages->reporter); /* while everything that it counts is still there */
    sink_destroy(stages->telemetry);
    retries_destroy(stages->retries);
    queue_destroy(stages->ready);
    residents_destroy(stages->residents);
    source_destroy(stages->source);
    blobs_destroy(stages->blobs);
    statics_destroy(stages->statics);
    tenancy_destroy(stages->tenancy);
    lease_pool_destroy(stages->leases);
    destroy_pools(stages);
    editions_destroy(stages->editions);
    modules_destroy(stages->modules);
    device_close(&stages->device);
    pthread_cond_destroy(&stages->changed);
    pthread_mutex_destroy(&stages->lock);
    return code;
}
