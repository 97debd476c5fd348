#include "batch/batch.h"

#include <sched.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/invariant.h"
#include "batch/array.h"
#include "batch/chunk.h"
#include "batch/coalesce.h"
#include "batch/enqueue.h"
#include "batch/graphs.h"
#include "batch/guards.h"
#include "batch/stage.h"
#include "gpu/event.h"
#include "gpu/profile.h"
#include "plan/extent.h"

enum {
    ZEROES_MAX = 8 << 10, /* more are cleared by the device */
    FENCE_POLLS = 64      /* before the lane sleeps in the driver */
};

/* What we took, given back once: anything else is our own bug. */
static void must_release(enum err code) {
    INVARIANT(code == ERR_OK, "an event that was taken is given back once");
}

static void release_memory(const struct batch_context *context, struct batch_memory *memory) {
    pool_give_back(context->device_pool, context->device_counters, &memory->device);
    pool_give_back(context->pinned_pool, context->pinned_counters, &memory->upload);
    pool_give_back(context->pinned_pool, context->pinned_counters, &memory->readback);
}

/* All three blocks or none. */
static enum err acquire_memory(const struct batch_context *context, uint64_t device_bytes,
    uint64_t upload_bytes, uint64_t readback_bytes, struct batch_memory *ret, struct error *err) {
    const size_t pinned_bytes[] = {upload_bytes, readback_bytes};
    struct pool_block pinned[2];
    enum err code = statics_acquire_memory(
        context->statics, context->device_counters, device_bytes, &ret->device, err);
    if (code != ERR_OK) return code;
    code = pool_acquire_all(
        context->pinned_pool, context->pinned_counters, pinned_bytes, 2, pinned, err);
    if (code != ERR_OK) {
        pool_give_back(context->device_pool, context->device_counters, &ret->device);
        return code;
    }
    ret->upload = pinned[0];
    ret->readback = pinned[1];
    return ERR_OK;
}

enum err batch_init(
    struct batch *batch, const struct batch_context *context, uint32_t slot, struct error *err) {
    *batch = (struct batch){.context = context, .slot = slot};
    batch->items = calloc(context->jobs_max, sizeof batch->items[0]);
    if (batch->items == NULL)
        return error_no_memory(err, "no memory for a batch of %zu jobs", context->jobs_max);
    uint64_t bytes = context->slab_bytes;
    enum err code = acquire_memory(context, bytes, bytes, bytes, &batch->slabs, err);
    if (code == ERR_OK && context->has_graphs)
        code =
            graphs_create(context->device, context->stream, &batch->telemetry, &batch->graphs, err);
    if (code == ERR_OK && context->can_map)
        code = pinned_device_address(
            context->device, pool_block_pinned(&batch->slabs.upload).data, &batch->mapped, err);
    if (code == ERR_OK) code = fence_take(context->leases, &batch->fence, err);
    if (code != ERR_OK) {
        batch_fini(batch);
        return code;
    }
    batch->use = (struct tenancy_slabs){.device.block = batch->slabs.device,
        .upload.block = batch->slabs.upload,
        .readback.block = batch->slabs.readback};
    tenancy_add(context->tenancy, &batch->use);
    return ERR_OK;
}

void batch_fini(struct batch *batch) {
    if (batch->context == NULL) return;
    struct lease_pool *leases = batch->context->leases;
    for (size_t i = 0; batch->items != NULL && i < batch->context->jobs_max; i++)
        if (batch->items[i].timing.started != NULL)
            must_release(timing_pair_release(leases, &batch->items[i].timing, &(struct error){0}));
    if (batch->fence != NULL)
        must_release(fence_release(leases, &batch->fence, &(struct error){0}));
    tenancy_remove(batch->context->tenancy, &batch->use);
    graphs_destroy(batch->graphs);
    release_memory(batch->context, &batch->large);
    release_memory(batch->context, &batch->slabs);
    free(batch->items);
    *batch = (struct batch){0};
}

