/**
 * Sums of floats, one for each block: sums[b] is the sum of the elements that block b takes.
 *
 * A total of all elements needs two steps. The first runs this entry over x with g blocks. The
 * second runs it over `sums` with n = g and one block, and writes one float. The order of additions
 * depends only on grid and block, so a sum has the same bits on every run.
 */
#include "kernel.h"

KERNEL(reduce_sum, (const float *)x, (float *)sums, (uint32_t)n) {
    SHARED(float, partial); /* one for each thread */
    uint64_t stride = (uint64_t)grid_dim_x() * block_dim_x();
    float sum = 0.0f;
    for (uint64_t i = global_x(); i < n; i += stride) sum += x[i];
    partial[thread_x()] = sum;
    block_sum_f32(partial);
    if (thread_x() == 0) sums[block_x()] = partial[0];
}
