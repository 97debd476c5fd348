/**
 * One source for a kernel on the GPU and on the CPU: the common subset of CUDA C++ and C11.
 *
 *     KERNEL(saxpy, (float)a, (const float *)x, (float *)y, (uint32_t)n) {
 *         uint32_t i = global_x();
 *         if (i < n) y[i] = a * x[i] + y[i];
 *     }
 *
 * Compiles with plain clang (`-x cuda`, no CUDA SDK), with nvcc (`-x cu`), and with any C compiler
 * into a shared object for the CPU driver (kernel_cpu.h is that contract).
 *
 *     KERNEL(name, (type)parameter, ...)  a kernel: 1 to 16 parameters, scalars and pointers
 *     BATCHED_KERNEL(name, ...)           the same, and name_batched: many jobs in one launch
 *     DEVICE type name(...)               a function that kernels call, inlined: it cannot recurse
 *     SHARED(type, name)                  `type *name`: the block's dynamic shared memory
 *     shared_bytes()                      how much of it the launch has
 *     ROW_FIELD                           in front of each field of a batched kernel's row
 *     UNROLL(count)                       in front of a loop: the GPU runs so many turns as one
 *     barrier()                           waits for every thread of the block
 *     grid_barrier(word)                  for every thread of the grid: cooperative launches only;
 *                                         `word`: a uint32_t in a buffer of its own, 0 at first
 *     thread_x() block_x() block_dim_x() grid_dim_x(), the same with _y and _z
 *     global_x()                          this thread among those of the whole grid
 *     block_sum_f32()                     the sum of one value a thread
 *     atomic_*() memory_fence()           kernel_atomic.h
 *     exp_f32() log_f32() sqrt_f32() fma_f32()      kernel_math.h
 *     sin_f32() cos_f32() pow_f32() tanh_f32() erf_f32() abs_f32()
 *     min_f32() max_f32(), the same of u32 and i32      kernel_functions.h
 *     f32_of_f16() f16_of_f32() f32_of_bf16() bf16_of_f32()      kernel_half.h
 *     philox4x32() uniform_f32() normal_f32()      random numbers: kernel_random.h
 *     warp_lane() warp_shuffle_u32() warp_shuffle_f32() warp_sum_f32()      kernel_warp.h
 *     is_live(done) end_round()           work in rounds, until a flag says that it is done
 *     bool, true and false
 *
 * There is no C library behind a kernel. Multiplications and additions are fused only by fma_f32():
 * with the same block size a kernel without atomics on floats gives the same bits wherever it runs;
 * one that asks for shared_bytes(), with the same shared memory.
 */
#ifndef KERNEL_H
#define KERNEL_H

#include <stdint.h>

#if defined(__CUDACC__)
#define KERNEL_ON_NVCC
#elif defined(__CUDA__)
#define KERNEL_ON_CLANG
#else
#define KERNEL_ON_CPU
#include <stdbool.h>

#include "kernel_cpu.h"
#endif

/* A batched kernel is `kernel(rows, jobs)` with grid.y = jobs; the row of a job holds its arguments
 * in the order of the entry, each in 8 bytes. */
#define ROW_FIELD __attribute__((aligned(8)))

/* Parameters. `(type)name` is one macro argument: unwrapped it is a declaration, split it is a
 * type and a name. */
#define KERNEL_UNWRAP(type) type
#define KERNEL_SPLIT(type) type,
#define KERNEL_FIRST_OF(first, ...) first
#define KERNEL_FIRST(...) KERNEL_FIRST_OF(__VA_ARGS__)

#define KERNEL_SECOND_OF(first, second) second
#define KERNEL_SECOND(...) KERNEL_SECOND_OF(__VA_ARGS__)

#define KERNEL_DECLARATION(left, param) KERNEL_UNWRAP param
#define KERNEL_TYPE(param) KERNEL_FIRST(KERNEL_SPLIT param)
#define KERNEL_NAME(left, param) KERNEL_SECOND(KERNEL_SPLIT param)