void batch_abandon(struct batch *batch) {
    if (batch->context != NULL) tenancy_remove(batch->context->tenancy, &batch->use);
    guards_abandon(batch);
    graphs_destroy(batch->graphs);
    free(batch->items);
    *batch = (struct batch){0};
}

/* The run of an array whose shared inputs may stay in the slab for its next slice; 0: there is
 * none. */
static uint64_t sharing_run(const struct batch *batch, bool is_guarded) {
    const struct job *job = batch->items[0].job;
    return job->array != NULL && !is_guarded ? job->progress.run : 0;
}

/* A few zeroes go up with the inputs: that takes less time than another call of the driver. A slice
 * may have nothing else to send. */
static uint64_t upload_bytes(const struct batch *batch, bool is_guarded) {
    uint64_t inputs = batch->start[GROUP_OUTPUT], all = batch->start[GROUP_COUNT];
    bool is_slice = job_is_slice(batch->items[0].job);
    bool has_zeroes = !is_guarded && !is_slice && inputs > 0 && all - inputs <= ZEROES_MAX;
    return has_zeroes ? all : inputs;
}

/* Lays the groups of all jobs out behind each other, so that each group is one range. */
static void lay_out(struct batch *batch, bool is_guarded) {
    bool is_table_behind = sharing_run(batch, is_guarded) != 0;
    coalesce_lay_out(batch);
    uint64_t at = is_table_behind ? 0 : batch->table_bytes;
    for (int group = 0; group < GROUP_COUNT; group++) {
        if (group == GROUP_INPUT + 1 && is_table_behind) {
            batch->items[0].table = at;
            at += batch->table_bytes;
        }
        batch->start[group] = at;
        for (size_t i = 0; i < batch->count; i++) {
            const struct job *job = batch->items[i].job;
            batch->items[i].base[group] = at;
            at += extent_group_bytes(job->plan, (enum plan_group)group, job_slice_count(job));
        }
    }
    batch->start[GROUP_COUNT] = at;
    batch->upload_bytes = upload_bytes(batch, is_guarded);
    batch->write_bytes = batch->output_bytes = 0;
    for (size_t i = 0; i < batch->count; i++) {
        struct batch_item *item = &batch->items[i];
        item->write_base = batch->upload_bytes + batch->write_bytes;
        item->output_base =
            batch->start[GROUP_SCRATCH] - batch->start[GROUP_INOUT] + batch->output_bytes;
        struct unpacked_write write = {0};
        while (batch_next_write(item->job, &write)) continue;
        batch->write_bytes += write.staging;
        batch->output_bytes += extent_output_bytes(item->job->plan, job_slice_count(item->job));
    }
}

/* What goes up in one piece beside a guarded job's buffers: the rows of a slice, and parameter
 * blocks with the group that they share. */
static uint64_t param_block_bytes(const struct batch *batch) {
    const struct plan *plan = batch->items[0].job->plan;
    for (size_t i = 0; i < plan->launch_count; i++)
        if (plan->launches[i].entry->params_in_buffer) return batch->start[GROUP_INOUT];
    return batch->table_bytes;
}

/* Whether kernels can work where the jobs are staged. */
static bool can_map(const struct batch *batch) {
    bool can = batch->mapped != 0 && batch->start[GROUP_COUNT] <= batch->context->slab_bytes;
    for (size_t i = 0; i < batch->count && can; i++) can = batch->items[i].job->plan->is_streamed;
    return can;
}

/* Slices are assembled. */
static bool has_room(const struct batch *batch) {
    const struct job *job = batch->items[0].job;
    bool has = !job_is_slice(job) && job->room.bytes > 0;
    INVARIANT(!has || batch->count == 1, "a job whose result has a room is alone in its batch");
    return has;
}

static uint64_t readback_bytes(const struct batch *batch) {
    if (batch->is_placed) return batch->items[0].job->room.bytes;
    return batch->start[GROUP_SCRATCH] - batch->start[GROUP_INOUT] + batch->output_bytes;
}

static void note_use(struct slab_use *use, uint64_t bytes) {
    if (bytes > use->bytes) use->bytes = bytes;
}

