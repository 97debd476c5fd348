/**
 * The limits of a device, as plain values: planning checks jobs against them without using a GPU.
 * Units: bytes, threads, blocks. Threads: plain values.
 */
#ifndef GPU_LIMITS_H
#define GPU_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

struct gpu_limits {
    int architecture; /* 10 x major + minor of the compute capability */
    uint64_t memory_bytes;
    uint32_t block_threads_max;
    uint32_t block_max[3];
    uint32_t grid_max[3];
    uint32_t param_bytes_max;  /* all arguments of a kernel, by value */
    uint32_t shared_bytes_max; /* dynamic shared memory that a block may opt in to */
    uint32_t multiprocessors;
    bool can_map;      /* kernels can work in pinned host memory */
    bool reaches_host; /* kernels can read all memory of the process, pinned or not */
    bool cooperative;  /* grids whose blocks wait for each other can be launched */
};

#endif
