/**
 * exp, log, sqrt and fused multiply-add for floats. All are IEEE operations in a fixed order, and
 * the compiler fuses none by itself (the build's flags): the same bits on the GPU and on the CPU.
 * exp and log are within 1 ulp of the true value; sqrt and fma are correctly rounded. The
 * coefficients are minimax fits of our own, rounded to float.
 */
#ifndef KERNEL_MATH_H
#define KERNEL_MATH_H

#include "kernel.h"

/* ln 2 in two parts. The high one has 15 bits, so that its product with an exponent is exact. */
#define KERNEL_LN2_HIGH 0x1.62e4p-1f
#define KERNEL_LN2_LOW 0x1.7f7d1cp-20f

DEVICE uint32_t bits_of_f32(float value) {
    union {
        float value;
        uint32_t bits;
    } both;
    both.value = value;
    return both.bits;
}

DEVICE float f32_of_bits(uint32_t bits) {
    union {
        uint32_t bits;
        float value;
    } both;
    both.bits = bits;
    return both.value;
}

/** 2^exponent for exponents of normal numbers: -126 to 127. */
DEVICE float power_of_two_f32(int32_t exponent) {
    return f32_of_bits((uint32_t)(exponent + 127) << 23);
}

/** a * b + c, rounded once. A CPU without an instruction for it (x86-64 before 2013) is slow here.
 */
DEVICE float fma_f32(float a, float b, float c) {
#ifdef KERNEL_ON_NVCC
    return __fmaf_rn(a, b, c);
#else
    return __builtin_fmaf(a, b, c);
#endif
}

/**
 * Cody and Waite: x = n ln 2 + r with |r| <= ln 2 / 2, then e^x = 2^n e^r, where
 * e^r = 1 + r + r^2 P(r). Without branches, so that loops over it become vectors on the CPU, and
 * the exponentials of one thread overlap on the GPU.
 */
DEVICE float exp_f32(float x) {
    /* e^89 is above the largest float, and e^-104 below half of the smallest. */
    float bounded = x < 89.0f ? x : 89.0f;
    bounded = bounded > -104.0f ? bounded : -104.0f;

    /* Adding 1.5 * 2^23 leaves no bits below one: it rounds to the nearest integer. */
    float shifted = fma_f32(bounded, 0x1.715476p+0f, 0x1.8p+23f), n = shifted - 0x1.8p+23f;
    float r = fma_f32(n, -KERNEL_LN2_LOW, fma_f32(n, -KERNEL_LN2_HIGH, bounded));
    float p = 0x1.6a2434p-10f;
    p = fma_f32(p, r, 0x1.1239e2p-7f);
    p = fma_f32(p, r, 0x1.5558f2p-5f);
    p = fma_f32(p, r, 0x1.555492p-3f);
    p = fma_f32(p, r, 0x1.fffffcp-2f);
    p = 1.0f + fma_f32(r * r, p, r);

    /* In two steps: 2^n alone may be above the largest float or below the smallest normal one. */
    int32_t exponent = (int32_t)(bits_of_f32(shifted) - bits_of_f32(0x1.8p+23f));
    int32_t half = exponent >> 1;
    float power = p * power_of_two_f32(half) * power_of_two_f32(exponent - half);
    return x == x ? power : x;
}

/**
 * x = 2^n (1 + f) with 1 + f between sqrt(1/2) and sqrt(2), then log x = n ln 2 + log(1 + f), where
 * with s = f / (2 + f) and z = s^2, log(1 + f) = 2 atanh(s) = f - s (f - z Q(z)).
 */
DEVICE float log_f32(float x) {
    if (x != x || x == f32_of_bits(0x7f800000)) return x;
    if (x == 0.0f) return f32_of_bits(0xff800000);
    if (x < 0.0f) return f32_of_bits(0x7fc00000);

    int32_t n = 0;
    if (x < 0x1p-126f) { /* a subnormal: make it a normal number first */
        x *= 0x1p+23f;
        n = -23;
    }
    const uint32_t sqrt_half_bits = 0x3f3504f3;
    int32_t exponent = (int32_t)(bits_of_f32(x) - sqrt_half_bits) >> 23;
    float f = f32_of_bits(bits_of_f32(x) - ((uint32_t)exponent << 23)) - 1.0f;
    float s = f / (2.0f + f);
    float z = s * s;
    float q = 0x1.e2f7ep-3f;
    q = q * z + 0x1.2438cep-2f;
    q = q * z + 0x1.999a7ap-2f;
    q = q * z + 0x1.555554p-1f;

    float m = (float)(n + exponent);
    return m * KERNEL_LN2_HIGH + (f - (s * (f - z * q) - m * KERNEL_LN2_LOW));
}

DEVICE float sqrt_f32(float x) {
#ifdef KERNEL_ON_NVCC
    return __fsqrt_rn(x);
#else
    return __builtin_sqrtf(x);
#endif
}

#endif
