/**
 * One launch of a kernel, as the driver takes it, and lists of launches with copies of their
 * arguments.
 *
 * Lifetime: a launch outside of a list lasts for a call. Modules are not held. Threads: a list
 * belongs to one lane.
 */
#ifndef BATCH_KERNEL_LAUNCH_H
#define BATCH_KERNEL_LAUNCH_H

#include "gpu/modules.h"
#include "job/outcome.h"

struct kernel_launch {
    struct module *module;
    const struct entry *entry;
    CUfunction function;
    bool is_batched; /* its parameters are those of a batched kernel, not the entry's */
    uint32_t grid[3], block[3], shared_bytes;
    void **params;
};

/** Puts the launch on the stream, and counts it. */
MUST_CHECK enum err kernel_launch_enqueue(const struct device *device, CUstream stream,
    const struct kernel_launch *launch, struct batch_telemetry *telemetry, struct error *err);

/** A list has room for any launch when it is empty. */
enum { LAUNCHES_MAX = 512, LAUNCHES_PARAMS = 4096, LAUNCHES_CELLS = 8192 };

struct launch_list {
    size_t count, param_count, cell_count;
    struct {
        struct kernel_launch launch;
        size_t first_cell, cell_count;
    } items[LAUNCHES_MAX];
    void *params[LAUNCHES_PARAMS];
    uint64_t cells[LAUNCHES_CELLS]; /* the arguments, each from a cell of its own on */
    uint64_t signature;             /* of the kernels and their order; not of the arguments */
};

void launch_list_clear(struct launch_list *list);

/** False: there is no room. */
bool launch_list_add(struct launch_list *list, const struct kernel_launch *launch);

/** Whether both have the same kernels in the same order. */
bool launch_list_same_kernels(const struct launch_list *a, const struct launch_list *b);

/** Of two such lists: whether the launch at `index` is the same, with the same arguments. */
bool launch_list_same_at(const struct launch_list *a, const struct launch_list *b, size_t index);

#endif
