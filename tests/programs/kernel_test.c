#include <math.h>
#include <string.h>

#include "rig.h"
#include "ulps.h"

enum { SWEEP = 1 << 18 };

static float x[SWEEP], exps[SWEEP], logs[SWEEP], roots[SWEEP];

static CUfunction probe(const char *entry) {
    return rig_kernel(PROBE_FOLDER, "kernel_probe", entry);
}

static void run_math(uint32_t n) {
    CUdeviceptr device_x = rig_buffer(x, n * sizeof *x);
    CUdeviceptr outs[3];
    for (int i = 0; i < 3; i++) outs[i] = rig_buffer(NULL, n * sizeof *x);
    rig_launch(probe("probe_math"),
        (struct rig_shape){.grid = (n + 255) / 256, .block = 256, .iterations = 1},
        (void *[]){&device_x, &outs[0], &outs[1], &outs[2], &n});
    rig_read(outs[0], exps, n * sizeof *x);
    rig_read(outs[1], logs, n * sizeof *x);
    rig_read(outs[2], roots, n * sizeof *x);
    rig_free_all();
}

/** All floats, a step apart that shares no factor with their layout. */
TEST(exp_and_log_are_within_an_ulp_over_all_floats_and_sqrt_is_exact) {
    double exp_worst = 0.0, log_worst = 0.0;
    const uint64_t step = 4093;
    for (uint64_t next = 0; next <= UINT32_MAX;) {
        uint32_t n = 0;
        for (; n < SWEEP && next <= UINT32_MAX; n++, next += step)
            memcpy(&x[n], &(uint32_t){(uint32_t)next}, sizeof *x);
        run_math(n);
        for (uint32_t i = 0; i < n; i++) {
            exp_worst = fmax(exp_worst, ulps(exps[i], exp(x[i])));
            log_worst = fmax(log_worst, ulps(logs[i], log(x[i])));
            assert_true(roots[i] == sqrtf(x[i]) || (isnan(roots[i]) && isnan(sqrtf(x[i]))));
        }
    }
    print_message("worst errors: exp %.3f ulp, log %.3f ulp\n", exp_worst, log_worst);
    assert_true(exp_worst < 1.0);
    assert_true(log_worst < 1.0);
}

TEST(exp_and_log_know_their_limits) {
    const float inputs[] = {0.0f, -0.0f, 1.0f, INFINITY, -INFINITY, NAN, -1.0f, 88.72283f,
        88.72284f, -103.97f, -103.98f, 0x1p-149f};
    uint32_t n = sizeof inputs / sizeof *inputs;
    memcpy(x, inputs, sizeof inputs);
    run_math(n);
    for (uint32_t i = 0; i < n; i++) {
        assert_true(ulps(exps[i], exp(x[i])) < 1.0);
        assert_true(ulps(logs[i], log(x[i])) < 1.0);
    }
    assert_true(exps[0] == 1.0f && logs[2] == 0.0f);
}

/** Terms that nearly cancel the product, where a second rounding would show; and any bits at all.
 */
static void fill_factors_and_terms(float *factors[3], uint32_t n) {
    uint32_t seed = 7;
    for (uint32_t i = 0; i < n; i++) {
        for (int k = 0; k < 3; k++) {
            factors[k][i] = rig_random(&seed);
            if (i % 2 == 0) memcpy(&factors[k][i], &seed, sizeof seed);
        }
        if (i % 4 == 1) factors[2][i] = -(factors[0][i] * factors[1][i]);
    }
}

TEST(fma_rounds_once) {
    uint32_t n = SWEEP, differs_from_two_roundings = 0;
    float *factors[3] = {x, exps, logs};
    CUdeviceptr in[3], out = rig_buffer(NULL, n * sizeof *x);
    fill_factors_and_terms(factors, n);
    for (int k = 0; k < 3; k++) in[k] = rig_buffer(factors[k], n * sizeof *x);
    rig_launch(probe("probe_fma"),
        (struct rig_shape){.grid = (n + 255) / 256, .block = 256, .iterations = 1},
        (void *[]){&in[0], &in[1], &in[2], &out, &n});
    rig_read(out, roots, n * sizeof *x);
    rig_free_all();
    for (uint32_t i = 0; i < n; i++) {
        float expected = fmaf(x[i], exps[i], logs[i]);
        assert_true(roots[i] == expected || (isnan(roots[i]) && isnan(expected)));
        differs_from_two_roundings += roots[i] != x[i] * exps[i] + logs[i];
    }
    assert_true(differs_from_two_roundings > n / 4);
}

