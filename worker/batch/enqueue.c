#include "batch/enqueue.h"

#include <string.h>

#include "base/invariant.h"
#include "batch/chunk.h"
#include "batch/coalesce.h"
#include "batch/graphs.h"
#include "batch/guards.h"
#include "gpu/event.h"
#include "plan/extent.h"

static enum err copy_up(
    struct batch *batch, CUdeviceptr to, uint64_t from, uint64_t bytes, struct error *err) {
    if (bytes == 0) return ERR_OK;
    struct pinned_block upload = pool_block_pinned(&batch->memory->upload);
    INVARIANT(from <= upload.bytes && bytes <= upload.bytes - from,
        "a copy to the device lies inside its upload block");
    enum err code = GPU_TRY(batch->context->device->driver,
        copy_to_device(to, upload.data + from, bytes, batch->context->stream), err);
    if (code != ERR_OK) return code;
    batch->telemetry.uploads++;
    batch->telemetry.h2d_bytes += bytes;
    return ERR_OK;
}

static enum err copy_back(
    struct batch *batch, uint64_t to, CUdeviceptr from, uint64_t bytes, struct error *err) {
    if (bytes == 0) return ERR_OK;
    struct pinned_block readback = pool_block_pinned(&batch->memory->readback);
    INVARIANT(to <= readback.bytes && bytes <= readback.bytes - to,
        "a copy from the device lies inside its readback block");
    enum err code = GPU_TRY(batch->context->device->driver,
        copy_to_host(readback.data + to, from, bytes, batch->context->stream), err);
    if (code != ERR_OK) return code;
    batch->telemetry.readbacks++;
    batch->telemetry.d2h_bytes += bytes;
    return ERR_OK;
}

static enum err fill(
    struct batch *batch, CUdeviceptr address, uint8_t value, uint64_t bytes, struct error *err) {
    if (bytes == 0) return ERR_OK;
    return GPU_TRY(
        batch->context->device->driver, fill(address, value, bytes, batch->context->stream), err);
}

/* Statics that were cold a moment ago may still be on their way. */
static enum err await_statics(struct batch *batch, struct error *err) {
    enum err code = ERR_OK;
    for (size_t i = 0; i < batch->count; i++) {
        const struct job *job = batch->items[i].job;
        for (size_t b = 0; b < job->buffer_count && code == ERR_OK; b++)
            if (job->statics[b] != NULL)
                code = static_entry_await(
                    batch->context->device, job->statics[b], batch->context->stream, err);
    }
    return code;
}

/* Each buffer by itself, from where it stands in the packed upload, and its guards around it. */
static enum err enqueue_guarded_buffer(struct batch *batch, size_t buffer, struct error *err) {
    const struct batch_item *item = &batch->items[0];
    const struct plan_buffer *place = &item->job->plan->buffers[buffer];
    if (place->group == GROUP_NONE) return ERR_OK;
    CUdeviceptr address = batch_guarded_address(batch, buffer);
    uint64_t bytes = extent_buffer_bytes(place, job_slice_count(item->job));
    enum err code = fill(batch, address - GUARD_BYTES, GUARD_VALUE, GUARD_BYTES, err);
    if (code == ERR_OK) code = fill(batch, address + bytes, GUARD_VALUE, GUARD_BYTES, err);
    if (code != ERR_OK) return code;
    if (place->group == GROUP_OUTPUT || place->group == GROUP_SCRATCH)
        return fill(batch, address, 0, bytes, err);
    return copy_up(batch, address, batch_place(item, buffer), bytes, err);
}

static enum err enqueue_guarded_inputs(struct batch *batch, struct error *err) {
    CUdeviceptr blocks = pool_block_device(&batch->memory->device);
    enum err code = copy_up(batch, blocks, 0, batch->param_block_bytes, err);
    for (size_t i = 0; i < batch->guarded_count && code == ERR_OK; i++)
        code = enqueue_guarded_buffer(batch, i, err);
    return code;
}

