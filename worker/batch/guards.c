#include "batch/guards.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/invariant.h"
#include "plan/extent.h"

static const struct job *job_of(const struct batch *batch) {
    INVARIANT(batch->count == 1, "a guarded batch has one job");
    return batch->items[0].job;
}

enum err guards_take(struct batch *batch, struct error *err) {
    const struct job *job = job_of(batch);
    const struct batch_context *context = batch->context;
    size_t count = batch->guarded_count = job->buffer_count;
    batch->guarded = calloc(count + 1, sizeof batch->guarded[0]); /* a job may have no buffers */
    if (batch->guarded == NULL) return error_no_memory(err, "no memory for guards");
    enum err code = ERR_OK;
    for (size_t i = 0; i < count && code == ERR_OK; i++) {
        const struct plan_buffer *place = &job->plan->buffers[i];
        if (place->group == GROUP_NONE) continue;
        code = statics_acquire_memory(context->statics, context->device_counters,
            extent_buffer_bytes(place, job_slice_count(job)) + 2 * GUARD_BYTES, &batch->guarded[i],
            err);
    }
    if (code != ERR_OK) guards_release(batch);
    return code;
}

void guards_release(struct batch *batch) {
    if (batch->guarded == NULL) return;
    const struct batch_context *context = batch->context;
    for (size_t i = 0; i < batch->guarded_count; i++)
        pool_give_back(context->device_pool, context->device_counters, &batch->guarded[i]);
    guards_abandon(batch);
}

void guards_abandon(struct batch *batch) {
    free(batch->guarded);
    batch->guarded = NULL;
}

uint64_t guards_readback_bytes(const struct batch *batch) {
    return (uint64_t)job_of(batch)->buffer_count * 2 * GUARD_BYTES;
}

/* How many bytes of a guard are not as they were. */
static size_t changed_bytes(const uint8_t *guard) {
    size_t count = 0;
    for (size_t i = 0; i < GUARD_BYTES; i++) count += guard[i] != GUARD_VALUE;
    return count;
}

enum err guards_check(const struct batch *batch, struct error *err) {
    const struct job *job = job_of(batch);
    struct pinned_block readback = pool_block_pinned(&batch->memory->readback);
    for (size_t i = 0; i < job->buffer_count; i++) {
        if (batch->guarded[i].address == 0) continue;
        const uint8_t *guards = readback.data + guards_readback_at(batch, i);
        size_t before = changed_bytes(guards), behind = changed_bytes(guards + GUARD_BYTES);
        if (before + behind == 0) continue;
        return error_set(err, ERR_GPU_STRAY_WRITE, 0,
            "check the kernel's indices against the sizes of its buffers",
            "a kernel wrote outside of buffer '%.*s' of %" PRIu64
            " bytes: %zu of the %d bytes before it and %zu of the %d behind it are changed",
            SLICE_TEXT(job->buffers[i].name),
            extent_buffer_bytes(&job->plan->buffers[i], job_slice_count(job)), before, GUARD_BYTES,
            behind, GUARD_BYTES);
    }
    return ERR_OK;
}
