/**
 * The form of a kernel on the CPU: kernel.h compiles a kernel into it, and the CPU driver runs it.
 *
 * A `cpu` image is a shared object. For each kernel K it exports `const struct kernel_info
 * kernel_K`. The driver calls `entry` once for every thread of every block; `args` are pointers to
 * the arguments' values, as cuLaunchKernel takes them.
 */
#ifndef KERNEL_CPU_H
#define KERNEL_CPU_H

#include <stdint.h>

enum { KERNEL_PARAMS_MAX = 16 };

struct kernel_thread {
    uint32_t thread[3]; /* threadIdx */
    uint32_t block[3];  /* blockIdx */
    uint32_t block_dim[3];
    uint32_t grid_dim[3];
    void *shared; /* dynamic shared memory of this block, aligned to 16 bytes */
    /* Returns once every thread of the block has called it or returned. */
    void (*barrier)(const struct kernel_thread *self);
    /* Does so for all threads of the grid; only in cooperative launches. */
    void (*grid_barrier)(const struct kernel_thread *self);
    uint32_t shared_bytes;
};

struct kernel_info {
    void (*entry)(const struct kernel_thread *self, void **args);
    uint32_t param_count;
    uint32_t param_bytes[KERNEL_PARAMS_MAX];
};

#endif
