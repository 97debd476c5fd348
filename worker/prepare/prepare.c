#include "prepare/prepare.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/crew.h"
#include "base/queue.h"
#include "prepare/attach.h"
#include "prepare/kernels.h"
#include "prepare/providers.h"

/* Jobs that wait for the blob store, and those that need nothing of it: however slow the store, the
 * others have threads of their own. */
enum cold_kind { COLD_STORE, COLD_LOCAL, COLD_KIND_COUNT };

struct cold_work {
    struct prepare *prepare;
    struct queue *queue;
    struct crew *crew;
};

struct prepare {
    struct prepare_options options;
    struct cold_work cold[COLD_KIND_COUNT];
};

static enum err check_static_bytes(
    const struct job_buffer *buffer, const struct static_entry *entry, struct error *err) {
    if (static_entry_bytes(entry) == buffer->bytes) return ERR_OK;
    return error_set(err, ERR_DIGEST_MISMATCH, 0, "give the buffer the size of the payload",
        "buffer '%.*s' says %" PRIu64 " bytes, and the static has %zu", SLICE_TEXT(buffer->name),
        buffer->bytes, static_entry_bytes(entry));
}

void prepare_wake(struct prepare *prepare, struct job *woken) {
    while (woken != NULL) {
        struct job *next = woken->next_waiting;
        woken->is_woken = true;
        prepare->options.on_resumed(prepare->options.context, woken);
        if (!queue_push(prepare->cold[COLD_LOCAL].queue, woken))
            providers_strand(prepare->options.providers, woken);
        woken = next;
    }
}

/* The static of a buffer is pinned: who waits for it need wait no longer. */
static void announce(struct prepare *prepare, struct job *job, size_t index) {
    prepare_wake(prepare,
        providers_arrived(prepare->options.providers, prepare->options.statics, job, index));
}

/* Where the slices of an array put outputs that go to the blob store. */
static bool lacks_spools(const struct job *job) {
    bool lacks = false;
    for (size_t i = 0; i < job->output_count && !lacks; i++)
        lacks = job->plan->outputs[i].is_spooled && job->spools[i] == NULL;
    return lacks;
}

/* Pins the modules and statics that are on the device; true where nothing else is missing either.
 */
static bool pin_warm(struct prepare *prepare, struct job *job) {
    bool is_warm = kernels_pin(job) && !lacks_spools(job);
    for (size_t i = 0; i < job->buffer_count; i++) {
        const struct job_buffer *buffer = &job->buffers[i];
        if (buffer->bytes == 0) continue;
        if (buffer->source == BUFFER_STATIC && job->statics[i] == NULL)
            job->statics[i] = statics_find(prepare->options.statics, &buffer->digest);
        if (job->statics[i] != NULL) announce(prepare, job, i);
        bool is_missing = buffer->source == BUFFER_BLOB ||
                          (buffer->source == BUFFER_STATIC && job->statics[i] == NULL);
        if (is_missing) is_warm = false;
    }
    return is_warm;
}

/* The payload of a cold static: from the message where it is there, else from the blob store. */
static enum err find_payload(struct prepare *prepare, const struct job_buffer *buffer,
    struct blob *blob, struct slice *ret, struct error *err) {
    if (!buffer->has_data) {
        enum err code =
            blob_open(prepare->options.blobs, &buffer->digest, buffer->bytes, blob, err);
        if (code == ERR_BLOB_MISSING) err->code = code = ERR_STATIC_MISSING;
        *ret = blob->bytes;
        return code;
    }
    struct digest digest = digest_of(buffer->data);
    if (!digest_equal(&digest, &buffer->digest))
        return error_set(err, ERR_DIGEST_MISMATCH, 0, "name the data by its own SHA-256",
            "buffer '%.*s': the data has another digest than the job says",
            SLICE_TEXT(buffer->name));
    *ret = buffer->data;
    return ERR_OK;
}

/* So that jobs that name the digest alone find the payload after a restart, or elsewhere. */
static void store_payload(struct prepare *prepare, const struct job_buffer *buffer) {
    struct error err;
    if (!buffer->has_data || prepare->options.blobs == NULL) return;
    if (blobs_put(prepare->options.blobs, &buffer->digest, buffer->data, &err) != ERR_OK)
        prepare->options.on_not_stored(prepare->options.context, &err);
}

