/**
 * Where the buffers of a job, or of a slice of an array, lie in their groups (plan.h), and how much
 * room they take. `instances` is how many the slice has; a single job has 1.
 *
 * Units: bytes. Threads: pure.
 */
#ifndef PLAN_EXTENT_H
#define PLAN_EXTENT_H

#include "plan/plan.h"

/** Of a buffer, or of what all instances have of it. */
uint64_t extent_buffer_bytes(const struct plan_buffer *buffer, uint32_t instances);

/** Where the buffer starts in its group; an `each` buffer with the first instance of the slice. */
uint64_t extent_offset(const struct plan *plan, size_t buffer, uint32_t instances);

/** Where the launch's parameter block starts in GROUP_INPUT; with that of the first instance. */
uint64_t extent_param_block(
    const struct plan *plan, const struct plan_launch *launch, uint32_t instances);

/** Of a whole group. */
uint64_t extent_group_bytes(const struct plan *plan, enum plan_group group, uint32_t instances);

/**
 * What a job, or a slice, does of a planned write. `*offset` is in the buffer, of a slice from its
 * first instance on. Empty: the write is of other instances.
 */
struct slice extent_write(const struct job *job, const struct plan_write *write, uint64_t *offset);

/** What is copied back for an unpacked output: of a slice, whole parts of its instances. */
struct output_extent {
    uint64_t offset, bytes; /* in the buffer, of a slice from its first instance on */
    uint64_t staging;       /* where it stands among the unpacked outputs */
};

struct output_extent extent_output(const struct plan *plan, size_t output, uint32_t instances);

/** Of all unpacked outputs. */
uint64_t extent_output_bytes(const struct plan *plan, uint32_t instances);

/** How many instances take at most `bytes` in a batch; at least 1. */
uint32_t extent_instances(const struct plan *plan, uint64_t bytes);

#endif