#define KERNEL_17TH(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, count, ...) count
#define KERNEL_COUNT(...)                                                                          \
    KERNEL_17TH(__VA_ARGS__, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)

/* KERNEL_EACH(M, a, b, c) is M(3, a), M(2, b), M(1, c): the number says how many are left. */
#define KERNEL_EACH_1(M, param) M(1, param)
#define KERNEL_EACH_2(M, param, ...) M(2, param), KERNEL_EACH_1(M, __VA_ARGS__)
#define KERNEL_EACH_3(M, param, ...) M(3, param), KERNEL_EACH_2(M, __VA_ARGS__)
#define KERNEL_EACH_4(M, param, ...) M(4, param), KERNEL_EACH_3(M, __VA_ARGS__)
#define KERNEL_EACH_5(M, param, ...) M(5, param), KERNEL_EACH_4(M, __VA_ARGS__)
#define KERNEL_EACH_6(M, param, ...) M(6, param), KERNEL_EACH_5(M, __VA_ARGS__)
#define KERNEL_EACH_7(M, param, ...) M(7, param), KERNEL_EACH_6(M, __VA_ARGS__)
#define KERNEL_EACH_8(M, param, ...) M(8, param), KERNEL_EACH_7(M, __VA_ARGS__)
#define KERNEL_EACH_9(M, param, ...) M(9, param), KERNEL_EACH_8(M, __VA_ARGS__)
#define KERNEL_EACH_10(M, param, ...) M(10, param), KERNEL_EACH_9(M, __VA_ARGS__)
#define KERNEL_EACH_11(M, param, ...) M(11, param), KERNEL_EACH_10(M, __VA_ARGS__)
#define KERNEL_EACH_12(M, param, ...) M(12, param), KERNEL_EACH_11(M, __VA_ARGS__)
#define KERNEL_EACH_13(M, param, ...) M(13, param), KERNEL_EACH_12(M, __VA_ARGS__)
#define KERNEL_EACH_14(M, param, ...) M(14, param), KERNEL_EACH_13(M, __VA_ARGS__)
#define KERNEL_EACH_15(M, param, ...) M(15, param), KERNEL_EACH_14(M, __VA_ARGS__)
#define KERNEL_EACH_16(M, param, ...) M(16, param), KERNEL_EACH_15(M, __VA_ARGS__)
#define KERNEL_JOIN_TOKENS(a, b) a##b
#define KERNEL_JOIN(a, b) KERNEL_JOIN_TOKENS(a, b)
#define KERNEL_EACH(M, ...) KERNEL_JOIN(KERNEL_EACH_, KERNEL_COUNT(__VA_ARGS__))(M, __VA_ARGS__)

#ifdef KERNEL_ON_CPU

/* The kernel thread that runs now. All threads of a block are fibers on one pthread, so this is set
 * whenever one of them continues: when it starts, and after every barrier. */
static _Thread_local const struct kernel_thread *kernel_self;

/* A kernel is compiled twice, with all functions that it calls inlined: the loader takes the
 * version with fused multiply-adds and vectors of eight floats where the CPU has them. In the other
 * one fma_f32() is a call of the C library's. */
#if defined(__x86_64__) && defined(__GLIBC__)
#define KERNEL_VERSIONS __attribute__((target_clones("fma", "default")))
#else
#define KERNEL_VERSIONS
#endif

#define DEVICE static inline __attribute__((always_inline))
#define KERNEL_BODY DEVICE

#define KERNEL_LOAD(left, param) (*(KERNEL_TYPE(param) *)args[count - (left)])
#define KERNEL_BYTES(left, param) sizeof(KERNEL_TYPE(param))