/* What all jobs share: the packed upload and the clear. */
static enum err enqueue_inputs(struct batch *batch, struct error *err) {
    if (batch->guarded != NULL) return enqueue_guarded_inputs(batch, err);
    uint64_t kept = batch->kept_bytes;
    enum err code = copy_up(batch, batch->origin + kept, kept, batch->upload_bytes - kept, err);
    if (code != ERR_OK) return code;
    return fill(batch, batch->origin + batch->upload_bytes, 0,
        batch->start[GROUP_COUNT] - batch->upload_bytes, err);
}

/* What changes between the chunks of a long job. */
static enum err enqueue_rows(struct batch *batch, struct error *err) {
    const struct batch_item *item = &batch->items[0];
    if (!coalesce_has_new_rows(batch)) return ERR_OK;
    return copy_up(batch, batch->origin + item->table, item->table,
        coalesce_table_bytes(item->job->plan, item->rows), err);
}

/* Fills first, writes over them: the order that the message format promises. A write has no pad:
 * what lies behind it is its buffer's own. */
static enum err enqueue_fills_and_writes(
    struct batch *batch, const struct batch_item *item, struct error *err) {
    const struct plan *plan = item->job->plan;
    enum err code = ERR_OK;
    if (batch->is_mapped) return ERR_OK; /* staged so */
    for (size_t i = 0; i < plan->fill_count && code == ERR_OK; i++) {
        const struct plan_fill *wanted = &plan->fills[i];
        if (prepare_wants(item->job, wanted->buffer, wanted->is_init))
            code = fill(batch, batch_address(batch, item, wanted->buffer), wanted->value,
                extent_buffer_bytes(&plan->buffers[wanted->buffer], job_slice_count(item->job)),
                err);
    }
    struct unpacked_write write = {0};
    while (code == ERR_OK && batch_next_write(item->job, &write))
        code = copy_up(batch, batch_address(batch, item, write.buffer) + write.offset,
            item->write_base + write.staging, write.data.size, err);
    return code;
}

static enum err launch_once(
    struct batch *batch, const struct kernel_launch *launch, struct error *err) {
    if (batch->graphs != NULL) return graphs_add(batch->graphs, launch, err);
    return kernel_launch_enqueue(
        batch->context->device, batch->context->stream, launch, &batch->telemetry, err);
}

/* Whatever comes next on the stream is behind what was gathered. */
static enum err flush_launches(struct batch *batch, struct error *err) {
    return batch->graphs != NULL ? graphs_flush(batch->graphs, err) : ERR_OK;
}

static struct kernel_launch launch_of(
    const struct plan_launch *launch, const struct job_kernel *chosen, void **params) {
    struct kernel_launch ret = {.module = chosen->module,
        .entry = launch->entry,
        .function = chosen->kernel->function,
        .shared_bytes = launch->shared_bytes,
        .params = params};
    memcpy(ret.grid, launch->grid, sizeof ret.grid);
    memcpy(ret.block, launch->block, sizeof ret.block);
    return ret;
}

/* A graph has no such launches. */
static enum err launch_cooperatively(
    struct batch *batch, const struct kernel_launch *launch, struct error *err) {
    const uint32_t *grid = launch->grid, *block = launch->block;
    enum err code = flush_launches(batch, err);
    if (code == ERR_OK)
        code = GPU_TRY(batch->context->device->driver,
            launch_cooperative(launch->function, grid[0], grid[1], grid[2], block[0], block[1],
                block[2], launch->shared_bytes, batch->context->stream, launch->params),
            err);
    if (code == ERR_OK) batch->telemetry.launches++;
    return code;
}

static enum err launch_phases(struct batch *batch, const struct kernel_launch *launch,
    const struct kernel *kernel, struct error *err) {
    struct kernel_launch phase = *launch;
    enum err code = ERR_OK;
    for (size_t i = 0; i < launch->entry->phase_count && code == ERR_OK; i++) {
        phase.function = kernel->phases[i]->function;
        code = launch_once(batch, &phase, err);
    }
    return code;
}

static enum err launch_step(struct batch *batch, const struct plan_launch *planned,
    const struct job_kernel *chosen, const struct kernel_launch *launch, struct error *err) {
    if (chosen->is_in_phases) return launch_phases(batch, launch, chosen->kernel, err);
    if (planned->cooperative) return launch_cooperatively(batch, launch, err);
    return launch_once(batch, launch, err);
}