static enum err upload_static(
    struct prepare *prepare, struct job *job, size_t index, struct error *err) {
    const struct job_buffer *buffer = &job->buffers[index];
    struct blob blob = {0};
    struct payload payload = {0};
    bool uploaded = false;
    enum err code = find_payload(prepare, buffer, &blob, &payload.bytes, err);
    payload.is_shared_mapping = blob.mapping != NULL;
    if (code == ERR_OK)
        code = statics_upload(prepare->options.statics, &buffer->digest, &payload,
            &job->statics[index], &uploaded, err);
    blob_fini(&blob);
    if (code != ERR_OK) return code;
    announce(prepare, job, index);
    if (uploaded) {
        store_payload(prepare, buffer);
        job->static_misses++;
        job->static_bytes_uploaded += buffer->bytes;
    } else {
        job->static_hits++;
        job->static_bytes_saved += buffer->bytes;
    }
    return ERR_OK;
}

/* One that another buffer of the job has brought is on the device by now. */
static enum err find_or_upload_static(
    struct prepare *prepare, struct job *job, size_t index, struct error *err) {
    const struct job_buffer *buffer = &job->buffers[index];
    if (!buffer->has_data)
        job->statics[index] = statics_find(prepare->options.statics, &buffer->digest);
    if (job->statics[index] == NULL) return upload_static(prepare, job, index, err);
    job->static_hits++;
    job->static_bytes_saved += buffer->bytes;
    return check_static_bytes(buffer, job->statics[index], err);
}

static bool is_cold_static(const struct job *job, size_t index) {
    const struct job_buffer *buffer = &job->buffers[index];
    return buffer->source == BUFFER_STATIC && buffer->bytes > 0 && job->statics[index] == NULL;
}

/* Statics that bring their payload come first: the order of a map decides nothing. */
static enum err fetch_statics(struct prepare *prepare, struct job *job, struct error *err) {
    enum err code = ERR_OK;
    for (size_t i = 0; i < job->buffer_count && code == ERR_OK; i++)
        if (is_cold_static(job, i) && job->buffers[i].has_data)
            code = find_or_upload_static(prepare, job, i, err);
    for (size_t i = 0; i < job->buffer_count && code == ERR_OK; i++)
        if (is_cold_static(job, i)) code = find_or_upload_static(prepare, job, i, err);
    return code;
}

static enum err create_spools(struct prepare *prepare, struct job *job, struct error *err) {
    enum err code = ERR_OK;
    for (size_t i = 0; i < job->output_count && code == ERR_OK; i++)
        if (job->plan->outputs[i].is_spooled && job->spools[i] == NULL)
            code = blobs_create_spool(
                prepare->options.blobs, job_output_bytes(job, i), &job->spools[i], err);
    return code;
}

/* Spools come first: a job that finds no room for them tries again soon, and must not fetch its
 * blobs each time. */
static enum err fetch_cold(struct prepare *prepare, struct job *job, struct error *err) {
    enum err code = create_spools(prepare, job, err);
    for (size_t i = 0; i < job->buffer_count && code == ERR_OK; i++) {
        const struct job_buffer *buffer = &job->buffers[i];
        if (buffer->source == BUFFER_BLOB && buffer->bytes > 0)
            code = (buffer->is_each ? blob_open_parts : blob_open)(prepare->options.blobs,
                &buffer->digest, job_buffer_bytes(job, buffer), &job->blobs[i], err);
    }
    if (code == ERR_OK) code = fetch_statics(prepare, job, err);
    if (code == ERR_OK) code = kernels_load(prepare->options.device, job, err);
    return code;
}

static bool needs_store(const struct job *job) {
    bool needs = lacks_spools(job);
    for (size_t i = 0; i < job->buffer_count && !needs; i++) {
        const struct job_buffer *buffer = &job->buffers[i];
        needs = (buffer->source == BUFFER_BLOB && buffer->bytes > 0) ||
                (is_cold_static(job, i) && !buffer->has_data);
    }
    return needs;
}

static enum err check_warm_statics(struct job *job, struct error *err) {
    for (size_t i = 0; i < job->buffer_count; i++) {
        if (job->statics[i] == NULL) continue;
        enum err code = check_static_bytes(&job->buffers[i], job->statics[i], err);
        if (code != ERR_OK) return code;
        job->static_hits++;
        job->static_bytes_saved += job->buffers[i].bytes;
    }
    return ERR_OK;
}

static void set_ready(struct job *job) {
    job->ready_ns = clock_ns();
    job_move(job, JOB_READY);
}

static void reset_counts(struct job *job) {
    job->static_hits = job->static_misses = 0;
    job->static_bytes_saved = job->static_bytes_uploaded = 0;
}

