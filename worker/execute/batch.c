#include "execute/batch.h"

#include <assert.h>
#include <sched.h>
#include <stdlib.h>

#include "base/clock.h"

enum { FENCE_POLLS = 64 }; /* before the lane sleeps in the driver */

enum err batch_init(struct batch *batch, const struct device *device, uint64_t slab_bytes,
    size_t jobs_max, struct error *err) {
    const struct gpu_driver *gpu = device->driver;
    *batch = (struct batch){.device = device, .slab_bytes = slab_bytes, .count_max = jobs_max};
    batch->items = calloc(jobs_max, sizeof batch->items[0]);
    if (batch->items == NULL)
        return error_set(err, ERR_NO_MEMORY, 0, "give the process more memory",
            "no memory for a batch of %zu jobs", jobs_max);
    enum err code = GPU_TRY(gpu, stream_create(&batch->stream, CU_STREAM_NON_BLOCKING), err);
    if (code == ERR_OK)
        code = GPU_TRY(gpu,
            event_create(&batch->fence, CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC), err);
    if (code == ERR_OK) code = device_block_alloc(device, slab_bytes, &batch->memory, err);
    if (code == ERR_OK) code = pinned_block_alloc(device, slab_bytes, &batch->upload, err);
    if (code == ERR_OK) code = pinned_block_alloc(device, slab_bytes, &batch->readback, err);
    if (code != ERR_OK) batch_fini(batch);
    return code;
}

void batch_fini(struct batch *batch) {
    if (batch->device == NULL) return;
    const struct gpu_driver *gpu = batch->device->driver;
    if (batch->stream != NULL && gpu->stream_synchronize(batch->stream) == CUDA_SUCCESS) {
        for (size_t i = 0; i < batch->count_max; i++) {
            if (batch->items[i].started != NULL) (void)gpu->event_destroy(batch->items[i].started);
            if (batch->items[i].stopped != NULL) (void)gpu->event_destroy(batch->items[i].stopped);
        }
        pinned_block_free(batch->device, &batch->readback);
        pinned_block_free(batch->device, &batch->upload);
        device_block_free(batch->device, &batch->memory);
        if (batch->fence != NULL) (void)gpu->event_destroy(batch->fence);
        (void)gpu->stream_destroy(batch->stream);
    } /* else the context is lost: memory that may still be in use is not handed back */
    free(batch->items);
    *batch = (struct batch){0};
}

/* Lays the groups of all jobs out behind each other, so that each group is one range. */
static void lay_out(struct batch *batch) {
    uint64_t at = 0;
    for (int group = 0; group < GROUP_COUNT; group++) {
        batch->start[group] = at;
        for (size_t i = 0; i < batch->count; i++) {
            batch->items[i].base[group] = at;
            at += batch->items[i].prepared->plan->group_bytes[group];
        }
    }
    batch->start[GROUP_COUNT] = at;
    batch->write_bytes = batch->output_bytes = 0;
    for (size_t i = 0; i < batch->count; i++) {
        struct batch_item *item = &batch->items[i];
        item->write_base = batch->start[GROUP_OUTPUT] + batch->write_bytes;
        item->output_base =
            batch->start[GROUP_SCRATCH] - batch->start[GROUP_INOUT] + batch->output_bytes;
        batch->write_bytes += item->prepared->plan->write_staging_bytes;
        batch->output_bytes += item->prepared->plan->output_staging_bytes;
    }
}

/* A slab keeps its usual size, grows for a large batch, and shrinks again with the next small one.
 */
static bool must_resize(uint64_t bytes, uint64_t need, uint64_t usual) {
    return need > bytes || (bytes > usual && need <= usual);
}

static enum err fit_pinned(
    struct batch *batch, struct pinned_block *block, uint64_t need, struct error *err) {
    if (!must_resize(block->bytes, need, batch->slab_bytes)) return ERR_OK;
    pinned_block_free(batch->device, block);
    uint64_t bytes = need > batch->slab_bytes ? need : batch->slab_bytes;
    return pinned_block_alloc(batch->device, bytes, block, err);
}