/* What the next tenant must not find. */
static void note_slabs(
    struct batch *batch, uint64_t device_bytes, uint64_t upload_bytes, uint64_t readback_bytes) {
    if (batch->is_mapped) {
        note_use(&batch->use.upload, batch->start[GROUP_COUNT]);
        return;
    }
    note_use(&batch->use.device, device_bytes);
    note_use(&batch->use.upload, upload_bytes);
    note_use(&batch->use.readback, readback_bytes);
}

/* How much of the upload the slab has from the array's slice before, where it was not wiped since.
 */
static uint64_t find_kept(const struct batch *batch, uint64_t run) {
    bool is_there = run != 0 && run == batch->shared_run && batch->use.device.bytes > 0;
    return is_there ? batch->items[0].job->plan->group_bytes[GROUP_INPUT] : 0;
}

/* Flags between two chunks, outputs in the end. */
static uint64_t long_readback_bytes(const struct batch *batch, const struct long_job *long_job) {
    const struct job *job = batch->items[0].job;
    return long_job->chunk > 0 ? chunk_readback_bytes(job) : readback_bytes(batch);
}

/* The device memory is the job's own from its first chunk on. Nothing is packed with others, so
 * that a chunk needs host memory only for what it moves. */
static enum err fit_long_job(struct batch *batch, struct long_job *long_job, struct error *err) {
    const struct batch_context *context = batch->context;
    struct pool_block block = {long_job->address, long_job->bytes};
    uint64_t upload = batch->table_bytes, slab = context->slab_bytes;
    enum err code = ERR_OK;
    if (long_job->bytes == 0)
        code = statics_acquire_memory(
            context->statics, context->device_counters, batch->start[GROUP_COUNT], &block, err);
    if (code != ERR_OK) return code;
    long_job->address = block.address;
    long_job->bytes = block.bytes;
    if (!long_job->is_on_device) upload = batch->upload_bytes + batch->write_bytes;
    batch->is_placed = has_room(batch) && long_job->chunk == 0;
    batch->is_mapped = false;
    batch->kept_bytes = batch->shared_run = 0;
    batch->origin = pool_block_device(&block);
    batch->memory = &batch->slabs;
    uint64_t readback = long_readback_bytes(batch, long_job);
    if (!batch->is_placed && upload <= slab && readback <= slab) return ERR_OK;
    batch->memory = &batch->large;
    return acquire_memory(context, 0, upload, readback, &batch->large, err);
}

static enum err fit_memory(struct batch *batch, bool is_guarded, struct error *err) {
    uint64_t device = batch->start[GROUP_COUNT];
    uint64_t upload = batch->upload_bytes + batch->write_bytes;
    batch->is_placed = has_room(batch);
    uint64_t readback = readback_bytes(batch);
    uint64_t slab = batch->context->slab_bytes;
    enum err code = ERR_OK;
    if (is_guarded) {
        batch->guard_base = readback;
        readback += guards_readback_bytes(batch);
        device = batch->param_block_bytes = param_block_bytes(batch);
        code = guards_take(batch, err);
        if (code != ERR_OK) return code;
    }
    batch->is_mapped = !is_guarded && !batch->is_placed && can_map(batch);
    batch->memory = &batch->slabs;
    batch->kept_bytes = 0;
    bool fits = device <= slab && upload <= slab && readback <= slab;
    if (batch->is_placed || (!batch->is_mapped && !fits)) {
        batch->memory = &batch->large;
        code = acquire_memory(batch->context, device, upload, readback, &batch->large, err);
        if (code != ERR_OK) guards_release(batch);
    } else {
        batch->kept_bytes = find_kept(batch, sharing_run(batch, is_guarded));
        batch->shared_run = 0; /* until they are on their way again */
        note_slabs(batch, device, upload, readback);
    }
    batch->origin = batch->is_mapped ? batch->mapped : pool_block_device(&batch->memory->device);
    return code;
}

