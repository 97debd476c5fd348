#include "batch/layout.h"

#include "plan/extent.h"

uint64_t batch_job_bytes(const struct plan *plan) {
    uint64_t bytes = plan->write_staging_bytes + plan->output_staging_bytes;
    for (int group = 0; group < GROUP_COUNT; group++) bytes += plan->group_bytes[group];
    for (size_t i = 0; i < plan->launch_count; i++)
        bytes += 8 * plan->launches[i].entry->arg_count; /* its rows, should it be coalesced */
    return bytes + PLAN_ALIGNMENT;
}

bool batch_is_large(const struct plan *plan, uint64_t slab_bytes) {
    return batch_job_bytes(plan) > slab_bytes;
}

CUdeviceptr batch_param_block_address(
    const struct batch *batch, const struct batch_item *item, const struct plan_launch *launch) {
    return batch->origin + item->base[GROUP_INPUT] +
           extent_param_block(item->job->plan, launch, job_slice_count(item->job));
}

uint64_t batch_place(const struct batch_item *item, size_t buffer) {
    const struct plan *plan = item->job->plan;
    return item->base[plan->buffers[buffer].group] +
           extent_offset(plan, buffer, job_slice_count(item->job));
}

bool batch_next_write(const struct job *job, struct unpacked_write *write) {
    const struct plan *plan = job->plan;
    write->staging += plan_aligned(write->data.size);
    write->data = slice_of(NULL, 0);
    while (write->next < plan->write_count && write->data.size == 0) {
        const struct plan_write *planned = &plan->writes[write->next++];
        if (!prepare_wants(job, planned->buffer, planned->is_init)) continue;
        write->buffer = planned->buffer;
        write->data = extent_write(job, planned, &write->offset);
    }
    return write->data.size > 0;
}

CUdeviceptr batch_guarded_address(const struct batch *batch, size_t buffer) {
    return pool_block_device(&batch->guarded[buffer]) + GUARD_BYTES;
}

CUdeviceptr batch_address(const struct batch *batch, const struct batch_item *item, size_t buffer) {
    const struct plan_buffer *place = &item->job->plan->buffers[buffer];
    if (place->group != GROUP_NONE && batch->guarded != NULL)
        return batch_guarded_address(batch, buffer);
    if (place->group != GROUP_NONE) return batch->origin + batch_place(item, buffer);
    const struct resident *resident = item->job->residents[buffer];
    if (resident != NULL)
        return resident_address(resident) + place->stride * item->job->slice.first;
    const struct static_entry *entry = item->job->statics[buffer];
    return entry != NULL ? static_entry_address(entry) : 0;
}
