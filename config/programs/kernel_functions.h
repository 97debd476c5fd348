/**
 * More functions for floats: sin, cos, pow, tanh, erf, and the smaller and the larger of two. They
 * compute in doubles, with plain IEEE operations in a fixed order: the same bits on the GPU and on
 * the CPU, within 1 ulp of the true value for all floats. The coefficients of erf are Chebyshev
 * fits of our own; the others are Taylor's.
 */
#ifndef KERNEL_FUNCTIONS_H
#define KERNEL_FUNCTIONS_H

#include "kernel.h"

#define KERNEL_NAN f32_of_bits(0x7fc00000)
#define KERNEL_INFINITY f32_of_bits(0x7f800000)

DEVICE uint32_t min_u32(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}
DEVICE uint32_t max_u32(uint32_t a, uint32_t b) {
    return a < b ? b : a;
}
DEVICE int32_t min_i32(int32_t a, int32_t b) {
    return a < b ? a : b;
}
DEVICE int32_t max_i32(int32_t a, int32_t b) {
    return a < b ? b : a;
}
/** If one of both is NaN, returns the other. Zeroes are equal, whatever their signs. */
DEVICE float min_f32(float a, float b) {
    return a < b || b != b ? a : b;
}
DEVICE float max_f32(float a, float b) {
    return a > b || b != b ? a : b;
}
DEVICE float abs_f32(float x) {
    return f32_of_bits(bits_of_f32(x) & 0x7fffffff);
}

DEVICE uint64_t kernel_bits_of_f64(double value) {
    union {
        double value;
        uint64_t bits;
    } both;
    both.value = value;
    return both.bits;
}

DEVICE double kernel_f64_of_bits(uint64_t bits) {
    union {
        uint64_t bits;
        double value;
    } both;
    both.bits = bits;
    return both.value;
}

/* e^x for |x| <= 700, to about 1e-15. */
DEVICE double kernel_exp_f64(double x) {
    double n = (x * 0x1.71547652b82fep+0 + 0x1.8p+52) - 0x1.8p+52;
    double r = (x - n * 0x1.62e42fefa38p-1) - n * 0x1.ef35793c7673p-45;
    double p = 1.0 / 6227020800.0;
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = 1.0 + (r + r * r * p);
    return p * kernel_f64_of_bits((uint64_t)((int64_t)n + 1023) << 52);
}

/* The natural logarithm of a normal number above 0, to about 1e-15 of it. */
DEVICE double kernel_log_f64(double x) {
    const uint64_t sqrt_half_bits = 0x3fe6a09e667f3bcd;
    int64_t exponent = (int64_t)(kernel_bits_of_f64(x) - sqrt_half_bits) >> 52;
    double f = kernel_f64_of_bits(kernel_bits_of_f64(x) - ((uint64_t)exponent << 52)) - 1.0;
    double s = f / (2.0 + f), z = s * s;
    double q = 1.0 / 21.0;
    q = q * z + 1.0 / 19.0;
    q = q * z + 1.0 / 17.0;
    q = q * z + 1.0 / 15.0;
    q = q * z + 1.0 / 13.0;
    q = q * z + 1.0 / 11.0;
    q = q * z + 1.0 / 9.0;
    q = q * z + 1.0 / 7.0;
    q = q * z + 1.0 / 5.0;
    q = q * z + 1.0 / 3.0;
    return (double)exponent * 0x1.62e42fefa39efp-1 + 2.0 * (s + s * z * q);
}

/*
 * x = quadrant pi/2 + r with |r| <= pi/4, for |x| from 2^20 on (Payne and Hanek): x is m 2^e, and
 * of the bits of 2/pi the first e - 2 only add multiples of four to m 2^e (2/pi). The 96 bits
 * behind them are enough for any float.
 */
DEVICE double kernel_reduce_large(float x, uint32_t *quadrant) {
    const uint32_t two_by_pi[7] = {
        0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab};
    uint32_t bits = bits_of_f32(x) & 0x7fffffff, v[3];
    uint64_t m = (bits & 0x7fffff) | 0x800000;
    int32_t e = (int32_t)(bits >> 23) - 150;
    /* below 2^25 the bits begin before the first one */
    uint32_t skipped = e > 2 ? (uint32_t)e - 2 : 0, behind = e > 2 ? 0 : (uint32_t)(2 - e);
    for (uint32_t i = 0; i < 3; i++) {
        uint64_t two =
            (uint64_t)two_by_pi[skipped / 32 + i] << 32 | two_by_pi[skipped / 32 + i + 1];
        v[i] = (uint32_t)(two << skipped % 32 >> 32);
    }
    for (; behind > 0; behind--) {
        v[2] = v[2] >> 1 | v[1] << 31;
        v[1] = v[1] >> 1 | v[0] << 31;
        v[0] >>= 1;
    }
    uint64_t low = m * v[2], middle = m * v[1] + (low >> 32);
    uint32_t high = (uint32_t)(m * v[0] + (middle >> 32));
    uint64_t fraction =
        (uint64_t)high << 34 | (uint64_t)(uint32_t)middle << 2 | (uint32_t)low >> 30;
    *quadrant = (high >> 30) + (uint32_t)(fraction >> 63);
    double r = (double)(int64_t)fraction * 0x1.921fb54442d18p-64;
    if (x < 0.0f) *quadrant = 0u - *quadrant;
    return x < 0.0f ? -r : r;
}

DEVICE double kernel_reduce(float x, uint32_t *quadrant) {
    if (abs_f32(x) >= 0x1p+20f) return kernel_reduce_large(x, quadrant);
    double n = ((double)x * 0x1.45f306dc9c883p-1 + 0x1.8p+52) - 0x1.8p+52;
    *quadrant = (uint32_t)(int32_t)n;
    return ((double)x - n * 0x1.921fb544p+0) - n * 0x1.0b4611a626331p-34;
}

