#include <math.h>
#include <string.h>

#include "rig.h"
#include "ulps.h"

enum { SWEEP = 1 << 18, OUTPUTS = 7 };
enum { SIN, COS, TANH, ERF, POW, MIN, MAX };

static float x[SWEEP], y[SWEEP], out[OUTPUTS][SWEEP];

static CUfunction probe(const char *entry) {
    return rig_kernel(PROBE_FOLDER, "kernel_probe", entry);
}

static struct rig_shape shape_of(uint32_t n) {
    return (struct rig_shape){.grid = (n + 255) / 256, .block = 256, .iterations = 1};
}

static void run_functions(uint32_t n) {
    CUdeviceptr device_x = rig_buffer(x, n * sizeof *x), device_y = rig_buffer(y, n * sizeof *y);
    CUdeviceptr device_out = rig_buffer(NULL, OUTPUTS * n * sizeof *x);
    rig_launch(
        probe("probe_functions"), shape_of(n), (void *[]){&device_x, &device_y, &device_out, &n});
    for (size_t i = 0; i < OUTPUTS; i++)
        rig_read(device_out + i * n * sizeof *x, out[i], n * sizeof *x);
    rig_free_all();
}

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

TEST(functions_are_within_an_ulp_over_all_floats) {
    double worst[POW + 1] = {0};
    for (uint64_t next = 0; next <= UINT32_MAX;) {
        uint32_t n = 0;
        for (; n < SWEEP && next <= UINT32_MAX; n++, next += 4093) x[n] = float_of((uint32_t)next);
        run_functions(n);
        for (uint32_t i = 0; i < n; i++) {
            worst[SIN] = fmax(worst[SIN], ulps(out[SIN][i], sin(x[i])));
            worst[COS] = fmax(worst[COS], ulps(out[COS][i], cos(x[i])));
            worst[TANH] = fmax(worst[TANH], ulps(out[TANH][i], tanh(x[i])));
            worst[ERF] = fmax(worst[ERF], ulps(out[ERF][i], erf(x[i])));
        }
    }
    print_message("worst errors: sin %.3f, cos %.3f, tanh %.3f, erf %.3f ulp\n", worst[SIN],
        worst[COS], worst[TANH], worst[ERF]);
    for (size_t i = SIN; i <= ERF; i++) assert_true(worst[i] < 1.0);
}

TEST(pow_is_within_an_ulp_wherever_its_result_is_finite_and_elsewhere) {
    double worst = 0.0;
    uint32_t seed = 7;
    for (int round = 0; round < 4; round++) {
        for (uint32_t i = 0; i < SWEEP; i++) {
            x[i] = float_of((uint32_t)i * 16381);
            float power = 130.0f * rig_random(&seed);
            /* whole powers too, for negative numbers; and any float at all */
            y[i] = round == 0 ? power : round == 1 ? rintf(power) : float_of(i * 2654435761u);
            if (round == 3) x[i] = 1.0f + 0x1p-23f * (float)(i % 4096);
        }
        run_functions(SWEEP);
        for (uint32_t i = 0; i < SWEEP; i++)
            worst = fmax(worst, ulps(out[POW][i], pow(x[i], y[i])));
    }
    print_message("worst error: pow %.3f ulp\n", worst);
    assert_true(worst < 1.0);
}

TEST(functions_know_their_edges) {
    const float edges[] = {0.0f, -0.0f, 1.0f, -1.0f, 0.5f, -0.5f, 2.0f, -2.0f, 3.0f, -3.0f,
        INFINITY, -INFINITY, NAN, 0x1p-149f, -0x1p-149f, 0x1.fffffep+127f, 16777216.0f, 16777215.0f,
        -16777215.0f, 1048576.0f, 1048577.0f, 33554434.0f, -4.2e6f, 16367173.0f};
    enum { EDGES = sizeof edges / sizeof *edges };
    for (uint32_t i = 0; i < EDGES * EDGES; i++) {
        x[i] = edges[i / EDGES];
        y[i] = edges[i % EDGES];
    }
    run_functions(EDGES * EDGES);
    for (uint32_t i = 0; i < EDGES * EDGES; i++) {
        double powered = pow(x[i], y[i]);
        assert_true(ulps(out[POW][i], powered) < 1.0);
        if (!isnan(powered)) assert_int_equal(signbit(out[POW][i]) != 0, signbit(powered) != 0);
        assert_true(ulps(out[SIN][i], sin(x[i])) < 1.0 && ulps(out[COS][i], cos(x[i])) < 1.0);
        assert_true(ulps(out[TANH][i], tanh(x[i])) < 1.0 && ulps(out[ERF][i], erf(x[i])) < 1.0);
        if (isnan(x[i]) && isnan(y[i])) continue;
        assert_true(out[MIN][i] == fminf(x[i], y[i]) && out[MAX][i] == fmaxf(x[i], y[i]));
    }
}