static enum err fit_slabs(struct batch *batch, struct error *err) {
    uint64_t need = batch->start[GROUP_COUNT];
    if (must_resize(batch->memory.bytes, need, batch->slab_bytes)) {
        device_block_free(batch->device, &batch->memory);
        uint64_t bytes = need > batch->slab_bytes ? need : batch->slab_bytes;
        enum err code = device_block_alloc(batch->device, bytes, &batch->memory, err);
        if (code != ERR_OK) return code;
    }
    uint64_t upload = batch->start[GROUP_OUTPUT] + batch->write_bytes;
    uint64_t readback =
        batch->start[GROUP_SCRATCH] - batch->start[GROUP_INOUT] + batch->output_bytes;
    enum err code = fit_pinned(batch, &batch->upload, upload, err);
    if (code == ERR_OK) code = fit_pinned(batch, &batch->readback, readback, err);
    return code;
}

static void copy_in(struct pinned_block *slab, uint64_t at, struct slice bytes) {
    assert(at <= slab->bytes && bytes.size <= slab->bytes - at);
    if (bytes.size > 0) memcpy(slab->data + at, bytes.data, bytes.size);
}

/* The buffer as the job wants it: its source, the writes over it, and zeroes up to the next buffer.
 */
static void stage_buffer(struct batch *batch, struct batch_item *item, size_t index) {
    const struct job_buffer *buffer = &item->prepared->job->buffers[index];
    const struct plan_buffer *place = &item->prepared->plan->buffers[index];
    if (place->group != GROUP_INPUT && place->group != GROUP_INOUT) return;
    uint64_t at = item->base[place->group] + place->offset;
    copy_in(&batch->upload, at,
        buffer->source == BUFFER_BLOB ? item->prepared->blobs[index].bytes : buffer->data);
    for (size_t i = 0; i < buffer->write_count; i++)
        copy_in(&batch->upload, at + buffer->writes[i].offset, buffer->writes[i].data);
    uint64_t pad = -buffer->bytes & (PLAN_ALIGNMENT - 1);
    memset(batch->upload.data + at + buffer->bytes, 0, pad);
}

static void stage(struct batch *batch) {
    for (size_t i = 0; i < batch->count; i++) {
        struct batch_item *item = &batch->items[i];
        const struct plan *plan = item->prepared->plan;
        for (size_t b = 0; b < plan->job->buffer_count; b++) stage_buffer(batch, item, b);
        for (size_t w = 0; w < plan->write_count; w++)
            copy_in(
                &batch->upload, item->write_base + plan->writes[w].staging, plan->writes[w].data);
    }
}

static CUdeviceptr address_of(
    const struct batch *batch, const struct batch_item *item, size_t buffer) {
    const struct plan_buffer *place = &item->prepared->plan->buffers[buffer];
    if (place->group != GROUP_NONE)
        return batch->memory.address + item->base[place->group] + place->offset;
    const struct static_entry *entry = item->prepared->statics[buffer];
    return entry != NULL ? static_entry_address(entry) : 0; /* empty buffers have no address */
}

static enum err copy_up(
    struct batch *batch, CUdeviceptr to, uint64_t from, uint64_t bytes, struct error *err) {
    if (bytes == 0) return ERR_OK;
    batch->telemetry.copies++;
    batch->telemetry.h2d_bytes += bytes;
    return GPU_TRY(batch->device->driver,
        copy_to_device(to, batch->upload.data + from, bytes, batch->stream), err);
}

static enum err copy_back(
    struct batch *batch, uint64_t to, CUdeviceptr from, uint64_t bytes, struct error *err) {
    if (bytes == 0) return ERR_OK;
    assert(to <= batch->readback.bytes && bytes <= batch->readback.bytes - to);
    batch->telemetry.copies++;
    batch->telemetry.d2h_bytes += bytes;
    return GPU_TRY(batch->device->driver,
        copy_to_host(batch->readback.data + to, from, bytes, batch->stream), err);
}