static enum err enqueue_launch(struct batch *batch, const struct batch_item *item,
    const struct plan_launch *launch, const struct job_kernel *chosen, uint32_t instance,
    struct error *err) {
    CUdeviceptr addresses[ENTRY_ARGS_MAX];
    uint64_t bits[ENTRY_ARGS_MAX];
    void *params[ENTRY_ARGS_MAX];
    for (size_t i = 0; i < launch->entry->arg_count; i++) {
        const struct job_arg *arg = &launch->args[i];
        bits[i] = job_arg_bits(arg, item->job->slice.first + instance);
        params[i] = &bits[i]; /* little-endian: narrow values come first */
        if (arg->kind == ARG_WORDS)
            params[i] =
                (void *)(uintptr_t)job_arg_words(arg, item->job->slice.first + instance).data;
        if (arg->kind == ARG_BUFFER)
            addresses[i] = batch_address(batch, item, arg->buffer) +
                           item->job->plan->buffers[arg->buffer].stride * instance;
        else if (arg->kind == ARG_WORDS && launch->entry->params_in_buffer)
            addresses[i] = batch_param_block_address(batch, item, launch) +
                           launch->param_block_stride * instance;
        else continue;
        params[i] = &addresses[i];
    }
    const struct kernel_launch step = launch_of(launch, chosen, params);
    enum err code = ERR_OK;
    for (uint32_t i = 0; i < launch->iterations && code == ERR_OK; i++)
        code = launch_step(batch, launch, chosen, &step, err);
    return code;
}

/* Of this visit to the device. */
static uint32_t rounds_of(const struct job *job) {
    return job->long_job != NULL ? job->long_job->chunk : job->repeat;
}

static enum err enqueue_instance(
    struct batch *batch, const struct batch_item *item, uint32_t instance, struct error *err) {
    const struct plan *plan = item->job->plan;
    uint32_t rounds = rounds_of(item->job);
    enum err code = ERR_OK;
    for (uint32_t n = 0; n < rounds && code == ERR_OK; n++)
        for (size_t i = 0; i < plan->launch_count && code == ERR_OK; i++)
            code = enqueue_launch(
                batch, item, &plan->launches[i], &item->job->kernels[i], instance, err);
    return code;
}

/* Instances that share no launches run one after the other. */
static enum err enqueue_instances(
    struct batch *batch, const struct batch_item *item, struct error *err) {
    const struct long_job *long_job = item->job->long_job;
    enum err code = ERR_OK;
    uint32_t count = long_job != NULL ? long_job->live_count : job_slice_count(item->job);
    for (uint32_t i = 0; i < count && code == ERR_OK; i++)
        code = enqueue_instance(batch, item, long_job != NULL ? long_job->live[i] : i, err);
    return code;
}

/* One launch for all jobs of a run: grid.y counts the jobs, the table holds their arguments. */
static enum err launch_run(
    struct batch *batch, const struct coalesced_run *run, size_t step, struct error *err) {
    const struct job *first = batch->items[run->first].job;
    const struct plan_launch *launch = &first->plan->launches[step];
    CUdeviceptr rows = coalesced_rows(batch, run, step);
    uint32_t jobs = run->rows;
    void *params[] = {&rows, &jobs};
    struct kernel_launch all = launch_of(launch, &first->kernels[step], params);
    all.function = first->kernels[step].kernel->batched;
    all.is_batched = true;
    all.grid[1] = jobs;
    enum err code = ERR_OK;
    for (uint32_t i = 0; i < launch->iterations && code == ERR_OK; i++)
        code = launch_once(batch, &all, err);
    return code;
}

static enum err launch_steps(
    struct batch *batch, const struct coalesced_run *run, struct error *err) {
    const struct job *job = batch->items[run->first].job;
    const struct plan *plan = job->plan;
    uint32_t rounds = rounds_of(job);
    enum err code = ERR_OK;
    for (uint32_t n = 0; n < rounds && code == ERR_OK; n++)
        for (size_t step = 0; step < plan->launch_count && code == ERR_OK; step++)
            code = launch_run(batch, run, step, err);
    return code;
}