TEST(a_thread_knows_its_place_in_three_dimensions) {
    enum { THREADS = 2 * 3 * 4 * 4 * 3 * 2 };
    const uint32_t grid[3] = {2, 3, 4}, block[3] = {4, 3, 2};
    static uint32_t got[THREADS][12];
    CUdeviceptr out = rig_buffer(NULL, sizeof got);
    rig_launch_3d(probe("probe_positions"), grid, block, 0, (void *[]){&out});
    rig_read(out, got, sizeof got);
    rig_free_all();
    for (uint32_t i = 0; i < THREADS; i++) {
        uint32_t thread = i % 24, group = i / 24;
        const uint32_t expected[12] = {thread % 4, thread / 4 % 3, thread / 12, group % 2,
            group / 2 % 3, group / 6, 4, 3, 2, 2, 3, 4};
        assert_memory_equal(expected, got[i], sizeof expected);
    }
}

TEST(atomics_lose_nothing) {
    enum { THREADS = 64 * 96 };
    const uint32_t start[6] = {0, UINT32_MAX, 0, 0, 0, 0};
    CUdeviceptr words = rig_buffer(start, sizeof start), sum = rig_buffer(NULL, sizeof(float));
    rig_launch(probe("probe_atomics"), (struct rig_shape){.grid = 64, .block = 96, .iterations = 1},
        (void *[]){&words, &sum});
    uint32_t got[6];
    float got_sum;
    rig_read(words, got, sizeof got);
    rig_read(sum, &got_sum, sizeof got_sum);
    rig_free_all();
    const uint32_t numbers_sum = THREADS * (THREADS - 1) / 2;
    assert_int_equal(numbers_sum, got[0]);
    assert_int_equal(5, got[1]);
    assert_int_equal(THREADS - 1, got[2]);
    assert_int_equal(THREADS, got[3]);
    assert_int_equal(numbers_sum, got[4] + got[5]);
    assert_true(got_sum == THREADS * 0.5f);
}

TEST(threads_see_each_others_shared_memory_after_a_barrier) {
    enum { GRID = 5, BLOCK = 70 };
    uint32_t data[GRID * BLOCK], rounds = 101;
    for (uint32_t i = 0; i < GRID * BLOCK; i++) data[i] = i;
    CUdeviceptr device_data = rig_buffer(data, sizeof data);
    rig_launch(probe("probe_barrier"),
        (struct rig_shape){.grid = GRID,
            .block = BLOCK,
            .shared_bytes = sizeof(uint32_t) * BLOCK,
            .iterations = 1},
        (void *[]){&device_data, &rounds});
    rig_read(device_data, data, sizeof data);
    rig_free_all();
    for (uint32_t i = 0; i < GRID * BLOCK; i++)
        assert_int_equal(i / BLOCK * BLOCK + (BLOCK - 1 - i % BLOCK) + rounds, data[i]);
}

TEST(a_kernel_knows_how_much_shared_memory_it_has) {
    const uint32_t sizes[] = {0, 4, 49152, 65536};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint32_t got = UINT32_MAX;
        CUdeviceptr out = rig_buffer(&got, sizeof got);
        rig_launch(probe("probe_shared_bytes"),
            (struct rig_shape){.grid = 1, .block = 2, .shared_bytes = sizes[i], .iterations = 1},
            (void *[]){&out});
        rig_read(out, &got, sizeof got);
        rig_free_all();
        assert_int_equal(sizes[i], got);
    }
}

TEST(sixteen_parameters_of_every_size_arrive) {
    CUdeviceptr sum = rig_buffer(NULL, sizeof(uint64_t));
    uint32_t words[7] = {1, 2, 3, 4, 5, 6, 7}, a = 10;
    int32_t b = -3;
    uint64_t c = 1ull << 40;
    int64_t d = -100;
    float e = 1000.0f;
    double f = 1e15;
    uint8_t g = 200;
    uint16_t h = 60000;
    rig_launch(probe("probe_parameters"),
        (struct rig_shape){.grid = 1, .block = 1, .iterations = 1},
        (void *[]){&sum, &a, &b, &c, &d, &e, &f, &g, &h, &words[0], &words[1], &words[2], &words[3],
            &words[4], &words[5], &words[6]});
    uint64_t got;
    rig_read(sum, &got, sizeof got);
    rig_free_all();
    assert_true(got == 10 - 3 + (1ull << 40) - 100 + 1000 + 1000000000000000ull + 60200 + 28);
}

RUN_RIG_TESTS(T(exp_and_log_are_within_an_ulp_over_all_floats_and_sqrt_is_exact),
    T(exp_and_log_know_their_limits), T(fma_rounds_once),
    T(a_thread_knows_its_place_in_three_dimensions), T(atomics_lose_nothing),
    T(threads_see_each_others_shared_memory_after_a_barrier),
    T(a_kernel_knows_how_much_shared_memory_it_has), T(sixteen_parameters_of_every_size_arrive))
