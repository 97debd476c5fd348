#include "pipeline/edition.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { JOB_ARENA_BYTES_MAX = 4 << 20 /* decoded form of one message: about 170,000 values */ };

struct editions {
    struct modules *modules;
    const struct device *device;
    int fd;               /* an eventfd */
    pthread_mutex_t lock; /* guards what follows */
    struct edition *current;
    struct edition *ended;
};

static void derive_limits(struct edition *edition) {
    const struct settings *settings = &edition->settings;
    edition->decode_limits = (struct decode_limits){
        .message_bytes_max = settings->limits.message_bytes,
        .arena_bytes_max = JOB_ARENA_BYTES_MAX,
        .buffers_max = settings->limits.buffers_per_job,
        .steps_max = settings->limits.steps_per_job,
        .args_max = ENTRY_ARGS_MAX,
        .outputs_max = settings->limits.buffers_per_job,
        .writes_max = settings->limits.buffers_per_job,
        .buffer_bytes_max = settings->limits.job_bytes,
        .array_bytes_max = settings->limits.array_bytes,
        .launches_max = settings->limits.launches_per_job,
        .long_ms_max = settings->limits.long_job_ms,
        .instances_max = settings->limits.instances_per_job,
        .timeout_ms_default = settings->limits.timeout_ms,
        .timeout_ms_min = settings->limits.timeout_min_ms,
        .timeout_ms_max = settings->limits.timeout_max_ms,
    };
    edition->plan_limits = (struct plan_limits){
        .device = edition->editions->device->limits,
        .job_bytes_max = settings->limits.job_bytes,
        .array_bytes_max = settings->limits.array_bytes,
        .launches_max = settings->limits.launches_per_job,
        .result_bytes_max = settings->limits.result_bytes,
        .has_key_order = settings->ordering == ORDERING_KEY,
        .isolates = settings->batch.isolation != ISOLATE_NONE,
        .inline_bytes_max = settings->results.inline_max_bytes,
        .blob_bytes_max = settings->blobs.bytes_max,
    };
}

/* The last holder calls it, on a thread that need not be bound to the device. */
static void on_end(struct shared *shared) {
    struct edition *edition = (struct edition *)shared;
    struct editions *editions = edition->editions;
    pthread_mutex_lock(&editions->lock);
    edition->next_ended = editions->ended;
    editions->ended = edition;
    pthread_mutex_unlock(&editions->lock);
    /* Where it fails, the number is at its end, and the edition will be seen with the others. */
    (void)eventfd_write(editions->fd, 1);
}

static void destroy(struct edition *edition) {
    module_set_unload(edition->modules);
    registry_destroy(edition->registry);
    modules_forget_removed(edition->editions->modules);
    settings_fini(&edition->settings);
    free(edition);
}

static enum err fail_for_memory(struct error *err) {
    return error_no_memory(err, "no memory for the configuration and its programs");
}

enum err editions_create(struct modules *modules, const struct device *device,
    struct editions **ret, struct error *err) {
    struct editions *editions = calloc(1, sizeof *editions);
    if (editions == NULL) return fail_for_memory(err);
    editions->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (editions->fd < 0) {
        free(editions);
        return error_set(err, ERR_IO, 0, "raise the limit on open files", "cannot make an eventfd");
    }
    editions->modules = modules;
    editions->device = device;
    pthread_mutex_init(&editions->lock, NULL);
    *ret = editions;
    return ERR_OK;
}

void editions_destroy(struct editions *editions) {
    if (editions == NULL) return;
    if (editions->current != NULL) shared_release(&editions->current->shared);
    editions_bury(editions);
    close(editions->fd);
    pthread_mutex_destroy(&editions->lock);
    free(editions);
}

/* As planning asks for each job. */
static bool can_run(const struct entry *entry, const struct gpu_limits *device) {
    bool can_cooperate = device->cooperative || !entry->cooperative || entry->phase_count > 0;
    return device->architecture >= entry->capability_min && can_cooperate;
}

static bool fits(const struct program *program, const struct device *device) {
    bool is_any = false;
    for (size_t i = 0; i < program->entry_count; i++)
        is_any = is_any || can_run(&program->entries[i], &device->limits);
    return is_any &&
           program_image(program, device->on_cpu, device->limits.architecture, NULL) != NULL;
}

/* One that fits is enough: jobs of the others are refused one by one. */
static enum err check_fit(
    const struct registry *registry, const struct device *device, struct error *err) {
    int architecture = device->limits.architecture;
    for (size_t i = 0; i < registry_count(registry); i++)
        if (fits(registry_at(registry, i), device)) return ERR_OK;
    return error_set(err, ERR_CONFIG, 0,
        "add a program that fits it to programs.dir, or leave the device out of `devices`",
        "none of the %zu programs can run on %s, of compute capability %d.%d: each has no image "
        "for it, or needs a newer device",
        registry_count(registry), device->name, architecture / 10, architecture % 10);
}

enum err editions_publish(struct editions *editions, struct settings *settings,
    struct registry *registry, struct error *err) {
    struct edition *edition = calloc(1, sizeof *edition), *earlier = editions->current;
    if (edition == NULL) return fail_for_memory(err);
    enum err code = check_fit(registry, editions->device, err);
    if (code == ERR_OK)
        code = module_set_load(editions->modules, registry,
            earlier != NULL ? earlier->modules : NULL, &edition->modules, err);
    if (code == ERR_OK) code = module_set_check(edition->modules, err);
    if (code != ERR_OK) {
        module_set_unload(edition->modules);
        free(edition);
        return code;
    }
    shared_init(&edition->shared, on_end);
    edition->editions = editions;
    edition->settings = *settings;
    *settings = (struct settings){0};
    edition->registry = registry;
    derive_limits(edition);
    pthread_mutex_lock(&editions->lock);
    editions->current = edition;
    pthread_mutex_unlock(&editions->lock);
    if (earlier != NULL) shared_release(&earlier->shared);
    return ERR_OK;
}

struct edition *editions_take(struct editions *editions, size_t holders) {
    pthread_mutex_lock(&editions->lock);
    struct edition *edition = editions->current;
    shared_hold_many(&edition->shared, holders);
    pthread_mutex_unlock(&editions->lock);
    return edition;
}

const struct edition *editions_current(const struct editions *editions) {
    return editions->current;
}

const struct edition *edition_of(const struct job *job) {
    return (const struct edition *)job->edition;
}

int editions_fd(const struct editions *editions) {
    return editions->fd;
}

void editions_bury(struct editions *editions) {
    eventfd_t count;
    (void)eventfd_read(editions->fd, &count);
    pthread_mutex_lock(&editions->lock);
    struct edition *edition = editions->ended;
    editions->ended = NULL;
    pthread_mutex_unlock(&editions->lock);
    while (edition != NULL) {
        struct edition *next = edition->next_ended;
        destroy(edition);
        edition = next;
    }
}
