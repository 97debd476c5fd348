#include <math.h>

#include "rig.h"

enum { N = 100003, GRID_MAX = 64 };

static float x[N];

/** Fills x, returns the sum of the magnitudes; *sum is what the kernel should come close to. */
static double fill_x(double *sum) {
    uint32_t seed = 7;
    double magnitude = 0.0;
    *sum = 0.0;
    for (int i = 0; i < N; i++) {
        x[i] = rig_random(&seed);
        *sum += x[i];
        magnitude += fabs((double)x[i]);
    }
    return magnitude;
}

static CUdeviceptr reduce(
    CUfunction kernel, CUdeviceptr from, uint32_t n, uint32_t grid, uint32_t block) {
    CUdeviceptr sums = rig_buffer(NULL, grid * sizeof(float));
    rig_launch(kernel,
        (struct rig_shape){.grid = grid,
            .block = block,
            .shared_bytes = block * (uint32_t)sizeof(float),
            .iterations = 1},
        (void *[]){&from, &sums, &n});
    return sums;
}

TEST(two_steps_give_the_grand_total_at_any_block_size) {
    double expected, magnitude = fill_x(&expected);
    CUfunction kernel = rig_kernel(PROGRAMS_FOLDER, "reduce_sum", "reduce_sum");
    const uint32_t blocks[] = {256, 100, 33, 1};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        CUdeviceptr device_x = rig_buffer(x, sizeof x);
        CUdeviceptr sums = reduce(kernel, device_x, N, GRID_MAX, blocks[i]);
        float total = 0.0f;
        rig_read(reduce(kernel, sums, GRID_MAX, 1, blocks[i]), &total, sizeof total);
        rig_free_all();
        assert_true(fabs(total - expected) < 1e-6 * magnitude);
    }
}

TEST(each_block_sums_the_elements_it_strides_over) {
    double total;
    fill_x(&total);
    CUfunction kernel = rig_kernel(PROGRAMS_FOLDER, "reduce_sum", "reduce_sum");
    float sums[4];
    rig_read(reduce(kernel, rig_buffer(x, sizeof x), N, 4, 64), sums, sizeof sums);
    rig_free_all();
    for (int block = 0; block < 4; block++) {
        double expected = 0.0;
        for (int i = 0; i < N; i++)
            if (i / 64 % 4 == block) expected += x[i];
        assert_true(fabs(sums[block] - expected) < 1e-2);
    }
}

TEST(a_sum_is_the_same_bits_every_time) {
    double total;
    fill_x(&total);
    CUfunction kernel = rig_kernel(PROGRAMS_FOLDER, "reduce_sum", "reduce_sum");
    CUdeviceptr device_x = rig_buffer(x, sizeof x);
    float first[GRID_MAX], second[GRID_MAX];
    rig_read(reduce(kernel, device_x, N, GRID_MAX, 256), first, sizeof first);
    rig_read(reduce(kernel, device_x, N, GRID_MAX, 256), second, sizeof second);
    rig_free_all();
    assert_memory_equal(first, second, sizeof first);
}

TEST(no_elements_sum_to_zero) {
    CUfunction kernel = rig_kernel(PROGRAMS_FOLDER, "reduce_sum", "reduce_sum");
    float sum = 1.0f;
    rig_read(reduce(kernel, rig_buffer(NULL, 4), 0, 1, 256), &sum, sizeof sum);
    rig_free_all();
    assert_float_equal(0.0f, sum, 0.0f);
}

RUN_RIG_TESTS(T(two_steps_give_the_grand_total_at_any_block_size),
    T(each_block_sums_the_elements_it_strides_over), T(a_sum_is_the_same_bits_every_time),
    T(no_elements_sum_to_zero))