/* The nearest of all halves, by the largest magnitude of doubles; ties to even. */
static double value_of_f16(uint16_t half) {
    int exponent = half >> 10 & 0x1f, fraction = half & 0x3ff;
    double size = exponent == 0x1f ? (fraction == 0 ? INFINITY : NAN)
                  : exponent == 0  ? ldexp(fraction, -24)
                                   : ldexp(fraction | 0x400, exponent - 25);
    return half & 0x8000 ? -size : size;
}

static uint16_t halves[1 << 16], f16[1 << 16], bf16[1 << 16];
static float of_f16[1 << 16], of_bf16[1 << 16];

static void run_half(void) {
    uint32_t n = 1 << 16;
    CUdeviceptr device_halves = rig_buffer(halves, sizeof halves),
                device_x = rig_buffer(x, n * sizeof *x);
    CUdeviceptr a = rig_buffer(NULL, sizeof of_f16), b = rig_buffer(NULL, sizeof of_bf16);
    CUdeviceptr c = rig_buffer(NULL, sizeof f16), d = rig_buffer(NULL, sizeof bf16);
    rig_launch(probe("probe_half"), shape_of(n),
        (void *[]){&device_halves, &a, &b, &device_x, &c, &d, &n});
    rig_read(a, of_f16, sizeof of_f16);
    rig_read(b, of_bf16, sizeof of_bf16);
    rig_read(c, f16, sizeof f16);
    rig_read(d, bf16, sizeof bf16);
    rig_free_all();
}

TEST(every_half_is_its_float_and_comes_back) {
    for (uint32_t i = 0; i < 1 << 16; i++) {
        halves[i] = (uint16_t)i;
        double value = value_of_f16((uint16_t)i);
        x[i] = (float)value;
    }
    run_half();
    for (uint32_t i = 0; i < 1 << 16; i++) {
        double value = value_of_f16((uint16_t)i);
        assert_true(isnan(value) ? isnan(of_f16[i]) : of_f16[i] == (float)value);
        assert_true(isnan(value) ? isnan(value_of_f16(f16[i])) : f16[i] == i);
        assert_true(isnan(float_of(i << 16)) ? isnan(of_bf16[i]) : of_bf16[i] == float_of(i << 16));
    }
}

TEST(floats_become_the_nearest_half_and_ties_the_even_one) {
    for (uint32_t i = 0; i < 1 << 16; i++) /* halfway between two halves, and just beside it */
        x[i] = (float)((value_of_f16((uint16_t)(i / 2 & 0x7bff)) +
                           value_of_f16((uint16_t)((i / 2 & 0x7bff) + 1))) /
                       2);
    for (uint32_t i = 1; i < 1 << 16; i += 2) x[i] = nextafterf(x[i], i & 2 ? INFINITY : 0.0f);
    run_half();
    for (uint32_t i = 0; i < 1 << 16; i++) {
        uint16_t low = (uint16_t)(i / 2 & 0x7bff);
        double below = value_of_f16(low), above = value_of_f16((uint16_t)(low + 1));
        if (isinf(above)) above = 65536.0;
        uint16_t nearest = x[i] - below < above - x[i]   ? low
                           : x[i] - below > above - x[i] ? (uint16_t)(low + 1)
                                                         : (uint16_t)(low + (low & 1));
        assert_int_equal(nearest, f16[i]);
        uint32_t bits, low_bits;
        memcpy(&bits, &x[i], sizeof bits);
        low_bits = bits & 0xffff0000;
        uint32_t rest = bits & 0xffff,
                 up = rest > 0x8000 || (rest == 0x8000 && (low_bits >> 16 & 1));
        assert_int_equal((low_bits >> 16) + up, bf16[i]);
    }
}