/* All launches of a run: of a job, a slice, or several jobs together. */
static enum err enqueue_launches(
    struct batch *batch, const struct coalesced_run *run, struct error *err) {
    enum err code = run->rows > 0 ? launch_steps(batch, run, err)
                                  : enqueue_instances(batch, &batch->items[run->first], err);
    return code == ERR_OK ? flush_launches(batch, err) : code;
}

/* Else it only reads its outputs. */
static bool runs(const struct job *job) {
    return !job->is_applied && rounds_of(job) > 0;
}

/* A job, or a slice. */
static enum err enqueue_alone(
    struct batch *batch, const struct coalesced_run *run, struct error *err) {
    struct batch_item *item = &batch->items[run->first];
    const struct device *device = batch->context->device;
    CUstream stream = batch->context->stream;
    bool is_timed = item->job->timing;
    enum err code = ERR_OK;
    if (!runs(item->job)) return ERR_OK;
    if (batch_starts(batch)) code = enqueue_fills_and_writes(batch, item, err);
    if (code == ERR_OK && is_timed && item->timing.started == NULL)
        code = timing_pair_take(batch->context->leases, &item->timing, err);
    if (code == ERR_OK && is_timed) code = event_record(device, item->timing.started, stream, err);
    if (code == ERR_OK) code = enqueue_launches(batch, run, err);
    if (code == ERR_OK && is_timed) code = event_record(device, item->timing.stopped, stream, err);
    return code;
}

static enum err enqueue_run(
    struct batch *batch, const struct coalesced_run *run, struct error *err) {
    enum err code = ERR_OK;
    for (size_t i = run->first; i < run->first + run->count && code == ERR_OK; i++)
        code = enqueue_fills_and_writes(batch, &batch->items[i], err);
    return code == ERR_OK ? enqueue_launches(batch, run, err) : code;
}

static enum err enqueue_jobs(struct batch *batch, struct error *err) {
    for (size_t i = 0; i < batch->count;) {
        struct coalesced_run run = coalesced_run_at(batch, i);
        struct outcome *outcome = &batch->items[i].job->outcome;
        outcome->code = run.count > 1 ? enqueue_run(batch, &run, &outcome->err)
                                      : enqueue_alone(batch, &run, &outcome->err);
        if (err_is_sticky(outcome->code)) {
            *err = outcome->err;
            return outcome->code;
        }
        if (outcome->code != ERR_OK) /* else theirs says so already */
            for (size_t k = i + 1; k < i + run.count; k++) batch->items[k].job->outcome = *outcome;
        i += run.count;
    }
    return ERR_OK;
}

static enum err read_guarded_buffer(struct batch *batch, size_t buffer, struct error *err) {
    const struct batch_item *item = &batch->items[0];
    const struct plan_buffer *place = &item->job->plan->buffers[buffer];
    if (place->group == GROUP_NONE) return ERR_OK;
    CUdeviceptr address = batch_guarded_address(batch, buffer);
    uint64_t guards = guards_readback_at(batch, buffer);
    uint64_t bytes = extent_buffer_bytes(place, job_slice_count(item->job));
    enum err code = copy_back(batch, guards, address - GUARD_BYTES, GUARD_BYTES, err);
    if (code == ERR_OK)
        code = copy_back(batch, guards + GUARD_BYTES, address + bytes, GUARD_BYTES, err);
    bool is_read = place->group == GROUP_INOUT || place->group == GROUP_OUTPUT;
    if (code != ERR_OK || !is_read || batch->is_placed) return code;
    uint64_t to = batch_place(item, buffer) - batch->start[GROUP_INOUT];
    return copy_back(batch, to, address, bytes, err);
}

/* Each by itself, with its guards. */
static enum err read_guarded(struct batch *batch, struct error *err) {
    enum err code = ERR_OK;
    for (size_t i = 0; i < batch->guarded_count && code == ERR_OK; i++)
        code = read_guarded_buffer(batch, i, err);
    return code;
}

