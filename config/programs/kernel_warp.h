/**
 * Values go from thread to thread within a warp: 32 threads of a block, in the order of
 * thread_x(), then _y and _z. Every thread of the block calls these together, its threads are a
 * multiple of 32, and the launch is not cooperative: on the CPU they wait for the whole block.
 */
#ifndef KERNEL_WARP_H
#define KERNEL_WARP_H

#include "kernel.h"

/** This thread among those of its warp: 0 to 31. */
DEVICE uint32_t warp_lane(void) {
    return ((thread_z() * block_dim_y() + thread_y()) * block_dim_x() + thread_x()) & 31;
}

#ifdef KERNEL_ON_CPU

/* What each thread of the block shows. All of them run on one pthread, unless a test of the kernel
 * runs one block at a time on many. */
#ifdef KERNEL_ONE_BLOCK
static uint32_t kernel_shown[1024];
#else
static _Thread_local uint32_t kernel_shown[1024];
#endif

/** The `value` that the thread `from` (0 to 31) of this warp gives. */
DEVICE uint32_t warp_shuffle_u32(uint32_t value, uint32_t from) {
    uint32_t self = (thread_z() * block_dim_y() + thread_y()) * block_dim_x() + thread_x();
    kernel_shown[self] = value;
    barrier();
    uint32_t got = kernel_shown[(self & ~31u) | (from & 31)];
    barrier();
    return got;
}

#else

/* As assembly, because clang has it as a function only for a PTX that it does not write by itself.
 */
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

/** The sum over the warp, for each of its threads. A fixed tree: the same order on every run. */
DEVICE float warp_sum_f32(float value) {
    for (uint32_t apart = 16; apart > 0; apart /= 2)
        value += warp_shuffle_f32(value, warp_lane() ^ apart);
    return value;
}

#endif
