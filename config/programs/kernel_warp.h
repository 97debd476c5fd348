/**
 * Passes values between the threads of a warp: 32 threads of a block, in the order of thread_x(),
 * then _y and _z. All threads of the block must call these together, their number must be a
 * multiple of 32, and the launch must not be cooperative, because on the CPU they wait for the
 * whole block.
 */
#ifndef KERNEL_WARP_H
#define KERNEL_WARP_H

#include "kernel.h"

/** The index of this thread within its warp: 0 to 31. */
DEVICE uint32_t warp_lane(void) {
    return ((thread_z() * block_dim_y() + thread_y()) * block_dim_x() + thread_x()) & 31;
}

#ifdef KERNEL_ON_CPU

/* The value that each thread of the block offers to the others. All threads run on one pthread,
 * except in a test of the kernel, which runs one block at a time on many. */
#ifdef KERNEL_ONE_BLOCK
static uint32_t kernel_shown[1024];
#else
static _Thread_local uint32_t kernel_shown[1024];
#endif

/** The `value` that thread `from` (0 to 31) of this warp passes in. */
DEVICE uint32_t warp_shuffle_u32(uint32_t value, uint32_t from) {
    uint32_t self = (thread_z() * block_dim_y() + thread_y()) * block_dim_x() + thread_x();
    kernel_shown[self] = value;
    barrier();
    uint32_t got = kernel_shown[(self & ~31u) | (from & 31)];
    barrier();
    return got;
}

#else

/* In assembly, because clang has a function for it only for newer PTX than it writes by default. */
DEVICE uint32_t warp_shuffle_u32(uint32_t value, uint32_t from) {
    uint32_t got;
    asm volatile("shfl.sync.idx.b32 %0, %1, %2, 0x1f, 0xffffffff;"
                 : "=r"(got)
                 : "r"(value), "r"(from));
    return got;
}

#endif

DEVICE float warp_shuffle_f32(float value, uint32_t from) {
    return f32_of_bits(warp_shuffle_u32(bits_of_f32(value), from));
}

/** The sum over the warp; each thread gets it. Additions have the same order on every run. */
DEVICE float warp_sum_f32(float value) {
    for (uint32_t apart = 16; apart > 0; apart /= 2)
        value += warp_shuffle_f32(value, warp_lane() ^ apart);
    return value;
}

#endif
