#include "batch/stage.h"

#include <endian.h>
#include <string.h>

#include "base/invariant.h"
#include "batch/coalesce.h"
#include "gpu/pinned.h"
#include "plan/extent.h"

/* The layout says where everything stands; that it does not fit is our own bug, found here. */
static void copy_in(const struct pinned_block *slab, uint64_t at, struct slice bytes) {
    struct error err;
    enum err code = pinned_write(slab, at, bytes, &err);
    INVARIANT(code == ERR_OK, "what is staged fits the upload block");
}

static void set(const struct pinned_block *slab, uint64_t at, uint8_t value, uint64_t bytes) {
    INVARIANT(at <= slab->bytes && bytes <= slab->bytes - at, "what is staged fits the block");
    if (bytes > 0) memset(slab->data + at, value, bytes); /* else there may be no block */
}

static struct slice source_of(const struct job *job, size_t index) {
    const struct job_buffer *buffer = &job->buffers[index];
    return buffer->source == BUFFER_BLOB ? job->blobs[index].bytes : buffer->data;
}

/* Reads the parts of a slice's instances from a blob, all at once, to the end of their place, and
 * moves them to where the device wants them: none comes to where one stands that is yet to move. */
static enum err read_each(const struct pinned_block *upload, const struct batch_item *item,
    size_t index, struct error *err) {
    const struct job *job = item->job;
    uint64_t bytes = job->buffers[index].bytes, stride = job->plan->buffers[index].stride;
    uint64_t at = batch_place(item, index), count = job->slice.count;
    uint64_t skipped = (stride - bytes) * count;
    INVARIANT(at <= upload->bytes && stride * count <= upload->bytes - at,
        "the parts of a slice fit the block");
    uint8_t *place = upload->data + at;
    enum err code = blob_read(
        &job->blobs[index], bytes * job->slice.first, place + skipped, bytes * count, err);
    for (uint64_t i = 0; i < count && skipped > 0 && code == ERR_OK; i++) {
        memmove(place + stride * i, place + skipped + bytes * i, bytes);
        memset(place + stride * i + bytes, 0, stride - bytes);
    }
    return code;
}

/* Parts that are `bytes` apart come to be `stride` apart: in one piece where that is the same. */
static void copy_parts(const struct pinned_block *upload, uint64_t at, const uint8_t *from,
    uint64_t bytes, uint64_t stride, uint32_t count) {
    if (stride == bytes) copy_in(upload, at, slice_of(from, bytes * count));
    else set(upload, at, 0, stride * count);
    for (uint32_t i = 0; i < count && stride != bytes; i++)
        copy_in(upload, at + stride * i, slice_of(from + bytes * i, bytes));
}

/* The parts of a slice's instances: in one piece where the message has them as the device wants
 * them. */
static enum err stage_each(const struct pinned_block *upload, const struct batch_item *item,
    size_t index, struct error *err) {
    const struct job *job = item->job;
    const struct job_buffer *buffer = &job->buffers[index];
    uint64_t stride = job->plan->buffers[index].stride;
    uint64_t at = batch_place(item, index), first = job->slice.first, count = job->slice.count;
    enum err code = ERR_OK;
    if (buffer->source == BUFFER_FILL) set(upload, at, buffer->fill, stride * count);
    else if (buffer->source == BUFFER_BLOB) code = read_each(upload, item, index, err);
    else
        copy_parts(upload, at, buffer->data.data + buffer->bytes * first, buffer->bytes, stride,
            job_slice_count(job));
    if (code != ERR_OK) return code;
    for (size_t i = 0; i < buffer->write_count; i++) {
        const struct job_write *write = &buffer->writes[i];
        if (write->instance < first || write->instance - first >= count) continue;
        copy_in(upload, at + stride * (write->instance - first) + write->offset, write->data);
    }
    set(upload, at + stride * count, 0, -(stride * count) & (PLAN_ALIGNMENT - 1));
    return ERR_OK;
}

/* The buffer as the job wants it: its source, the writes over it, and zeroes up to the next buffer.
 */