static enum err fill(
    struct batch *batch, CUdeviceptr address, uint8_t value, uint64_t bytes, struct error *err) {
    if (bytes == 0) return ERR_OK;
    return GPU_TRY(batch->device->driver, fill(address, value, bytes, batch->stream), err);
}

/* What all jobs share: the packed upload and the clear. */
static enum err enqueue_inputs(struct batch *batch, struct error *err) {
    enum err code = copy_up(batch, batch->memory.address, 0, batch->start[GROUP_OUTPUT], err);
    if (code != ERR_OK) return code;
    return fill(batch, batch->memory.address + batch->start[GROUP_OUTPUT], 0,
        batch->start[GROUP_COUNT] - batch->start[GROUP_OUTPUT], err);
}

/* Fills first, writes over them: the order that the message format promises. */
static enum err enqueue_fills_and_writes(
    struct batch *batch, const struct batch_item *item, struct error *err) {
    const struct plan *plan = item->prepared->plan;
    enum err code = ERR_OK;
    for (size_t i = 0; i < plan->fill_count && code == ERR_OK; i++) {
        const struct plan_fill *wanted = &plan->fills[i];
        code = fill(batch, address_of(batch, item, wanted->buffer), wanted->value,
            plan->buffers[wanted->buffer].bytes, err);
    }
    for (size_t i = 0; i < plan->write_count && code == ERR_OK; i++) {
        const struct plan_write *write = &plan->writes[i];
        code = copy_up(batch, address_of(batch, item, write->buffer) + write->offset,
            item->write_base + write->staging, write->data.size, err);
    }
    return code;
}

static enum err enqueue_launch(struct batch *batch, const struct batch_item *item,
    const struct plan_launch *launch, CUfunction function, struct error *err) {
    CUdeviceptr addresses[ENTRY_ARGS_MAX];
    void *params[ENTRY_ARGS_MAX];
    for (size_t i = 0; i < launch->entry->arg_count; i++) {
        const struct job_arg *arg = &launch->args[i];
        params[i] = (void *)&arg->bits; /* little-endian: narrow values stand in the low bytes */
        if (arg->kind != ARG_BUFFER) continue;
        addresses[i] = address_of(batch, item, arg->buffer);
        params[i] = &addresses[i];
    }
    const struct gpu_driver *gpu = batch->device->driver;
    const uint32_t *grid = launch->grid, *block = launch->block;
    enum err code = ERR_OK;
    for (uint32_t i = 0; i < launch->iterations && code == ERR_OK; i++) {
        batch->telemetry.launches++;
        if (launch->cooperative)
            code = GPU_TRY(gpu,
                launch_cooperative(function, grid[0], grid[1], grid[2], block[0], block[1],
                    block[2], launch->shared_bytes, batch->stream, params),
                err);
        else
            code = GPU_TRY(gpu,
                launch(function, grid[0], grid[1], grid[2], block[0], block[1], block[2],
                    launch->shared_bytes, batch->stream, params, NULL),
                err);
    }
    return code;
}

/* A pair of timing events per item, made when its first timed job comes and kept. */
static enum err make_timing_events(
    struct batch *batch, struct batch_item *item, struct error *err) {
    const struct gpu_driver *gpu = batch->device->driver;
    enum err code = ERR_OK;
    if (item->started == NULL)
        code = GPU_TRY(gpu, event_create(&item->started, CU_EVENT_DEFAULT), err);
    if (code == ERR_OK && item->stopped == NULL)
        code = GPU_TRY(gpu, event_create(&item->stopped, CU_EVENT_DEFAULT), err);
    return code;
}

