/**
 * Sums of floats, one a block: sums[b] is the sum of the elements that block b strides over.
 *
 * The grand total takes two steps of a job: this entry over x with a grid of g blocks, then over
 * `sums` with n = g and a grid of one, into a buffer of one float. The order of additions depends
 * on grid and block only, so that a sum is the same on every run.
 */
#include "kernel.h"

KERNEL(reduce_sum, (const float *)x, (float *)sums, (uint32_t)n) {
    SHARED(float, partial); /* one a thread */
    uint64_t stride = (uint64_t)grid_dim_x() * block_dim_x();
    float sum = 0.0f;
    for (uint64_t i = global_x(); i < n; i += stride) sum += x[i];
    partial[thread_x()] = sum;
    block_sum_f32(partial);
    if (thread_x() == 0) sums[block_x()] = partial[0];
}