static enum err stage_buffer(const struct pinned_block *upload, const struct batch_item *item,
    size_t index, uint64_t kept_bytes, struct error *err) {
    const struct job_buffer *buffer = &item->job->buffers[index];
    const struct plan_buffer *place = &item->job->plan->buffers[index];
    if (place->group != GROUP_INPUT && place->group != GROUP_INOUT) return ERR_OK;
    if (buffer->is_each) return stage_each(upload, item, index, err);
    uint64_t at = batch_place(item, index);
    if (at < kept_bytes) return ERR_OK;
    copy_in(upload, at, source_of(item->job, index));
    for (size_t i = 0; i < buffer->write_count; i++)
        copy_in(upload, at + buffer->writes[i].offset, buffer->writes[i].data);
    static const uint8_t zeroes[PLAN_ALIGNMENT];
    uint64_t pad = -buffer->bytes & (PLAN_ALIGNMENT - 1);
    copy_in(upload, at + buffer->bytes, slice_of(zeroes, pad));
    return ERR_OK;
}

/* Little-endian, whatever the host is. */
static void stage_words(const struct pinned_block *upload, uint64_t at, const struct job_arg *arg) {
    for (size_t i = 0; i < arg->word_count; i++) {
        uint32_t word = htole32(arg->words[i]);
        copy_in(upload, at + 4 * i, slice_of(&word, sizeof word));
    }
}

static void stage_param_block(const struct pinned_block *upload, const struct batch_item *item,
    const struct plan_launch *launch, uint64_t kept_bytes) {
    if (!launch->entry->params_in_buffer) return;
    const struct job *job = item->job;
    const struct job_arg *arg = &launch->args[launch->entry->arg_count - 1];
    uint32_t count = job_slice_count(job);
    uint64_t at = item->base[GROUP_INPUT] + extent_param_block(job->plan, launch, count);
    if (at < kept_bytes) return;
    struct slice first = job_arg_words(arg, job->slice.first);
    if (arg->each == NULL) stage_words(upload, at, arg);
    else copy_parts(upload, at, first.data, first.size, launch->param_block_stride, count);
}

/* What travels in copies of its own. */
static void stage_writes(const struct pinned_block *upload, const struct batch_item *item) {
    struct unpacked_write write = {0};
    while (batch_next_write(item->job, &write))
        copy_in(upload, item->write_base + write.staging, write.data);
}

/* What the device does for a packed batch: the clear, fills, and writes over them. */
static void set_mapped(const struct batch *batch, const struct pinned_block *upload) {
    INVARIANT(batch->start[GROUP_COUNT] <= upload->bytes, "a batch fits its upload block");
    memset(upload->data + batch->start[GROUP_OUTPUT], 0,
        batch->start[GROUP_COUNT] - batch->start[GROUP_OUTPUT]);
    for (size_t i = 0; i < batch->count; i++) {
        const struct batch_item *item = &batch->items[i];
        const struct plan *plan = item->job->plan;
        for (size_t k = 0; k < plan->fill_count; k++) {
            const struct plan_fill *wanted = &plan->fills[k];
            memset(upload->data + batch_place(item, wanted->buffer), wanted->value,
                plan->buffers[wanted->buffer].bytes);
        }
        for (size_t k = 0; k < plan->write_count; k++)
            copy_in(upload, batch_place(item, plan->writes[k].buffer) + plan->writes[k].offset,
                plan->writes[k].data);
    }
}

static void set_zeroes(const struct batch *batch, const struct pinned_block *upload) {
    uint64_t at = batch->start[GROUP_OUTPUT];
    set(upload, at, 0, batch->upload_bytes - at);
}

enum err stage_batch(const struct batch *batch, struct error *err) {
    enum err code = ERR_OK;
    struct pinned_block upload = pool_block_pinned(&batch->memory->upload);
    coalesce_stage(batch);
    if (!batch_starts(batch)) return ERR_OK;
    if (batch->is_mapped) set_mapped(batch, &upload);
    else set_zeroes(batch, &upload);
    for (size_t i = 0; i < batch->count && code == ERR_OK; i++) {
        const struct batch_item *item = &batch->items[i];
        const struct plan *plan = item->job->plan;
        for (size_t b = 0; b < plan->job->buffer_count && code == ERR_OK; b++)
            code = stage_buffer(&upload, item, b, batch->kept_bytes, err);
        for (size_t l = 0; l < plan->launch_count; l++)
            stage_param_block(&upload, item, &plan->launches[l], batch->kept_bytes);
        if (!batch->is_mapped) stage_writes(&upload, item);
    }
    return code;
}