static enum err enqueue_steps(
    struct batch *batch, const struct batch_item *item, struct error *err) {
    const struct plan *plan = item->prepared->plan;
    enum err code = ERR_OK;
    for (uint32_t n = 0; n < plan->job->repeat; n++)
        for (size_t i = 0; i < plan->launch_count && code == ERR_OK; i++)
            code = enqueue_launch(
                batch, item, &plan->launches[i], item->prepared->kernels[i]->function, err);
    return code;
}

static enum err enqueue_job(struct batch *batch, struct batch_item *item, struct error *err) {
    const struct gpu_driver *gpu = batch->device->driver;
    bool is_timed = item->prepared->job->timing;
    enum err code = enqueue_fills_and_writes(batch, item, err);
    if (code == ERR_OK && is_timed) code = make_timing_events(batch, item, err);
    if (code == ERR_OK && is_timed)
        code = GPU_TRY(gpu, event_record(item->started, batch->stream), err);
    if (code == ERR_OK) code = enqueue_steps(batch, item, err);
    if (code == ERR_OK && is_timed)
        code = GPU_TRY(gpu, event_record(item->stopped, batch->stream), err);
    return code;
}

static enum err enqueue_readback(struct batch *batch, struct error *err) {
    enum err code = copy_back(batch, 0, batch->memory.address + batch->start[GROUP_INOUT],
        batch->start[GROUP_SCRATCH] - batch->start[GROUP_INOUT], err);
    for (size_t i = 0; i < batch->count && code == ERR_OK; i++) {
        const struct batch_item *item = &batch->items[i];
        const struct plan *plan = item->prepared->plan;
        for (size_t k = 0; k < plan->job->output_count && code == ERR_OK; k++) {
            const struct job_output *output = &plan->job->outputs[k];
            if (!plan->outputs[k].is_loose) continue;
            code = copy_back(batch, item->output_base + plan->outputs[k].staging,
                address_of(batch, item, output->buffer) + output->offset, output->bytes, err);
        }
    }
    return code;
}

/* A job whose own launches are refused fails alone; what moves for all fails all. */
static enum err enqueue(struct batch *batch, struct error *err) {
    enum err code = enqueue_inputs(batch, err);
    if (code != ERR_OK) return code;
    for (size_t i = 0; i < batch->count; i++) {
        struct outcome *outcome = &batch->items[i].outcome;
        outcome->code = enqueue_job(batch, &batch->items[i], &outcome->err);
        if (err_is_sticky(outcome->code)) {
            *err = outcome->err;
            return outcome->code;
        }
    }
    return enqueue_readback(batch, err);
}

/* Short batches are met by polling; for the others the lane sleeps in the driver. */
static enum err wait_for_fence(struct batch *batch, struct error *err) {
    const struct gpu_driver *gpu = batch->device->driver;
    batch->telemetry.sync_points++;
    enum err code = GPU_TRY(gpu, event_record(batch->fence, batch->stream), err);
    if (code != ERR_OK) return code;
    for (int i = 0; i < FENCE_POLLS; i++) {
        CUresult result = gpu->event_query(batch->fence);
        if (result != CUDA_ERROR_NOT_READY) return gpu_check(gpu, result, "cuEventQuery", err);
        sched_yield();
    }
    return GPU_TRY(gpu, event_synchronize(batch->fence), err);
}

static enum err read_device_ns(
    struct batch *batch, const struct batch_item *item, uint64_t *ret, struct error *err) {
    float ms = 0;
    enum err code =
        GPU_TRY(batch->device->driver, event_elapsed(&ms, item->started, item->stopped), err);
    if (code != ERR_OK) return code;
    if (!(ms >= 0 && ms < 1e12f))
        return error_set(err, ERR_DRIVER, 0, "update the GPU driver",
            "the driver measured %g ms between two events", (double)ms);
    *ret = (uint64_t)((double)ms * 1e6);
    return ERR_OK;
}

