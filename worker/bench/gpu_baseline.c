#include "bench/gpu_baseline.h"

#include <sched.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/crew.h"
#include "bench/cpu_time.h"
#include "bench/message_loop.h"
#include "gpu/event.h"
#include "gpu/lease.h"
#include "gpu/memory.h"
#include "gpu/modules.h"
#include "metrics/board.h"

enum { BLOCK_THREADS = 256, CELLS = 4, ALIGNMENT = 256 };

struct gpu_baseline {
    struct device device;
    struct modules *modules;
    struct module_set *module_set;
    struct module *module;
    struct lease_pool *leases;
    const struct kernel *add, *add_coalesced;
};

/* --- one batch in flight --- */

/* The layout of device memory and of pinned memory: rows, all x, all y | all z. */
struct slot {
    struct device_block device;
    struct pinned_block pinned;
    CUevent fence;
    bool is_in_flight;
    uint64_t begun_ns;
    struct message_loop_job *jobs; /* of the batch; only if they come from messages */
};

struct stream_thread {
    uint64_t started_ns;
    struct gpu_baseline *baseline;
    const struct gpu_baseline_work *work;
    struct stream_lease lease;
    struct slot *slots; /* `depth` */
    uint64_t finished;  /* batches */
    uint8_t *inputs;    /* of a batch: all x, all y; none where they come from messages */
    uint8_t *results;   /* of a batch: all z, or encoded */
    uint64_t next_message;
    uint64_t batches;
    enum err code;
    struct error err;
};

