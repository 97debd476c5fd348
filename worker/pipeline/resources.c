#include "pipeline/resources.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/log.h"
#include "gpu/locality.h"
#include "gpu/profile.h"
#include "pipeline/devices.h"
#include "pipeline/fitness.h"
#include "pipeline/flow.h"
#include "pipeline/reload.h"

enum {
    STATICS_SHARE = 32,
    KEY_SHARE = 4,    /* of what all residents may take, for those of a key */
    STAGING_EACH = 4, /* of both kinds of preparation threads: one is filled, one is copied */
    DEVICE_POOL_MIN = 256 << 20,
    PINNED_POOL_MIN = 128 << 20
};

/* Before the device is opened: what the driver starts and pins then is bound as well. */
static void bind_to_node(const struct stages *stages, const char *pci) {
    struct locality locality;
    if (stages->settings->executors.numa == NUMA_ANY) return;
    locality_find(stages->sysfs != NULL ? stages->sysfs : LOCALITY_SYSFS, pci, &locality);
    switch (locality_bind(&locality)) {
    case BINDING_NONE: break;
    case BINDING_BOUND:
        log_event(LOG_INFO, LOG_EVENT("numa"),
            "bound to CPUs of NUMA node %" PRId32 ", where the GPU is: %s", locality.node,
            locality.cpus);
        break;
    case BINDING_EXCLUDED:
        log_event(LOG_WARN, LOG_EVENT("numa"),
            "not bound to NUMA node %" PRId32
            ", where the GPU is: this process may use none of its CPUs (%s); copies are slower; "
            "let the process use them, or set executors.numa to any",
            locality.node, locality.cpus);
        break;
    case BINDING_REFUSED:
        log_event(LOG_WARN, LOG_EVENT("numa"),
            "not bound to NUMA node %" PRId32
            ", where the GPU is: the system refuses it; allow sched_setaffinity(), or set "
            "executors.numa to any",
            locality.node);
        break;
    }
}

enum err resources_open_device(struct stages *stages, struct error *err) {
    const struct settings *settings = stages->settings;
    const struct gpu_driver *driver;
    enum err code = profile_open(settings->profile.nvtx_library, err);
    if (code != ERR_OK) return code;
    code = devices_open_driver(settings, &driver, err);
    if (code == ERR_OK)
        code = device_identify(&stages->device, driver, (int)stages->device_index, err);
    if (code != ERR_OK) return code;
    bind_to_node(stages, stages->device.pci);
    return device_open(&stages->device, driver, (int)stages->device_index, err);
}

void resources_close_device(struct stages *stages) {
    device_close(&stages->device);
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

enum err resources_load_programs(struct stages *stages, struct error *err) {
    enum err code = modules_create(&stages->device, MODULES_MAX, &stages->modules, err);
    if (code == ERR_OK)
        code = editions_create(stages->modules, &stages->device, &stages->editions, err);
    return code == ERR_OK ? load_programs(stages, err) : code;
}

void resources_drop_programs(struct stages *stages) {
    editions_destroy(stages->editions);
    modules_destroy(stages->modules);
}

/* Executors of several GPUs share a configuration, but not a cache. */
enum err resources_open_blobs(struct stages *stages, struct error *err) {
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
            return error_no_memory(err, "no memory for a path");
        options.cache_dir = cache_dir;
    } else if (settings->blobs.dir[0] == 0) {
        return ERR_OK;
    }
    enum err code = blobs_create(&options, &stages->blobs, err);
    free(cache_dir);
    return code;
}

void resources_close_blobs(struct stages *stages) {
    blobs_destroy(stages->blobs);
}

/* What the driver may hand out: what is taken for good, and one largest job beside it. */
static uint64_t pool_bytes(uint64_t configured, uint64_t taken, uint64_t job, uint64_t least) {
    uint64_t bytes = taken + job > least ? taken + job : least;
    return configured != 0 ? configured : bytes;
}

uint64_t resources_statics_bytes(const struct stages *stages) {
    uint64_t configured = stages->settings->statics.budget_bytes;
    return configured != 0 ? configured : stages->device.limits.memory_bytes / STATICS_SHARE;
}