#define KERNEL(name, ...)                                                                          \
    DEVICE void name(KERNEL_EACH(KERNEL_DECLARATION, __VA_ARGS__));                                \
    static KERNEL_VERSIONS void name##_entry(const struct kernel_thread *self, void **args) {      \
        enum { count = KERNEL_COUNT(__VA_ARGS__) };                                                \
        kernel_self = self;                                                                        \
        name(KERNEL_EACH(KERNEL_LOAD, __VA_ARGS__));                                               \
    }                                                                                              \
    const struct kernel_info kernel_##name = {.entry = name##_entry,                               \
        .param_count = KERNEL_COUNT(__VA_ARGS__),                                                  \
        .param_bytes = {KERNEL_EACH(KERNEL_BYTES, __VA_ARGS__)}};                                  \
    DEVICE void name(KERNEL_EACH(KERNEL_DECLARATION, __VA_ARGS__))

#define SHARED(type, name) type *name = (type *)kernel_self->shared

#define UNROLL(count)

DEVICE uint32_t shared_bytes(void) {
    return kernel_self->shared_bytes;
}

DEVICE void barrier(void) {
    const struct kernel_thread *self = kernel_self;
    self->barrier(self);
    kernel_self = self;
}

DEVICE void grid_barrier(uint32_t *word) {
    const struct kernel_thread *self = kernel_self;
    (void)word;
    self->grid_barrier(self);
    kernel_self = self;
}

#else

#define KERNEL(name, ...)                                                                          \
    extern "C" __attribute__((global)) void name(KERNEL_EACH(KERNEL_DECLARATION, __VA_ARGS__))

#define DEVICE static inline __attribute__((device))
/* Also what two kernels call, and clang would not inline twice by itself. */
#define KERNEL_BODY static inline __attribute__((device, always_inline))

/* All kernels share this symbol: a second one of another type would clash. */
#define SHARED(type, name)                                                                         \
    extern __attribute__((shared, aligned(16))) unsigned char kernel_shared[];                     \
    type *name = (type *)kernel_shared

#define KERNEL_PRAGMA(text) _Pragma(#text)
#define UNROLL(count) KERNEL_PRAGMA(unroll count)

/* In assembly, because neither compiler has a function for it. */
DEVICE uint32_t shared_bytes(void) {
    uint32_t bytes;
    asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(bytes));
    return bytes;
}

DEVICE void barrier(void) {
    __syncthreads();
}

#endif

/* `name`, and `name_batched`, which does the same for the job of row block_y(). */
#define KERNEL_OF_ROW(left, param)                                                                 \
    (*(KERNEL_TYPE(param) const *)(const void *)(row + 8 * (count - (left))))
#define BATCHED_KERNEL(name, ...)                                                                  \
    KERNEL_BODY void name##_of_job(KERNEL_EACH(KERNEL_DECLARATION, __VA_ARGS__));                  \
    KERNEL(name, __VA_ARGS__) {                                                                    \
        name##_of_job(KERNEL_EACH(KERNEL_NAME, __VA_ARGS__));                                      \
    }                                                                                              \
    KERNEL(name##_batched, (const unsigned char *)rows, (uint32_t)jobs) {                          \
        enum { count = KERNEL_COUNT(__VA_ARGS__) };                                                \
        if (block_y() >= jobs) return;                                                             \
        const unsigned char *row = rows + (uint64_t)block_y() * 8 * count;                         \
        name##_of_job(KERNEL_EACH(KERNEL_OF_ROW, __VA_ARGS__));                                    \
    }                                                                                              \
    KERNEL_BODY void name##_of_job(KERNEL_EACH(KERNEL_DECLARATION, __VA_ARGS__))