static void fail_all(struct batch *batch, enum err code, const struct error *err) {
    for (size_t i = 0; i < batch->count; i++) {
        batch->items[i].job->outcome.code = code;
        batch->items[i].job->outcome.err = *err;
    }
}

/*
 * From here on the jobs are suspects if the process dies, and the watchdog counts. One of them may
 * take all of its time; the others were put beside it because all of them take `span_ns`.
 */
static void note(const struct batch *batch, uint64_t span_ns) {
    const struct batch_context *context = batch->context;
    uint64_t longest_ms = 0;
    const struct long_job *long_job = batch->items[0].job->long_job;
    if (long_job != NULL) span_ns = chunk_allowance_ns(long_job);
    for (size_t i = 0; i < batch->count; i++) {
        const struct job *job = batch->items[i].job;
        if (job->timeout_ms > longest_ms) longest_ms = job->timeout_ms;
        state_note_job(context->state, context->lane, batch->slot, (uint32_t)i,
            &job->delivery->position, job->retry_count + 1);
    }
    state_note_rounds(context->state, context->lane, batch->slot,
        long_job != NULL ? (uint64_t)long_job->rounds + long_job->chunk : 0);
    state_launch(context->state, context->lane, batch->slot, (uint32_t)batch->count,
        batch->telemetry.id,
        longest_ms * 1000000 + (batch->count > 1 || long_job != NULL ? span_ns : 0));
}

void batch_recycle(struct batch *batch) {
    guards_release(batch);
    batch->count = 0;
    release_memory(batch->context, &batch->large);
    batch_leave(batch);
}

void batch_leave(struct batch *batch) {
    if (batch->has_entered) tenancy_leave(batch->context->tenancy);
    batch->has_entered = false;
}

/* Where everything stands, and the memory for it. */
static enum err find_room(struct batch *batch, bool is_guarded, struct error *err) {
    struct job *job = batch->items[0].job;
    enum err code = ERR_OK;
    if (job->long_job != NULL) code = chunk_begin(job, batch->begun_ns, err);
    if (code != ERR_OK) return code;
    lay_out(batch, is_guarded);
    return job->long_job != NULL ? fit_long_job(batch, job->long_job, err)
                                 : fit_memory(batch, is_guarded, err);
}

static enum err begin(struct batch *batch, struct job *const *jobs, size_t count, uint64_t span_ns,
    bool is_guarded, uint64_t id, struct error *err) {
    batch->count = count;
    batch->is_done = false;
    batch->telemetry = (struct batch_telemetry){.id = id, .jobs = count};
    for (size_t i = 0; i < count; i++) {
        batch->items[i].job = jobs[i];
        outcome_begin(&jobs[i]->outcome);
    }
    batch->begun_ns = clock_ns();
    enum err code = find_room(batch, is_guarded, err);
    if (code != ERR_OK) return code;
    profile_push("stage");
    code = stage_batch(batch, err);
    profile_pop();
    if (code != ERR_OK) {
        batch_recycle(batch);
        return code;
    }
    batch->staged_ns = clock_ns();
    note(batch, span_ns);
    for (size_t i = 0; i < count; i++) {
        job_move(jobs[i], JOB_ON_DEVICE);
        jobs[i]->run = RUN_STARTED;
    }
    profile_push("enqueue");
    code = enqueue_batch(batch, err);
    profile_pop();
    batch->enqueued_ns = clock_ns();
    if (err_is_sticky(code)) return code;
    if (code != ERR_OK) fail_all(batch, code, err);
    else if (jobs[0]->long_job != NULL) chunk_launched(jobs[0]->long_job, batch->items[0].rows);
    else if (batch->memory == &batch->slabs) batch->shared_run = sharing_run(batch, is_guarded);
    batch->telemetry.sync_points = 1;
    /* Whatever was enqueued must be over before the slabs are used again, failed or not. */
    struct error fence_error;
    code = event_record(batch->context->device, batch->fence, batch->context->stream, &fence_error);
    if (code == ERR_OK) return ERR_OK;
    fail_all(batch, code, &fence_error);
    return stream_wait(batch->context->device, batch->context->stream, err);
}