/* sin for an even quadrant, cos for an odd one; both by Taylor's series. */
DEVICE float kernel_sin_of(double r, uint32_t quadrant) {
    double z = r * r, p;
    if (quadrant & 1) {
        p = -1.0 / 87178291200.0;
        p = p * z + 1.0 / 479001600.0;
        p = p * z - 1.0 / 3628800.0;
        p = p * z + 1.0 / 40320.0;
        p = p * z - 1.0 / 720.0;
        p = p * z + 1.0 / 24.0;
        p = p * z - 0.5;
        p = 1.0 + z * p;
    } else {
        p = 1.0 / 6227020800.0;
        p = p * z - 1.0 / 39916800.0;
        p = p * z + 1.0 / 362880.0;
        p = p * z - 1.0 / 5040.0;
        p = p * z + 1.0 / 120.0;
        p = p * z - 1.0 / 6.0;
        p = r + r * z * p;
    }
    return (float)(quadrant & 2 ? -p : p);
}

DEVICE float sin_f32(float x) {
    uint32_t quadrant;
    if (x == 0.0f) return x;
    if (!(abs_f32(x) < KERNEL_INFINITY)) return KERNEL_NAN;
    double r = kernel_reduce(x, &quadrant);
    return kernel_sin_of(r, quadrant);
}

DEVICE float cos_f32(float x) {
    uint32_t quadrant;
    if (!(abs_f32(x) < KERNEL_INFINITY)) return KERNEL_NAN;
    double r = kernel_reduce(x, &quadrant);
    return kernel_sin_of(r, quadrant + 1);
}

DEVICE float tanh_f32(float x) {
    float size = abs_f32(x);
    if (x != x) return x;
    if (size > 9.1f) return x < 0.0f ? -1.0f : 1.0f;
    double wide = (double)x;
    if (size < 0x1p-12f) return (float)(wide - wide * wide * wide * (1.0 / 3.0));
    double e = kernel_exp_f64(2.0 * wide);
    return (float)((e - 1.0) / (e + 1.0));
}

DEVICE float kernel_pow_of_edges(float size, float y) {
    bool is_large = size == KERNEL_INFINITY || (size != 0.0f && size > 1.0f);
    if (size == 1.0f) return 1.0f;
    return is_large == (y > 0.0f) ? KERNEL_INFINITY : 0.0f;
}

/** Special cases (zeroes, infinities, NaN) are those of C's powf(). */
DEVICE float pow_f32(float x, float y) {
    float size = abs_f32(x), result;
    if (y == 0.0f || x == 1.0f) return 1.0f;
    if (x != x || y != y) return KERNEL_NAN;
    bool is_small = abs_f32(y) < 0x1p+24f; /* larger floats are all even */
    int32_t whole = is_small ? (int32_t)y : 0;
    bool is_whole = !is_small || (float)whole == y;
    bool is_negative = (bits_of_f32(x) >> 31) != 0 && (whole & 1) != 0 && is_whole;
    if (size == 0.0f || size == KERNEL_INFINITY || abs_f32(y) == KERNEL_INFINITY) {
        result = kernel_pow_of_edges(size, y);
    } else if (x < 0.0f && !is_whole) {
        return KERNEL_NAN;
    } else {
        double power = (double)y * kernel_log_f64((double)size);
        result = power > 89.0     ? KERNEL_INFINITY
                 : power < -104.0 ? 0.0f
                                  : (float)kernel_exp_f64(power);
    }
    return is_negative ? -result : result;
}

/** The error function. */
DEVICE float erf_f32(float x) {
    const double small[10] = {0x1.ee51eb23cb88cp-1, -0x1.1fd16292151d6p-3, 0x1.454368013bd59p-6,
        -0x1.2b902b7b23389p-9, 0x1.c82aa3468d926p-13, -0x1.263991fe22753p-16, 0x1.4864d6ff470cap-20,
        -0x1.429dba263612cp-24, 0x1.1c6a055be22f3p-28, -0x1.c196e41481131p-33};
    const double large[21] = {0x1.ffcaa8f4c9be9p-1, 0x1.ac44a2cdb4230p-9, -0x1.9180586b55ba6p-7,
        0x1.cdb9fd59ea331p-6, -0x1.65964ef5668d2p-5, 0x1.7c8c5ebfa0015p-5, -0x1.0521f53925565p-5,
        0x1.2faacee8b9159p-7, 0x1.b5d218432066ep-8, -0x1.3b371acadd887p-7, 0x1.29d4002b11295p-8,
        0x1.ca1ceb92bb270p-12, -0x1.df3c4aa47a372p-10, 0x1.e709a09296056p-11, 0x1.d14da04b3a144p-15,
        -0x1.3dc0c99913094p-12, 0x1.e1936f71423dcp-14, 0x1.3af7d5a9a2989p-15,
        -0x1.17a58cd984cbap-15, -0x1.049035b86d071p-20, 0x1.e18129444e400p-19};
    double size = (double)abs_f32(x), t, p;
    if (x != x) return x;
    if (size >= 4.0) return x < 0.0f ? -1.0f : 1.0f;
    if (size < 1.0) {
        t = 2.0 * size * size - 1.0;
        p = small[9];
        for (int32_t i = 8; i >= 0; i--) p = p * t + small[i];
        return (float)((double)x * p);
    }
    t = (size - 2.5) / 1.5;
    p = large[20];
    for (int32_t i = 19; i >= 0; i--) p = p * t + large[i];
    return (float)(x < 0.0f ? -p : p);
}

#endif