TEST(values_go_from_thread_to_thread_of_a_warp) {
    enum { THREADS = 4 * 96 };
    uint32_t from[THREADS], got[THREADS], seed = 3;
    float sums[THREADS];
    for (uint32_t i = 0; i < THREADS; i++)
        from[i] = (uint32_t)(16.0f + 16.0f * rig_random(&seed)) & 31;
    CUdeviceptr device_from = rig_buffer(from, sizeof from),
                device_got = rig_buffer(NULL, sizeof got);
    CUdeviceptr device_sums = rig_buffer(NULL, sizeof sums);
    rig_launch(probe("probe_warp"), (struct rig_shape){.grid = 4, .block = 96, .iterations = 1},
        (void *[]){&device_from, &device_got, &device_sums});
    rig_read(device_got, got, sizeof got);
    rig_read(device_sums, sums, sizeof sums);
    rig_free_all();
    for (uint32_t i = 0; i < THREADS; i++) {
        uint32_t first = i & ~31u;
        assert_int_equal(first + from[i], got[i]);
        assert_true(sums[i] == (float)(32 * first + 31 * 16));
    }
}

TEST(philox_gives_the_words_of_its_inventors) {
    static const uint64_t keys[3][3] = {{0, 0, 0}, {UINT64_MAX, UINT64_MAX, UINT64_MAX},
        {0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e}};
    static const uint32_t expected[3][4] = {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
        {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
        {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}};
    uint32_t words[3][4];
    CUdeviceptr device_keys = rig_buffer(keys, sizeof keys),
                device_words = rig_buffer(NULL, sizeof words);
    CUdeviceptr numbers = rig_buffer(NULL, 6 * sizeof(float));
    rig_launch(probe("probe_random"), (struct rig_shape){.grid = 1, .block = 3, .iterations = 1},
        (void *[]){&device_keys, &device_words, &numbers});
    rig_read(device_words, words, sizeof words);
    rig_free_all();
    assert_memory_equal(expected, words, sizeof words);
}

TEST(random_numbers_have_their_distributions) {
    enum { DRAWS = 1 << 16 };
    static uint64_t keys[DRAWS][3];
    static float numbers[DRAWS][2];
    for (uint32_t i = 0; i < DRAWS; i++) {
        keys[i][0] = 42;
        keys[i][1] = i;
    }
    CUdeviceptr device_keys = rig_buffer(keys, sizeof keys), words = rig_buffer(NULL, DRAWS * 16);
    CUdeviceptr device_numbers = rig_buffer(NULL, sizeof numbers);
    rig_launch(
        probe("probe_random"), shape_of(DRAWS), (void *[]){&device_keys, &words, &device_numbers});
    rig_read(device_numbers, numbers, sizeof numbers);
    rig_free_all();
    double mean[2] = {0}, square[2] = {0};
    for (uint32_t i = 0; i < DRAWS; i++)
        for (int k = 0; k < 2; k++) {
            assert_true(k == 1 || (numbers[i][k] >= 0.0f && numbers[i][k] < 1.0f));
            mean[k] += numbers[i][k] / (double)DRAWS;
            square[k] += (double)numbers[i][k] * numbers[i][k] / DRAWS;
        }
    /* within six standard errors; the draws are fixed */
    assert_true(fabs(mean[0] - 0.5) < 0.007 && fabs(square[0] - 1.0 / 3.0) < 0.007);
    assert_true(fabs(mean[1]) < 0.024 && fabs(square[1] - 1.0) < 0.034);
}

RUN_RIG_TESTS(T(functions_are_within_an_ulp_over_all_floats),
    T(pow_is_within_an_ulp_wherever_its_result_is_finite_and_elsewhere),
    T(functions_know_their_edges), T(every_half_is_its_float_and_comes_back),
    T(floats_become_the_nearest_half_and_ties_the_even_one),
    T(values_go_from_thread_to_thread_of_a_warp), T(philox_gives_the_words_of_its_inventors),
    T(random_numbers_have_their_distributions))