enum err batch_begin(struct batch *batch, struct job *const *jobs, size_t count, uint64_t span_ns,
    bool is_guarded, uint64_t id, struct error *err) {
    INVARIANT(count > 0 && count <= batch->context->jobs_max && (count == 1 || !is_guarded),
        "a batch has 1 to jobs_max jobs, a guarded one has one");
    batch->has_entered = true;
    enum err code = begin(batch, jobs, count, span_ns, is_guarded, id, err);
    if (code != ERR_OK) batch_leave(batch);
    return code;
}

bool batch_is_done(struct batch *batch) {
    struct error err;
    bool is_done = batch->is_done;
    if (is_done) return true;
    enum err code = event_poll(batch->context->device, batch->fence, &is_done, &err);
    return batch->is_done = code == ERR_OK && is_done;
}

bool batch_is_done_soon(struct batch *batch) {
    bool is_done = batch_is_done(batch);
    for (int i = 1; i < FENCE_POLLS && !is_done; i++) {
        sched_yield();
        is_done = batch_is_done(batch);
    }
    return is_done;
}

/* Short batches are met by polling; for the others the lane sleeps in the driver. */
static enum err wait_for_fence(struct batch *batch, struct error *err) {
    const struct device *device = batch->context->device;
    if (batch_is_done_soon(batch)) return ERR_OK;
    enum err code = event_wait(device, batch->fence, err);
    if (code == ERR_OK || err_is_sticky(code)) return code;
    /* Where the fence does not tell, the stream does: later, but as sure. */
    return stream_wait(device, batch->context->stream, err);
}

/* Where the output stands: in the readback slab, or in the upload slab that it was mapped in. */
static const uint8_t *find_output(
    const struct batch *batch, const struct batch_item *item, size_t index) {
    const struct plan *plan = item->job->plan;
    const struct job_output *output = &plan->job->outputs[index];
    const uint8_t *readback = pool_block_pinned(&batch->memory->readback).data;
    if (output->bytes == 0) return readback;
    if (batch->is_placed) return readback + item->job->room.places[index];
    if (batch->is_mapped)
        return pool_block_pinned(&batch->memory->upload).data + batch_place(item, output->buffer) +
               output->offset;
    if (plan->outputs[index].is_unpacked) {
        struct output_extent extent = extent_output(plan, index, job_slice_count(item->job));
        return readback + item->output_base + extent.staging + (output->offset - extent.offset);
    }
    return readback + batch_place(item, output->buffer) - batch->start[GROUP_INOUT] +
           output->offset;
}

/* From here on the memory is the job's. */
static void leave_room(struct batch *batch) {
    struct pool_block *block = &batch->large.readback;
    struct result_room *room = &batch->items[0].job->room;
    room->data = pool_block_pinned(block).data;
    room->pinned_bytes = block->bytes;
    *block = (struct pool_block){0};
}

static enum err collect_outputs(
    struct batch *batch, const struct batch_item *item, struct error *err) {
    struct job *job = item->job;
    if (job_is_slice(job)) {
        enum err code = ERR_OK;
        for (size_t i = 0; i < job->output_count && code == ERR_OK; i++)
            code = array_assemble(job, i, find_output(batch, item, i),
                job->plan->buffers[job->outputs[i].buffer].stride, err);
        if (job->array == NULL) job->outcome.outputs = job->found; /* a long one is whole now */
        return code;
    }
    for (size_t i = 0; i < job->output_count; i++)
        job->found[i] = slice_of(find_output(batch, item, i), job->outputs[i].bytes);
    job->outcome.outputs = job->found;
    if (batch->is_placed) leave_room(batch);
    return ERR_OK;
}

/* Of a job that takes several batches: its receipt sums them. */
static bool is_part(const struct job *job) {
    return job_is_slice(job) || job->long_job != NULL;
}