static size_t rows_bytes(const struct gpu_baseline_work *work) {
    if (!work->is_coalesced) return 0;
    return (work->batch_jobs * CELLS * sizeof(uint64_t) + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
}

/* The size of all x, of all y, or of all z. */
static size_t side_bytes(const struct gpu_baseline_work *work) {
    return (size_t)(work->batch_jobs * work->buffer_bytes);
}

static size_t input_bytes(const struct gpu_baseline_work *work) {
    if (work->link_bytes > 0) return (size_t)(work->batch_jobs * work->link_bytes);
    return rows_bytes(work) + 2 * side_bytes(work);
}

/* The next of the messages, again and again. */
static enum err read_message(
    struct stream_thread *thread, struct message_loop_job *ret, struct error *err) {
    const struct gpu_baseline_work *work = thread->work;
    struct slice message = work->messages[thread->next_message++ % work->message_count];
    if (message_loop_read(message, work->buffer_bytes, ret)) return ERR_OK;
    return error_set(err, ERR_INTERNAL, 0, "report this", "the message loop met another message");
}

static enum err stage(struct stream_thread *thread, struct slot *slot, struct error *err) {
    const struct gpu_baseline_work *work = thread->work;
    size_t bytes = (size_t)work->buffer_bytes, side = side_bytes(work), rows = rows_bytes(work);
    uint64_t *cells = (uint64_t *)(void *)slot->pinned.data;
    for (uint32_t i = 0; i < work->batch_jobs; i++) {
        const uint8_t *x = thread->inputs + i * bytes, *y = x + side;
        if (slot->jobs != NULL) {
            enum err code = read_message(thread, &slot->jobs[i], err);
            if (code != ERR_OK) return code;
            x = slot->jobs[i].x.data;
            y = slot->jobs[i].y.data;
        }
        memcpy(slot->pinned.data + rows + i * bytes, x, bytes);
        memcpy(slot->pinned.data + rows + side + i * bytes, y, bytes);
        if (!work->is_coalesced) continue;
        uint64_t at = slot->device.address + rows + i * bytes;
        const uint64_t row[CELLS] = {at, at + side, at + 2 * side, bytes / sizeof(float)};
        memcpy(cells + i * CELLS, row, sizeof row);
    }
    return ERR_OK;
}

static enum err launch(const struct stream_thread *thread, CUfunction function, unsigned jobs,
    void **params, struct error *err) {
    const struct gpu_driver *gpu = thread->baseline->device.driver;
    size_t elements = (size_t)thread->work->buffer_bytes / sizeof(float);
    unsigned blocks = (unsigned)((elements + BLOCK_THREADS - 1) / BLOCK_THREADS);
    return GPU_TRY(gpu,
        launch(
            function, blocks, jobs, 1, BLOCK_THREADS, 1, 1, 0, thread->lease.stream, params, NULL),
        err);
}

static enum err launch_all(
    const struct stream_thread *thread, const struct slot *slot, struct error *err) {
    const struct gpu_baseline_work *work = thread->work;
    CUdeviceptr rows = slot->device.address;
    uint32_t jobs = work->batch_jobs, n = (uint32_t)(work->buffer_bytes / sizeof(float));
    if (work->is_coalesced) {
        void *params[] = {&rows, &jobs};
        return launch(thread, thread->baseline->add_coalesced->batched, jobs, params, err);
    }
    enum err code = ERR_OK;
    for (uint32_t i = 0; i < jobs && code == ERR_OK; i++) {
        CUdeviceptr x = rows + rows_bytes(work) + i * work->buffer_bytes;
        CUdeviceptr y = x + side_bytes(work), z = y + side_bytes(work);
        void *params[] = {&x, &y, &z, &n};
        code = launch(thread, thread->baseline->add->function, 1, params, err);
    }
    return code;
}

static enum err begin(struct stream_thread *thread, struct slot *slot, struct error *err) {
    const struct gpu_driver *gpu = thread->baseline->device.driver;
    CUstream stream = thread->lease.stream;
    CUdeviceptr at = slot->device.address;
    size_t in = input_bytes(thread->work), out = side_bytes(thread->work);
    bool is_link = thread->work->link_bytes > 0;
    if (thread->work->samples != NULL) slot->begun_ns = clock_ns();
    enum err code = is_link ? ERR_OK : stage(thread, slot, err);
    if (code == ERR_OK) code = GPU_TRY(gpu, copy_to_device(at, slot->pinned.data, in, stream), err);
    if (code == ERR_OK && !is_link) code = GPU_TRY(gpu, fill(at + in, 0, out, stream), err);
    if (code == ERR_OK && !is_link) code = launch_all(thread, slot, err);
    if (code == ERR_OK)
        code = GPU_TRY(gpu, copy_to_host(slot->pinned.data + in, at + in, out, stream), err);
    if (code == ERR_OK) code = event_record(&thread->baseline->device, slot->fence, stream, err);
    slot->is_in_flight = code == ERR_OK;
    return code;
}

static size_t result_bytes(const struct gpu_baseline_work *work) {
    return (size_t)work->buffer_bytes + (work->messages != NULL ? MESSAGE_LOOP_RESULT_BYTES : 0);
}

static enum err take_results(struct stream_thread *thread, struct slot *slot, struct error *err) {
    const struct gpu_baseline_work *work = thread->work;
    size_t bytes = (size_t)work->buffer_bytes, room = result_bytes(work);
    const uint8_t *z = slot->pinned.data + input_bytes(work);
    if (slot->jobs == NULL) {
        memcpy(thread->results, z, side_bytes(work));
        return ERR_OK;
    }
    for (uint32_t i = 0; i < work->batch_jobs; i++)
        if (message_loop_write(&slot->jobs[i], slice_of(z + i * bytes, bytes), thread->next_message,
                thread->results + i * room, room) == 0)
            return error_set(
                err, ERR_INTERNAL, 0, "report this", "a result of the message loop has no room");
    return ERR_OK;
}

static void count_batch(const struct gpu_baseline_work *work) {
    counters_add(work->counters, COUNTER_engine_host_to_device_bytes, input_bytes(work));
    counters_add(work->counters, COUNTER_engine_device_to_host_bytes, side_bytes(work));
    counters_add_outcome(work->counters, ERR_OK);
}

static enum err finish(struct stream_thread *thread, struct slot *slot, struct error *err) {
    bool is_done = !slot->is_in_flight;
    enum err code = ERR_OK;
    if (is_done) return ERR_OK;
    while (code == ERR_OK && !is_done) {
        code = event_poll(&thread->baseline->device, slot->fence, &is_done, err);
        if (!is_done) sched_yield(); /* there may be fewer processors than threads */
    }
    slot->is_in_flight = false;
    if (thread->work->counters != NULL) count_batch(thread->work);
    if (thread->work->link_bytes > 0) return code;
    if (code == ERR_OK) code = take_results(thread, slot, err);
    if (thread->work->samples != NULL)
        thread->work->samples[thread->finished++] = clock_ns() - slot->begun_ns;
    return code;
}

static enum err run_batches(struct stream_thread *thread, struct error *err) {
    uint32_t depth = thread->work->depth;
    enum err code = ERR_OK;
    for (uint64_t i = 0; i < thread->batches && code == ERR_OK; i++) {
        struct slot *slot = &thread->slots[i % depth];
        code = finish(thread, slot, err);
        if (code == ERR_OK) code = begin(thread, slot, err);
    }
    for (uint64_t i = thread->batches; i < thread->batches + depth && code == ERR_OK; i++)
        code = finish(thread, &thread->slots[i % depth], err);
    return code;
}

static void run_thread(void *context, uint32_t index) {
    struct stream_thread *thread = &((struct stream_thread *)context)[index];
    thread->started_ns = clock_ns();
    thread->code = device_bind(&thread->baseline->device, &thread->err);
    if (thread->code == ERR_OK) thread->code = run_batches(thread, &thread->err);
}

/* --- all threads --- */

static enum err no_memory(struct error *err) {
    return error_set(err, ERR_NO_MEMORY, 0, "bench smaller jobs", "no memory for the baseline");
}

static enum err slot_init(struct stream_thread *thread, struct slot *slot, struct error *err) {
    const struct device *device = &thread->baseline->device;
    size_t bytes = input_bytes(thread->work) + side_bytes(thread->work);
    enum err code = device_block_alloc(device, bytes, &slot->device, err);
    if (code == ERR_OK) code = pinned_block_alloc(device, bytes, &slot->pinned, err);
    if (code == ERR_OK) code = fence_take(thread->baseline->leases, &slot->fence, err);
    if (code != ERR_OK || thread->work->messages == NULL) return code;
    slot->jobs = calloc(thread->work->batch_jobs, sizeof slot->jobs[0]);
    return slot->jobs != NULL ? ERR_OK : no_memory(err);
}

static enum err thread_init(struct stream_thread *thread, struct error *err) {
    const struct gpu_baseline_work *work = thread->work;
    size_t in = work->messages == NULL ? 2 * side_bytes(work) : 0;
    size_t out = work->batch_jobs * result_bytes(work);
    thread->slots = calloc(work->depth, sizeof thread->slots[0]);
    thread->inputs = calloc(1, in + out);
    if (thread->slots == NULL || thread->inputs == NULL) return no_memory(err);
    thread->results = thread->inputs + in;
    memset(thread->inputs, 0, in + out); /* touched now, not while the time runs */
    enum err code = stream_lease_take(thread->baseline->leases, false, &thread->lease, err);
    for (uint32_t i = 0; i < work->depth && code == ERR_OK; i++)
        code = slot_init(thread, &thread->slots[i], err);
    return code;
}

/* After a lost context some memory cannot be freed; it ends with the process. */
static void thread_fini(struct stream_thread *thread) {
    const struct device *device = &thread->baseline->device;
    struct error err;
    if (thread->lease.stream != NULL) (void)!stream_wait(device, thread->lease.stream, &err);
    for (uint32_t i = 0; thread->slots != NULL && i < thread->work->depth; i++) {
        struct slot *slot = &thread->slots[i];
        if (slot->fence != NULL) (void)!fence_release(thread->baseline->leases, &slot->fence, &err);
        pinned_block_free(device, &slot->pinned);
        device_block_free(device, &slot->device);
        free(slot->jobs);
    }
    if (thread->lease.stream != NULL)
        (void)!stream_lease_release(thread->baseline->leases, &thread->lease, &err);
    free(thread->slots);
    free(thread->inputs);
}

/* `ns` is the time from the start of the first thread to the end of the last. */
static enum err run_threads(
    struct stream_thread *threads, uint32_t count, uint64_t *ns, struct error *err) {
    const struct crew_options options = {
        .name = "baseline", .count = count, .run = run_thread, .context = threads};
    struct crew *crew;
    enum err code = crew_start(&options, &crew, err);
    if (code != ERR_OK) return code;
    crew_join(&crew);
    uint64_t ended_ns = clock_ns(), started_ns = ended_ns;
    for (uint32_t i = 0; i < count; i++) {
        if (threads[i].started_ns < started_ns) started_ns = threads[i].started_ns;
        if (code != ERR_OK || threads[i].code == ERR_OK) continue;
        code = threads[i].code;
        *err = threads[i].err;
    }
    *ns = ended_ns - started_ns;
    return code;
}

/* Checks results of the last batches, which still stand where they were read back. */
static enum err check_results(const struct stream_thread *thread, struct error *err) {
    const struct gpu_baseline_work *work = thread->work;
    size_t bytes = (size_t)work->buffer_bytes;
    uint64_t slots = thread->batches < work->depth ? thread->batches : work->depth;
    for (uint64_t i = 0; i < slots && work->messages != NULL; i++) {
        const struct slot *slot = &thread->slots[i];
        const uint8_t *z = slot->pinned.data + input_bytes(work);
        for (uint32_t job = 0; job < work->batch_jobs; job++)
            if (!message_loop_is_right(&slot->jobs[job], slice_of(z + job * bytes, bytes)))
                return error_set(err, ERR_INTERNAL, 0, "try another device",
                    "the message loop has a wrong result");
    }
    return ERR_OK;
}

enum err gpu_baseline_run(struct gpu_baseline *baseline, const struct gpu_baseline_work *work,
    double *ns_a_job, struct error *err) {
    struct stream_thread *threads = calloc(work->threads, sizeof threads[0]);
    if (threads == NULL)
        return error_set(err, ERR_NO_MEMORY, 0, "bench fewer lanes", "no memory for threads");
    uint64_t jobs_a_round = (uint64_t)work->threads * work->batch_jobs, ns = 0;
    uint64_t rounds = (work->jobs + jobs_a_round - 1) / jobs_a_round;
    enum err code = ERR_OK;
    for (uint32_t i = 0; i < work->threads; i++)
        threads[i] = (struct stream_thread){.baseline = baseline,
            .work = work,
            .batches = rounds,
            .next_message = i * work->message_count / work->threads};
    for (uint32_t i = 0; i < work->threads && code == ERR_OK; i++)
        code = thread_init(&threads[i], err);
    uint64_t cpu_ns = cpu_time_process_ns(), switches = cpu_time_switches();
    if (code == ERR_OK) code = run_threads(threads, work->threads, &ns, err);
    double jobs = (double)(rounds * jobs_a_round);
    if (work->cost != NULL)
        *work->cost =
            (struct gpu_baseline_cost){.cpu_ns = (double)(cpu_time_process_ns() - cpu_ns) / jobs,
                .switches = (double)(cpu_time_switches() - switches) / jobs};
    for (uint32_t i = 0; i < work->threads && code == ERR_OK; i++)
        code = check_results(&threads[i], err);
    for (uint32_t i = 0; i < work->threads; i++) thread_fini(&threads[i]);
    free(threads);
    *ns_a_job = (double)ns / jobs;
    return code;
}

/* --- start and stop --- */

static enum err find_kernels(
    struct gpu_baseline *baseline, const struct registry *registry, struct error *err) {
    const struct program *program = registry_find(registry, slice_of_text("bench"));
    const struct entry *add = NULL, *coalesced = NULL;
    if (program != NULL) add = program_entry(program, slice_of_text("add"));
    if (program != NULL) coalesced = program_entry(program, slice_of_text("add_coalesced"));
    if (add == NULL || coalesced == NULL)
        return error_set(err, ERR_UNKNOWN_PROGRAM, 0, "set programs.dir to the shipped programs",
            "there is no program 'bench'");
    enum err code = modules_get(baseline->module_set, program, NULL, &baseline->module, err);
    if (code == ERR_OK) code = module_kernel(baseline->module, add, &baseline->add, err);
    if (code == ERR_OK)
        code = module_kernel(baseline->module, coalesced, &baseline->add_coalesced, err);
    return code;
}

enum err gpu_baseline_create(
    const struct gpu_baseline_options *options, struct gpu_baseline **ret, struct error *err) {
    struct gpu_baseline *baseline = calloc(1, sizeof *baseline);
    const struct gpu_cpu_options cpu = {
        .device_count = options->device + 1, .memory_bytes = options->cpu_memory_bytes};
    const struct gpu_driver *driver;
    if (baseline == NULL) return error_no_memory(err, "no memory for the baseline");
    enum err code =
        gpu_driver_open(options->on_cpu ? GPU_DRIVER_CPU : GPU_DRIVER_CUDA, &cpu, &driver, err);
    if (code == ERR_OK) code = device_open(&baseline->device, driver, options->device, err);
    if (code == ERR_OK)
        code = modules_create(&baseline->device, MODULES_MAX, &baseline->modules, err);
    if (code == ERR_OK)
        code =
            module_set_load(baseline->modules, options->registry, NULL, &baseline->module_set, err);
    if (code == ERR_OK) code = lease_pool_create(&baseline->device, &baseline->leases, err);
    if (code == ERR_OK) code = find_kernels(baseline, options->registry, err);
    if (code == ERR_OK) *ret = baseline;
    else gpu_baseline_destroy(baseline);
    return code;
}

void gpu_baseline_destroy(struct gpu_baseline *baseline) {
    if (baseline == NULL) return;
    module_unref(baseline->module);
    lease_pool_destroy(baseline->leases);
    module_set_unload(baseline->module_set);
    modules_destroy(baseline->modules);
    device_close(&baseline->device);
    free(baseline);
}