/* X(function, CUDA's variable, PTX register, field of struct kernel_thread) */
#define KERNEL_POSITION_LIST(X)                                                                    \
    X(thread_x, threadIdx.x, tid_x, thread[0])                                                     \
    X(thread_y, threadIdx.y, tid_y, thread[1])                                                     \
    X(thread_z, threadIdx.z, tid_z, thread[2])                                                     \
    X(block_x, blockIdx.x, ctaid_x, block[0])                                                      \
    X(block_y, blockIdx.y, ctaid_y, block[1])                                                      \
    X(block_z, blockIdx.z, ctaid_z, block[2])                                                      \
    X(block_dim_x, blockDim.x, ntid_x, block_dim[0])                                               \
    X(block_dim_y, blockDim.y, ntid_y, block_dim[1])                                               \
    X(block_dim_z, blockDim.z, ntid_z, block_dim[2])                                               \
    X(grid_dim_x, gridDim.x, nctaid_x, grid_dim[0])                                                \
    X(grid_dim_y, gridDim.y, nctaid_y, grid_dim[1])                                                \
    X(grid_dim_z, gridDim.z, nctaid_z, grid_dim[2])

#ifdef KERNEL_ON_NVCC
#define KERNEL_POSITION(cuda, ptx, cpu) cuda
#elif defined(KERNEL_ON_CLANG)
#define KERNEL_POSITION(cuda, ptx, cpu) (uint32_t) __nvvm_read_ptx_sreg_##ptx()
#else
#define KERNEL_POSITION(cuda, ptx, cpu) kernel_self->cpu
#endif

#define X(function, cuda, ptx, cpu)                                                                \
    DEVICE uint32_t function(void) {                                                               \
        return KERNEL_POSITION(cuda, ptx, cpu);                                                    \
    }
KERNEL_POSITION_LIST(X)
#undef X

DEVICE uint32_t global_x(void) {
    return block_x() * block_dim_x() + thread_x();
}

/**
 * Adds up one value from each thread of a block (x only). The sum is in values[0], where thread 0
 * may read it; `values` is shared memory. Additions have the same order on every run.
 */
DEVICE void block_sum_f32(float *values) {
    uint32_t i = thread_x();
    for (uint32_t width = block_dim_x(); width > 1; width = (width + 1) / 2) {
        uint32_t half = (width + 1) / 2;
        barrier();
        if (i + half < width) values[i] += values[i + half];
    }
}

/**
 * Work in rounds, each of them a launch, until a flag of the instance says that it is done: 0 is
 * live, n is "done after round n". A kernel that is not live returns at once and changes nothing,
 * so that it does not matter how many more rounds are launched.
 */
DEVICE bool is_live(const uint32_t *done) {
    return *done == 0;
}

/** Ends a round, counted from 1: the instance is done if it `is_over`, or if what it has `found` is
 * NaN. All threads of the block call it. */
DEVICE void end_round(uint32_t *done, uint32_t round, bool is_over, float found) {
    barrier(); /* every thread has seen that the instance was live */
    bool is_first = (thread_x() | thread_y() | thread_z()) == 0;
    if (is_first && (is_over || found != found)) *done = round;
}

#include "kernel_atomic.h"
#include "kernel_math.h"

#include "kernel_functions.h"
#include "kernel_half.h"
#include "kernel_random.h"
#include "kernel_warp.h"

#ifndef KERNEL_ON_CPU

/* Each block adds to the word. The first block adds so much that the sum of all flips the top bit
 * and changes no other bit. So the word is ready for the next barrier. */
DEVICE void grid_barrier(uint32_t *word) {
    const uint32_t flag = 0x80000000u;
    barrier();
    if ((thread_x() | thread_y() | thread_z()) == 0) {
        bool is_first = (block_x() | block_y() | block_z()) == 0;
        uint32_t blocks = grid_dim_x() * grid_dim_y() * grid_dim_z();
        memory_fence();
        uint32_t before = atomic_add_u32(word, is_first ? flag - (blocks - 1) : 1);
        while (((atomic_load_u32(word) ^ before) & flag) == 0) {
        }
        memory_fence();
    }
    barrier();
}

#endif

#endif