static struct job_telemetry describe(
    const struct batch *batch, const struct job *job, uint64_t done_ns) {
    const struct plan *plan = job->plan;
    bool is_run = !job->is_applied; /* else it only reads */
    uint64_t rounds = job->long_job != NULL ? job->long_job->instance_rounds : 1;
    return (struct job_telemetry){
        .h2d_bytes =
            (is_run ? plan->h2d_bytes : 0) + job->static_bytes_uploaded + job->init_bytes_uploaded,
        .d2h_bytes = plan->d2h_bytes,
        .param_bytes = is_run ? plan->param_bytes * rounds : 0,
        .kernel_launches = is_run ? plan->kernel_launches * rounds : 0,
        .static_hits = job->static_hits,
        .static_misses = job->static_misses,
        .static_bytes_saved = job->static_bytes_saved,
        .queue_ns = batch->begun_ns - job->ready_ns,
        .decode_ns = job->decode_ns,
        .prepare_ns = job->ready_ns - job->submitted_ns,
        .stage_ns = batch->staged_ns - batch->begun_ns,
        .enqueue_ns = batch->enqueued_ns - batch->staged_ns,
        .wait_ns = done_ns - batch->enqueued_ns,
        .wall_ns = done_ns - job->delivery->received_ns,
        .instances = job->instances,
        .slices = job_is_slice(job),
        .is_sum = is_part(job),
        .is_timed = is_run && job->timing,
        .batch = batch->telemetry};
}

/* So far: what the whole of a long job has asked for is known in the end. */
static void merge_chunk(struct job *job) {
    telemetry_merge(&job->long_job->telemetry, &job->outcome.telemetry);
    job->outcome.telemetry = job->long_job->telemetry;
}

static void end_chunk(const struct batch *batch, struct job *job, uint64_t done_ns) {
    const uint8_t *flags = pool_block_pinned(&batch->memory->readback).data;
    struct long_job *long_job = job->long_job;
    uint64_t stride = job->plan->buffers[long_job->until].stride;
    chunk_end(job, flags, stride, done_ns, done_ns - batch->staged_ns);
    for (size_t i = 0; i < long_job->shown_count && long_job->is_shown; i++) {
        const struct job_output *output = &long_job->shown[i];
        struct shown_extent extent = chunk_shown(job, i);
        long_job->found[i] =
            (struct shown_output){flags + extent.at + (output->offset - extent.offset),
                job->plan->buffers[output->buffer].stride};
    }
}

static enum err settle(
    struct batch *batch, struct batch_item *item, uint64_t done_ns, struct error *err) {
    struct job *job = item->job;
    struct outcome *outcome = &job->outcome;
    outcome->telemetry = describe(batch, job, done_ns);
    if (job->long_job != NULL) merge_chunk(job);
    if (outcome->code == ERR_OK && outcome->telemetry.is_timed)
        outcome->code = event_elapsed_ns(batch->context->device, item->timing.started,
            item->timing.stopped, &outcome->telemetry.device_ns, &outcome->err);
    if (err_is_sticky(outcome->code)) *err = outcome->err;
    if (outcome->code == ERR_OK && batch->guarded != NULL)
        outcome->code = guards_check(batch, &outcome->err);
    if (outcome->code != ERR_OK) return err_is_sticky(outcome->code) ? outcome->code : ERR_OK;
    if (job->long_job != NULL && job->long_job->chunk > 0) {
        end_chunk(batch, job, done_ns);
        return ERR_OK;
    }
    job->run = RUN_DONE;
    if (job->plan->resident_count > 0) outcome->generations = job->generations;
    outcome->code = collect_outputs(batch, item, &outcome->err);
    return ERR_OK;
}

enum err batch_finish(struct batch *batch, struct error *err) {
    profile_push("wait");
    enum err code = wait_for_fence(batch, err);
    profile_pop();
    if (code != ERR_OK) return code;
    state_fence(batch->context->state, batch->context->lane, batch->slot);
    uint64_t done_ns = clock_ns();
    account_batch(batch->context->counters, &batch->telemetry, is_part(batch->items[0].job));
    for (size_t i = 0; i < batch->count && code == ERR_OK; i++)
        code = settle(batch, &batch->items[i], done_ns, err);
    return code;
}