static void fail_all(struct batch *batch, enum err code, const struct error *err) {
    for (size_t i = 0; i < batch->count; i++) {
        batch->items[i].outcome.code = code;
        batch->items[i].outcome.err = *err;
    }
}

/* Points the job's outputs into the readback slab. */
static void collect_outputs(const struct batch *batch, struct batch_item *item) {
    const struct plan *plan = item->prepared->plan;
    for (size_t i = 0; i < plan->job->output_count; i++) {
        const struct job_output *output = &plan->job->outputs[i];
        const struct plan_buffer *place = &plan->buffers[output->buffer];
        uint64_t at = 0;
        if (plan->outputs[i].is_loose) at = item->output_base + plan->outputs[i].staging;
        else if (output->bytes > 0)
            at = item->base[place->group] - batch->start[GROUP_INOUT] + place->offset +
                 output->offset;
        item->prepared->outputs[i] = slice_of(batch->readback.data + at, output->bytes);
    }
    item->outcome.outputs = item->prepared->outputs;
}

static void describe(struct batch *batch, struct batch_item *item, uint64_t popped_ns,
    uint64_t staged_ns, uint64_t enqueued_ns, uint64_t done_ns) {
    const struct prepared *prepared = item->prepared;
    struct outcome *outcome = &item->outcome;
    outcome->telemetry = (struct job_telemetry){
        .h2d_bytes = prepared->plan->h2d_bytes + prepared->static_bytes_uploaded,
        .d2h_bytes = prepared->plan->d2h_bytes,
        .param_bytes = prepared->plan->param_bytes,
        .kernel_launches = prepared->plan->kernel_launches,
        .static_hits = prepared->static_hits,
        .static_misses = prepared->static_misses,
        .static_bytes_saved = prepared->static_bytes_saved,
        .queue_ns = popped_ns - prepared->ready_ns,
        .decode_ns = prepared->job->decode_ns,
        .prepare_ns = prepared->ready_ns - prepared->submitted_ns,
        .stage_ns = staged_ns - popped_ns,
        .enqueue_ns = enqueued_ns - staged_ns,
        .wait_ns = done_ns - enqueued_ns,
        .wall_ns = done_ns - prepared->job->delivery->received_ns,
        .is_timed = prepared->job->timing,
        .batch = batch->telemetry};
    if (outcome->code == ERR_OK && prepared->job->timing)
        outcome->code = read_device_ns(batch, item, &outcome->telemetry.device_ns, &outcome->err);
}

enum err batch_run(struct batch *batch, struct prepared *const *jobs, size_t count, uint64_t id,
    struct error *err) {
    assert(count > 0 && count <= batch->count_max);
    batch->count = count;
    batch->telemetry = (struct batch_telemetry){.id = id, .jobs = count};
    for (size_t i = 0; i < count; i++) {
        batch->items[i].prepared = jobs[i];
        batch->items[i].outcome = (struct outcome){.code = ERR_OK};
    }
    uint64_t popped_ns = clock_ns();
    lay_out(batch);
    enum err code = fit_slabs(batch, err);
    if (code == ERR_OK) stage(batch);
    uint64_t staged_ns = clock_ns();
    if (code == ERR_OK) code = enqueue(batch, err);
    uint64_t enqueued_ns = clock_ns();
    if (code != ERR_OK) fail_all(batch, code, err);

    /* Whatever was enqueued must be over before the slabs are used again, failed or not. */
    struct error wait_error;
    enum err waited = wait_for_fence(batch, &wait_error);
    if (waited != ERR_OK) {
        *err = wait_error;
        return waited;
    }
    uint64_t done_ns = clock_ns();
    for (size_t i = 0; i < count; i++) {
        describe(batch, &batch->items[i], popped_ns, staged_ns, enqueued_ns, done_ns);
        if (batch->items[i].outcome.code == ERR_OK) collect_outputs(batch, &batch->items[i]);
    }
    return err_is_sticky(code) ? code : ERR_OK;
}
