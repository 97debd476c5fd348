#include "plan/extent.h"

enum { CELL_BYTES = 8 /* of a row of a coalesced launch */ };

uint64_t extent_buffer_bytes(const struct plan_buffer *buffer, uint32_t instances) {
    return buffer->stride > 0 ? buffer->stride * instances : buffer->bytes;
}

/* Of the `each` buffers of a group before this one. */
static uint64_t each_bytes_before(
    const struct plan *plan, enum plan_group group, size_t buffer, uint32_t instances) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < buffer; i++)
        if (plan->buffers[i].group == group && plan->buffers[i].stride > 0)
            bytes += plan_aligned(plan->buffers[i].stride * instances);
    return bytes;
}

uint64_t extent_offset(const struct plan *plan, size_t buffer, uint32_t instances) {
    const struct plan_buffer *place = &plan->buffers[buffer];
    if (place->stride == 0) return place->offset;
    return plan->group_bytes[place->group] +
           each_bytes_before(plan, place->group, buffer, instances);
}

/* With the `each` buffers of GROUP_INPUT, and the parameter blocks of launches before this one. */
static uint64_t param_blocks_before(const struct plan *plan, size_t launch, uint32_t instances) {
    uint64_t bytes = each_bytes_before(plan, GROUP_INPUT, plan->job->buffer_count, instances);
    for (size_t i = 0; i < launch; i++)
        bytes += plan_aligned(plan->launches[i].param_block_stride * instances);
    return bytes;
}

uint64_t extent_param_block(
    const struct plan *plan, const struct plan_launch *launch, uint32_t instances) {
    if (launch->param_block_stride == 0) return launch->param_block_offset;
    return plan->group_bytes[GROUP_INPUT] +
           param_blocks_before(plan, (size_t)(launch - plan->launches), instances);
}

uint64_t extent_group_bytes(const struct plan *plan, enum plan_group group, uint32_t instances) {
    uint64_t bytes = plan->group_bytes[group];
    if (plan->job->instances == 0) return bytes;
    if (group == GROUP_INPUT)
        return bytes + param_blocks_before(plan, plan->launch_count, instances);
    return bytes + each_bytes_before(plan, group, plan->job->buffer_count, instances);
}

struct slice extent_write(const struct job *job, const struct plan_write *write, uint64_t *offset) {
    uint32_t first = job->slice.first, count = job_slice_count(job);
    uint64_t stride = job->plan->buffers[write->buffer].stride;
    *offset = write->offset;
    if (stride == 0) return write->data;
    if (write->is_init) return slice_of(write->data.data + stride * first, stride * count);
    if (write->instance < first || write->instance - first >= count) return slice_of(NULL, 0);
    *offset += stride * (write->instance - first);
    return write->data;
}

static uint64_t unpacked_bytes(const struct plan *plan, size_t output, uint32_t instances) {
    const struct job_output *wanted = &plan->job->outputs[output];
    uint64_t stride = plan->buffers[wanted->buffer].stride;
    if (!plan->outputs[output].is_unpacked) return 0;
    return stride > 0 ? stride * instances : wanted->bytes;
}

static uint64_t unpacked_bytes_before(const struct plan *plan, size_t output, uint32_t instances) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < output; i++) bytes += plan_aligned(unpacked_bytes(plan, i, instances));
    return bytes;
}

struct output_extent extent_output(const struct plan *plan, size_t output, uint32_t instances) {
    const struct job_output *wanted = &plan->job->outputs[output];
    bool is_shared = plan->buffers[wanted->buffer].stride == 0;
    return (struct output_extent){.offset = is_shared ? wanted->offset : 0,
        .bytes = unpacked_bytes(plan, output, instances),
        .staging = unpacked_bytes_before(plan, output, instances)};
}

uint64_t extent_output_bytes(const struct plan *plan, uint32_t instances) {
    return unpacked_bytes_before(plan, plan->job->output_count, instances);
}

/* What one instance takes of the slab for uploads, the device's, and that for readbacks together:
 * more than of any of them. */
static uint64_t instance_bytes(const struct plan *plan) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < plan->job->buffer_count; i++)
        if (plan->buffers[i].group != GROUP_NONE) bytes += plan->buffers[i].stride;
    for (size_t i = 0; i < plan->write_count; i++)
        if (plan->writes[i].is_init) bytes += plan->buffers[plan->writes[i].buffer].stride;
    for (size_t i = 0; i < plan->job->output_count; i++) bytes += unpacked_bytes(plan, i, 1);
    for (size_t i = 0; i < plan->launch_count; i++)
        bytes +=
            plan->launches[i].entry->arg_count * CELL_BYTES + plan->launches[i].param_block_stride;
    return bytes;
}

uint32_t extent_instances(const struct plan *plan, uint64_t bytes) {
    uint64_t one = instance_bytes(plan), shared = PLAN_ALIGNMENT + plan->write_staging_bytes;
    for (int group = 0; group < GROUP_COUNT; group++) shared += plan->group_bytes[group];
    shared += PLAN_ALIGNMENT *
              (uint64_t)(plan->job->buffer_count + plan->job->output_count + plan->launch_count);
    if (bytes <= shared) return 1;
    uint64_t count = one > 0 ? (bytes - shared) / one : UINT32_MAX;
    if (count > UINT32_MAX) return UINT32_MAX;
    return count > 0 ? (uint32_t)count : 1;
}