/* A buffer whose static a job ahead brings; buffer_count: there is none. What came meanwhile is
 * pinned. */
static size_t find_awaited(struct prepare *prepare, struct job *job) {
    for (size_t i = 0; i < job->buffer_count; i++) {
        const struct job_buffer *buffer = &job->buffers[i];
        if (!is_cold_static(job, i) || buffer->has_data) continue;
        if (providers_are_ahead(prepare->options.providers, job, &buffer->digest)) return i;
        job->statics[i] = statics_find(prepare->options.statics, &buffer->digest);
    }
    return job->buffer_count;
}

/* Pins what is on the device. False: the job waits for one ahead, and is not ours any more. */
static bool pin_or_wait(struct prepare *prepare, struct job *job, bool *is_warm) {
    for (;;) {
        *is_warm = pin_warm(prepare, job);
        size_t awaited = *is_warm ? job->buffer_count : find_awaited(prepare, job);
        if (awaited == job->buffer_count) return true;
        prepare_release(job, prepare->options.statics, prepare->options.residents);
        prepare->options.on_waiting(prepare->options.context, job);
        if (providers_wait(prepare->options.providers, job, awaited)) return false;
        prepare->options.on_resumed(prepare->options.context, job);
    }
}

/* NULL: it is on its way elsewhere. */
static struct job *start(struct prepare *prepare, struct job *job) {
    struct error err;
    bool is_warm;
    reset_counts(job);
    if (!pin_or_wait(prepare, job, &is_warm)) return NULL;
    enum err code = check_warm_statics(job, &err);
    if (code == ERR_OK) code = attach_residents(prepare->options.residents, job, &err);
    if (code == ERR_OK && is_warm) code = kernels_load(prepare->options.device, job, &err);
    if (code != ERR_OK) {
        prepare->options.on_failed(prepare->options.context, job, &err);
        return NULL;
    }
    if (is_warm) {
        set_ready(job);
        return job;
    }
    enum cold_kind kind = needs_store(job) ? COLD_STORE : COLD_LOCAL;
    if (!queue_push(prepare->cold[kind].queue, job))
        providers_strand(prepare->options.providers, job);
    return NULL;
}

static void fetch(struct prepare *prepare, struct job *job) {
    const struct prepare_options *options = &prepare->options;
    struct error err;
    enum err code = options->still_wanted(options->context, job, &err);
    /* For each job: one failure spoils one. */
    if (code == ERR_OK) code = device_bind(options->device, &err);
    if (code == ERR_OK && job->is_woken) {
        job->is_woken = false;
        job = start(prepare, job);
        if (job != NULL) options->on_ready(options->context, job);
        return;
    }
    if (code == ERR_OK) code = fetch_cold(prepare, job, &err);
    if (code == ERR_OK) {
        set_ready(job);
        options->on_ready(options->context, job);
    } else {
        options->on_failed(options->context, job, &err);
    }
}

static void run_preparation(void *context, uint32_t index) {
    const struct cold_work *cold = context;
    const struct prepare_options *options = &cold->prepare->options;
    void *item;
    while (queue_pop(cold->queue, &item, 1, -1) == 1) {
        options->on_begin(options->context, item);
        fetch(cold->prepare, item);
        options->on_end(options->context);
    }
}

static enum err cold_work_start(
    struct cold_work *cold, struct prepare *prepare, const char *name, struct error *err) {
    const struct prepare_options *options = &prepare->options;
    cold->prepare = prepare;
    cold->queue = queue_create(options->queue_length);
    if (cold->queue == NULL)
        return error_no_memory(err, "no memory for the queue of jobs to prepare");
    const struct crew_options crew = {
        .name = name, .count = options->threads, .run = run_preparation, .context = cold};
    return crew_start(&crew, &cold->crew, err);
}

static void cold_work_finish(struct cold_work *cold) {
    if (cold->queue != NULL) queue_close(cold->queue);
    crew_join(&cold->crew);
}

enum err prepare_create(
    const struct prepare_options *options, struct prepare **ret, struct error *err) {
    struct prepare *prepare = calloc(1, sizeof *prepare);
    if (prepare == NULL) return error_no_memory(err, "no memory for preparation");
    prepare->options = *options;
    enum err code = cold_work_start(&prepare->cold[COLD_LOCAL], prepare, "prepare", err);
    if (code == ERR_OK) code = cold_work_start(&prepare->cold[COLD_STORE], prepare, "fetch", err);
    if (code == ERR_OK) {
        *ret = prepare;
    } else {
        prepare_finish(prepare);
        prepare_destroy(prepare);
    }
    return code;
}