/* In one copy: what all jobs share. */
static enum err read_packed(struct batch *batch, struct error *err) {
    return copy_back(batch, 0, batch->origin + batch->start[GROUP_INOUT],
        batch->start[GROUP_SCRATCH] - batch->start[GROUP_INOUT], err);
}

/* Each to where the result has it. */
static enum err read_placed(struct batch *batch, struct error *err) {
    const struct batch_item *item = &batch->items[0];
    const struct job *job = item->job;
    enum err code = ERR_OK;
    for (size_t i = 0; i < job->output_count && code == ERR_OK; i++)
        if (job->outputs[i].bytes > 0)
            code = copy_back(batch, job->room.places[i],
                batch_address(batch, item, job->outputs[i].buffer) + job->outputs[i].offset,
                job->outputs[i].bytes, err);
    return code;
}

/* Unpacked outputs are not padded either: each has a place of its own in the slab, at a multiple of
 * 256, and more bytes would only be copied in vain. */
static enum err read_unpacked(struct batch *batch, struct error *err) {
    enum err code = ERR_OK;
    for (size_t i = 0; i < batch->count && code == ERR_OK; i++) {
        const struct batch_item *item = &batch->items[i];
        const struct plan *plan = item->job->plan;
        for (size_t k = 0; k < plan->job->output_count && code == ERR_OK; k++) {
            if (!plan->outputs[k].is_unpacked) continue;
            struct output_extent extent = extent_output(plan, k, job_slice_count(item->job));
            code = copy_back(batch, item->output_base + extent.staging,
                batch_address(batch, item, plan->job->outputs[k].buffer) + extent.offset,
                extent.bytes, err);
        }
    }
    return code;
}

/* Which instances of a long job are done. */
static enum err read_flags(
    struct batch *batch, const struct long_job *long_job, struct error *err) {
    const struct batch_item *item = &batch->items[0];
    if (!long_job->has_until) return ERR_OK;
    return copy_back(
        batch, 0, batch_address(batch, item, long_job->until), chunk_flags_bytes(item->job), err);
}

static enum err read_shown(
    struct batch *batch, const struct long_job *long_job, struct error *err) {
    const struct batch_item *item = &batch->items[0];
    enum err code = ERR_OK;
    for (size_t i = 0; i < long_job->shown_count && long_job->is_shown && code == ERR_OK; i++) {
        struct shown_extent extent = chunk_shown(item->job, i);
        code = copy_back(batch, extent.at,
            batch_address(batch, item, long_job->shown[i].buffer) + extent.offset, extent.bytes,
            err);
    }
    return code;
}

static enum err enqueue_readback(struct batch *batch, struct error *err) {
    const struct long_job *long_job = batch_long_job(batch);
    enum err code = ERR_OK;
    if (long_job != NULL && long_job->chunk > 0) {
        code = read_flags(batch, long_job, err);
        return code == ERR_OK ? read_shown(batch, long_job, err) : code;
    }
    if (batch->guarded != NULL) code = read_guarded(batch, err);
    else if (!batch->is_placed) code = read_packed(batch, err);
    if (code != ERR_OK) return code;
    return batch->is_placed ? read_placed(batch, err) : read_unpacked(batch, err);
}

/* No copies; what crosses the link is what the kernels touch: as much as the jobs ask for. */
static void count_mapped(struct batch *batch) {
    for (size_t i = 0; i < batch->count; i++) {
        batch->telemetry.h2d_bytes += batch->items[i].job->plan->h2d_bytes;
        batch->telemetry.d2h_bytes += batch->items[i].job->plan->d2h_bytes;
    }
}

enum err enqueue_batch(struct batch *batch, struct error *err) {
    enum err code = await_statics(batch, err);
    if (code == ERR_OK && !batch_starts(batch)) code = enqueue_rows(batch, err);
    else if (code == ERR_OK && !batch->is_mapped) code = enqueue_inputs(batch, err);
    if (code == ERR_OK) code = enqueue_jobs(batch, err);
    if (code == ERR_OK && batch->is_mapped) count_mapped(batch);
    else if (code == ERR_OK) code = enqueue_readback(batch, err);
    return code;
}