static enum err create_counters(struct stages *stages, struct error *err) {
    size_t count = stages->settings->lanes + POOL_USER_COUNT;
    stages->pool_user_count = count;
    stages->device_counters = calloc(count, sizeof stages->device_counters[0]);
    stages->pinned_counters = calloc(count, sizeof stages->pinned_counters[0]);
    if (stages->device_counters == NULL || stages->pinned_counters == NULL)
        return error_no_memory(err, "no memory to count");
    if (stages->board != NULL) return ERR_OK;
    enum err code = board_create(&stages->own_board, NULL, err);
    stages->board = stages->own_board;
    return code;
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

enum err resources_create_pools(struct stages *stages, struct error *err) {
    const struct settings *settings = stages->settings;
    uint64_t slabs = (uint64_t)settings->lanes * settings->lane_depth * settings->lane_slab_bytes;
    uint64_t staging = (uint64_t)STAGING_EACH * settings->prepare.threads * STAGING_BYTES;
    uint64_t job = settings->limits.job_bytes;
    budget_init(&stages->device_budget, "device pool", ERR_DEVICE_MEMORY,
        pool_bytes(settings->pools.device_bytes, slabs + resources_statics_bytes(stages), job,
            DEVICE_POOL_MIN));
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

enum err resources_fill_pools(struct stages *stages, struct error *err) {
    const struct settings *settings = stages->settings;
    size_t slabs = (size_t)settings->lanes * settings->lane_depth,
           user = settings->lanes + POOL_USER_STOP;
    struct pool_counters *pinned = &stages->pinned_counters[user];
    enum err code = pool_fill(
        stages->device_pool, &stages->device_counters[user], settings->lane_slab_bytes, slabs, err);
    if (code == ERR_OK)
        code = pool_fill(stages->pinned_pool, pinned, settings->lane_slab_bytes, 2 * slabs, err);
    if (code == ERR_OK)
        code = pool_fill(stages->pinned_pool, pinned, STAGING_BYTES,
            (size_t)STAGING_EACH * settings->prepare.threads, err);
    return code;
}

void resources_destroy_pools(struct stages *stages) {
    size_t user = stages->settings->lanes + POOL_USER_STOP;
    tenancy_destroy(stages->tenancy);
    lease_pool_destroy(stages->leases);
    if (stages->pinned_pool != NULL)
        pool_destroy(stages->pinned_pool, &stages->pinned_counters[user]);
    if (stages->device_pool != NULL)
        pool_destroy(stages->device_pool, &stages->device_counters[user]);
    free(stages->pinned_counters);
    free(stages->device_counters);
    board_destroy(stages->own_board);
}

enum err resources_create_statics(struct stages *stages, struct error *err) {
    const struct statics_options options = {.device = &stages->device,
        .leases = stages->leases,
        .device_pool = stages->device_pool,
        .pinned_pool = stages->pinned_pool,
        .budget_bytes = resources_statics_bytes(stages),
        .entries_max = stages->settings->statics.entries_max,
        .staging_count = STAGING_EACH * stages->settings->prepare.threads};
    return statics_create(&options, &stages->statics, err);
}

void resources_destroy_statics(struct stages *stages) {
    statics_destroy(stages->statics);
}

/* The pool's own bound leaves the rest of the device to them, by default half of it at most. */
static uint64_t residents_bytes(const struct stages *stages) {
    uint64_t configured = stages->settings->residents.bytes_max;
    uint64_t memory = stages->device.limits.memory_bytes;
    if (configured == 0) return memory / 2;
    return configured < memory ? configured : memory;
}

/* What one key may have of `all`. */
static uint64_t share_of_key(uint64_t configured, uint64_t all) {
    if (configured == 0) return all / KEY_SHARE > 0 ? all / KEY_SHARE : 1;
    return configured < all ? configured : all;
}

enum err resources_create_residents(struct stages *stages, struct error *err) {
    const struct settings *settings = stages->settings;
    if (settings->ordering != ORDERING_KEY) return ERR_OK;
    uint64_t bytes_max = residents_bytes(stages);
    uint64_t entries_max = settings->residents.entries_max;
    const struct residents_options options = {.device = &stages->device,
        .pool = stages->device_pool,
        .statics = stages->statics,
        .budget = &stages->device_budget,
        .idle_ns = settings->residents.idle_timeout_ms * 1000000ull,
        .bytes_max = bytes_max,
        .key_bytes_max = share_of_key(settings->residents.bytes_per_key, bytes_max),
        .entries_max = entries_max,
        .key_entries_max = share_of_key(settings->residents.entries_per_key, entries_max)};
    return residents_create(&options, &stages->residents, err);
}

void resources_destroy_residents(struct stages *stages) {
    residents_destroy(stages->residents);
}