void prepare_finish(struct prepare *prepare) {
    if (prepare == NULL) return;
    for (int kind = 0; kind < COLD_KIND_COUNT; kind++) cold_work_finish(&prepare->cold[kind]);
}

/* The run has ended before what they wait for came. */
void prepare_drop_waiting(struct prepare *prepare) {
    if (prepare == NULL) return;
    struct job *next, *waiting = providers_take_waiting(prepare->options.providers);
    for (; waiting != NULL; waiting = next) {
        next = waiting->next_waiting;
        prepare->options.on_dropped(prepare->options.context, waiting);
    }
    for (waiting = providers_take_stranded(prepare->options.providers); waiting != NULL;
         waiting = next) {
        next = waiting->next_waiting;
        prepare->options.on_dropped(prepare->options.context, waiting);
    }
}

void prepare_destroy(struct prepare *prepare) {
    if (prepare == NULL) return;
    for (int kind = 0; kind < COLD_KIND_COUNT; kind++) queue_destroy(prepare->cold[kind].queue);
    free(prepare);
}

/* Of an array the outputs have their places already, but for those that go to the blob store. */
static bool make_room_for_outputs(struct job *job, const struct plan *plan) {
    if (job->instances == 0) return true;
    job->spools = arena_alloc(&job->arena, job->output_count, sizeof job->spools[0]);
    for (size_t i = 0; i < job->output_count; i++)
        job->found[i] = slice_of(plan->outputs[i].is_spooled ? NULL : job_output_place(job, i),
            job_output_bytes(job, i));
    return job->spools != NULL;
}

/* Room for what the job will hold, by index as its buffers, launches and outputs. */
static bool make_room(struct job *job, const struct plan *plan) {
    job->statics = arena_alloc(&job->arena, job->buffer_count, sizeof job->statics[0]);
    job->residents = arena_alloc(&job->arena, job->buffer_count, sizeof job->residents[0]);
    job->generations = arena_alloc(&job->arena, job->buffer_count, sizeof job->generations[0]);
    job->blobs = arena_alloc(&job->arena, job->buffer_count, sizeof job->blobs[0]);
    job->kernels = arena_alloc(&job->arena, plan->launch_count, sizeof job->kernels[0]);
    job->found = arena_alloc(&job->arena, job->output_count, sizeof job->found[0]);
    return job->statics != NULL && job->residents != NULL && job->generations != NULL &&
           job->blobs != NULL && job->kernels != NULL && job->found != NULL &&
           make_room_for_outputs(job, plan);
}

struct job *prepare_resubmit(struct prepare *prepare, struct job *job) {
    job_move(job, JOB_PREPARING);
    job->submitted_ns = clock_ns();
    return start(prepare, job);
}

enum err prepare_submit(struct prepare *prepare, struct job *job, const struct plan *plan,
    const struct module_set *modules, struct job **ret, struct error *err) {
    if (!make_room(job, plan))
        return error_set(err, ERR_NO_MEMORY, 0, "split the job, or give the process more memory",
            "no memory to prepare the job");
    enum err code = tenant_name(prepare->options.isolation, job, plan, &job->tenant, err);
    if (code != ERR_OK) return code;
    job->modules = modules;
    job->plan = plan;
    *ret = prepare_resubmit(prepare, job);
    return ERR_OK;
}

enum err prepare_again(struct prepare *prepare, struct job *job, struct error *err) {
    reset_counts(job);
    (void)pin_warm(prepare, job);
    enum err code = check_warm_statics(job, err);
    if (code == ERR_OK) code = attach_residents(prepare->options.residents, job, err);
    if (code == ERR_OK) code = fetch_cold(prepare, job, err);
    if (code == ERR_OK) job->ready_ns = clock_ns(); /* it may never have been before */
    return code;
}

bool prepare_wants(const struct job *job, size_t buffer, bool is_init) {
    if (job->is_applied) return false;
    return !is_init || resident_is_fresh(job->residents[buffer]);
}

void prepare_release(struct job *job, struct statics *statics, struct residents *residents) {
    if (job->plan == NULL) return; /* it has held nothing yet */
    detach_residents(residents, job);
    kernels_release(job);
    for (size_t i = 0; i < job->buffer_count; i++) {
        if (job->statics[i] != NULL) statics_unref(statics, job->statics[i]);
        blob_fini(&job->blobs[i]);
        job->statics[i] = NULL;
    }
}
