#include "plan/extent.h"

enum { CELL_BYTES = 8 /* of a row of a coalesced launch */ };

static uint64_t aligned(uint64_t bytes) {
    return (bytes + PLAN_ALIGNMENT - 1) & ~(uint64_t)(PLAN_ALIGNMENT - 1);
}

uint64_t extent_buffer_bytes(const struct plan_buffer *buffer, uint32_t instances) {
    return buffer->stride > 0 ? buffer->stride * instances : buffer->bytes;
}

/* Of the `each` buffers of a group before this one. */
static uint64_t each_bytes_before(
    const struct plan *plan, enum plan_group group, size_t buffer, uint32_t instances) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < buffer; i++)
        if (plan->buffers[i].group == group && plan->buffers[i].stride > 0)
            bytes += aligned(plan->buffers[i].stride * instances);
    return bytes;
}

uint64_t extent_offset(const struct plan *plan, size_t buffer, uint32_t instances) {
    const struct plan_buffer *place = &plan->buffers[buffer];
    if (place->stride == 0) return place->offset;
    return plan->group_bytes[place->group] +
           each_bytes_before(plan, place->group, buffer, instances);
}

uint64_t extent_group_bytes(const struct plan *plan, enum plan_group group, uint32_t instances) {
    uint64_t bytes = plan->group_bytes[group];
    if (plan->job->instances == 0) return bytes;
    return bytes + each_bytes_before(plan, group, plan->job->buffer_count, instances);
}

uint32_t extent_instances(const struct plan *plan, uint64_t bytes) {
    uint64_t one = 0, shared = PLAN_ALIGNMENT + plan->write_staging_bytes;
    for (int group = 0; group < GROUP_COUNT; group++) shared += plan->group_bytes[group];
    for (size_t i = 0; i < plan->job->buffer_count; i++) {
        one += plan->buffers[i].stride;
        shared += PLAN_ALIGNMENT;
    }
    for (size_t i = 0; i < plan->launch_count; i++)
        one += plan->launches[i].entry->arg_count * CELL_BYTES;
    if (bytes <= shared) return 1;
    uint64_t count = one > 0 ? (bytes - shared) / one : UINT32_MAX;
    if (count > UINT32_MAX) return UINT32_MAX;
    return count > 0 ? (uint32_t)count : 1;
}
