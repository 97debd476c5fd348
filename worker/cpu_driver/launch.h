/**
 * Runs kernels on the CPU: every thread of every block, one after the other, on a stream's thread.
 */
#ifndef CPU_DRIVER_LAUNCH_H
#define CPU_DRIVER_LAUNCH_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

#include "kernel_cpu.h"

struct cpu_fiber_pool;
struct cpu_module;

/** What each stream's thread needs to run kernels. It grows with the kernels' needs. */
struct cpu_engine {
    struct cpu_fiber_pool *fibers;
    void *shared;
    size_t shared_bytes;
};

void cpu_engine_init(struct cpu_engine *engine);
void cpu_engine_fini(struct cpu_engine *engine);

struct cpu_shape {
    unsigned grid[3], block[3], shared_bytes;
    bool is_cooperative; /* all blocks at once, which may wait for each other */
};

/** A launch as it was called, with copies of the arguments' values. */
struct cpu_launch {
    const struct kernel_info *kernel;
    struct cpu_module *module; /* in use until the launch is over; NULL: the kernel is in none */
    struct cpu_shape shape;
    void *args[KERNEL_PARAMS_MAX]; /* into values[] */
    _Alignas(16) unsigned char values[];
};

/** Copies the values that `args` point to; NULL when memory is short. */
struct cpu_launch *cpu_launch_create(const struct kernel_info *kernel, struct cpu_module *module,
    const struct cpu_shape *shape, void *const *args);

/** Another launch of the same; NULL when memory is short. */
struct cpu_launch *cpu_launch_copy(const struct cpu_launch *launch);

/** Ends its use of the module. NULL is fine. */
void cpu_launch_destroy(struct cpu_launch *launch);

/**
 * Runs all of the launch, without the lock. LAUNCH_OUT_OF_RESOURCES: out of memory. LAUNCH_FAILED:
 * blocks of an ordinary launch wait for each other, which might never end on a GPU.
 */
CUresult cpu_launch_run(const struct cpu_launch *launch, struct cpu_engine *engine);

#endif
