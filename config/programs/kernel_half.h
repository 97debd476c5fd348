/**
 * FP16 and BF16, as the 16 bits that buffers of these types hold. To float is exact; from float
 * rounds to the nearest (ties to even). Only integer operations are used, so the bits are the same
 * everywhere.
 */
#ifndef KERNEL_HALF_H
#define KERNEL_HALF_H

#include "kernel.h"

DEVICE float f32_of_f16(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 0x1f;
    uint32_t fraction = half & 0x3ff;
    if (exponent == 0x1f) return f32_of_bits(sign | 0x7f800000 | fraction << 13);
    if (exponent == 0)
        return f32_of_bits(sign | bits_of_f32((float)fraction * 0x1p-24f)); /* exact */
    return f32_of_bits(sign | (exponent + 112) << 23 | fraction << 13);
}

DEVICE uint16_t f16_of_f32(float x) {
    uint32_t bits = bits_of_f32(x), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
    if (size > 0x7f800000) return (uint16_t)(sign | 0x7e00);
    if (size >= 0x477ff000) return (uint16_t)(sign | 0x7c00); /* from 65520 on */
    if (size < 0x38800000) /* subnormal: the last place of 0.5 is the last place of these */
        return (uint16_t)(sign | (bits_of_f32(f32_of_bits(size) + 0.5f) - 0x3f000000));
    return (uint16_t)(sign | ((size + 0xfff + (size >> 13 & 1)) - 0x38000000) >> 13);
}

DEVICE float f32_of_bf16(uint16_t bf16) {
    return f32_of_bits((uint32_t)bf16 << 16);
}

DEVICE uint16_t bf16_of_f32(float x) {
    uint32_t bits = bits_of_f32(x);
    if (x != x) return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

#endif
