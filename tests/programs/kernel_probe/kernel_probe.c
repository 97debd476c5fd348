/** What kernel.h offers, one kernel for each part of it. */
#include "kernel.h"

KERNEL(probe_math, (const float *)x, (float *)exps, (float *)logs, (float *)roots, (uint32_t)n) {
    uint32_t i = global_x();
    if (i >= n) return;
    exps[i] = exp_f32(x[i]);
    logs[i] = log_f32(x[i]);
    roots[i] = sqrt_f32(x[i]);
}

KERNEL(probe_fma, (const float *)factors, (const float *)more_factors, (const float *)terms,
    (float *)out, (uint32_t)n) {
    uint32_t i = global_x();
    if (i < n) out[i] = fma_f32(factors[i], more_factors[i], terms[i]);
}

KERNEL(probe_functions, (const float *)x, (const float *)y, (float *)out, (uint32_t)n) {
    uint32_t i = global_x();
    if (i >= n) return;
    out[i] = sin_f32(x[i]);
    out[n + i] = cos_f32(x[i]);
    out[2 * n + i] = tanh_f32(x[i]);
    out[3 * n + i] = erf_f32(x[i]);
    out[4 * n + i] = pow_f32(x[i], y[i]);
    out[5 * n + i] = min_f32(x[i], y[i]);
    out[6 * n + i] = max_f32(x[i], y[i]);
}

/** Each half to a float, each float to a half. */
KERNEL(probe_half, (const uint16_t *)halves, (float *)of_f16, (float *)of_bf16, (const float *)x,
    (uint16_t *)f16, (uint16_t *)bf16, (uint32_t)n) {
    uint32_t i = global_x();
    if (i >= n) return;
    of_f16[i] = f32_of_f16(halves[i]);
    of_bf16[i] = f32_of_bf16(halves[i]);
    f16[i] = f16_of_f32(x[i]);
    bf16[i] = bf16_of_f32(x[i]);
}

KERNEL(probe_warp, (const uint32_t *)from, (uint32_t *)got, (float *)sums) {
    uint32_t i = global_x();
    got[i] = warp_shuffle_u32(i, from[i]);
    sums[i] = warp_sum_f32((float)i);
}

/** Four words, a uniform and a normal number a thread. */
KERNEL(probe_random, (const uint64_t *)keys, (uint32_t *)words, (float *)numbers) {
    uint32_t i = global_x();
    struct philox drawn = philox4x32(keys[3 * i], keys[3 * i + 1], keys[3 * i + 2]);
    for (uint32_t k = 0; k < 4; k++) words[4 * i + k] = drawn.word[k];
    numbers[2 * i] = uniform_f32(drawn.word[0]);
    numbers[2 * i + 1] = normal_f32(drawn.word[1], drawn.word[2]);
}

/** Twelve numbers a thread, in the order of threads within blocks within the grid. */
KERNEL(probe_positions, (uint32_t *)out) {
    uint32_t block = (block_z() * grid_dim_y() + block_y()) * grid_dim_x() + block_x();
    uint32_t thread = (thread_z() * block_dim_y() + thread_y()) * block_dim_x() + thread_x();
    uint32_t *own = out + 12 * (block * block_dim_x() * block_dim_y() * block_dim_z() + thread);
    uint32_t values[12] = {thread_x(), thread_y(), thread_z(), block_x(), block_y(), block_z(),
        block_dim_x(), block_dim_y(), block_dim_z(), grid_dim_x(), grid_dim_y(), grid_dim_z()};
    for (uint32_t i = 0; i < 12; i++) own[i] = values[i];
}

KERNEL(probe_shared_bytes, (uint32_t *)out) {
    if (thread_x() == 0) *out = shared_bytes();
}

KERNEL(probe_atomics, (uint32_t *)words, (float *)sum) {
    uint32_t i = global_x();
    atomic_add_u32(&words[0], i);
    atomic_min_u32(&words[1], i + 5);
    atomic_max_u32(&words[2], i);
    atomic_add_f32(sum, 0.5f);
    /* a counter by compare and exchange */
    uint32_t seen, old = atomic_load_u32(&words[3]);
    while ((seen = atomic_compare_exchange_u32(&words[3], old, old + 1)) != old) old = seen;
    /* each thread leaves its number and takes another's: all but the last one left are added */
    atomic_add_u32(&words[5], atomic_exchange_u32(&words[4], i));
}

/** Turns each block's part around, through shared memory, `rounds` times. */
KERNEL(probe_barrier, (uint32_t *)data, (uint32_t)rounds) {
    SHARED(uint32_t, turned);
    uint32_t last = block_dim_x() - 1;
    for (uint32_t round = 0; round < rounds; round++) {
        turned[last - thread_x()] = data[global_x()];
        barrier();
        data[global_x()] = turned[thread_x()] + 1;
        barrier();
    }
}

KERNEL(probe_parameters, (uint64_t *)sum, (uint32_t)a, (int32_t)b, (uint64_t)c, (int64_t)d,
    (float)e, (double)f, (uint8_t)g, (uint16_t)h, (uint32_t)i, (uint32_t)j, (uint32_t)k,
    (uint32_t)l, (uint32_t)m, (uint32_t)n, (uint32_t)o) {
    *sum = a + (uint64_t)b + c + (uint64_t)d + (uint64_t)e + (uint64_t)f + g + h + i + j + k + l +
           m + n + o;
}
