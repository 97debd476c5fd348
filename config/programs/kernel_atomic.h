/**
 * Atomics on global memory, in relaxed order: barriers and the ends of launches order the rest.
 * All except the load return the old value.
 */
#ifndef KERNEL_ATOMIC_H
#define KERNEL_ATOMIC_H

#include "kernel.h"

DEVICE uint32_t atomic_load_u32(const uint32_t *from) {
    return *(const volatile uint32_t *)from;
}

/* memory_fence(): all blocks see what this thread wrote before this call, before they see what it
 * writes later. */

#ifdef KERNEL_ON_CPU

DEVICE void memory_fence(void) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

DEVICE uint32_t atomic_add_u32(uint32_t *to, uint32_t value) {
    return __atomic_fetch_add(to, value, __ATOMIC_RELAXED);
}

DEVICE uint32_t atomic_exchange_u32(uint32_t *to, uint32_t value) {
    return __atomic_exchange_n(to, value, __ATOMIC_RELAXED);
}

/** Stores `value` if the old value is `expected`. */
DEVICE uint32_t atomic_compare_exchange_u32(uint32_t *to, uint32_t expected, uint32_t value) {
    __atomic_compare_exchange_n(to, &expected, value, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return expected;
}

DEVICE uint32_t atomic_min_u32(uint32_t *to, uint32_t value) {
    uint32_t old = atomic_load_u32(to);
    while (value < old) {
        uint32_t seen = atomic_compare_exchange_u32(to, old, value);
        if (seen == old) break;
        old = seen;
    }
    return old;
}

DEVICE uint32_t atomic_max_u32(uint32_t *to, uint32_t value) {
    uint32_t old = atomic_load_u32(to);
    while (value > old) {
        uint32_t seen = atomic_compare_exchange_u32(to, old, value);
        if (seen == old) break;
        old = seen;
    }
    return old;
}

DEVICE float atomic_add_f32(float *to, float value) {
    union {
        uint32_t bits;
        float value;
    } old, sum;
    uint32_t expected;
    old.bits = atomic_load_u32((const uint32_t *)to);
    do {
        expected = old.bits;
        sum.value = old.value + value;
        old.bits = atomic_compare_exchange_u32((uint32_t *)to, expected, sum.bits);
    } while (old.bits != expected);
    return old.value;
}

#else

#ifdef KERNEL_ON_NVCC
#define KERNEL_ATOMIC(nvcc, clang) nvcc
#else
#define KERNEL_ATOMIC(nvcc, clang) clang
#endif

DEVICE void memory_fence(void) {
    KERNEL_ATOMIC(__threadfence(), __nvvm_membar_gl());
}

DEVICE uint32_t atomic_add_u32(uint32_t *to, uint32_t value) {
    return KERNEL_ATOMIC(
        atomicAdd(to, value), (uint32_t)__nvvm_atom_add_gen_i((int *)to, (int)value));
}

DEVICE uint32_t atomic_exchange_u32(uint32_t *to, uint32_t value) {
    return KERNEL_ATOMIC(
        atomicExch(to, value), (uint32_t)__nvvm_atom_xchg_gen_i((int *)to, (int)value));
}

/** Stores `value` if the old value is `expected`. */
DEVICE uint32_t atomic_compare_exchange_u32(uint32_t *to, uint32_t expected, uint32_t value) {
    return KERNEL_ATOMIC(atomicCAS(to, expected, value),
        (uint32_t)__nvvm_atom_cas_gen_i((int *)to, (int)expected, (int)value));
}

DEVICE uint32_t atomic_min_u32(uint32_t *to, uint32_t value) {
    return KERNEL_ATOMIC(atomicMin(to, value), __nvvm_atom_min_gen_ui(to, value));
}

DEVICE uint32_t atomic_max_u32(uint32_t *to, uint32_t value) {
    return KERNEL_ATOMIC(atomicMax(to, value), __nvvm_atom_max_gen_ui(to, value));
}

DEVICE float atomic_add_f32(float *to, float value) {
    return KERNEL_ATOMIC(atomicAdd(to, value), __nvvm_atom_add_gen_f(to, value));
}

#endif

#endif
