/**
 * A generator of random numbers without a state: Philox4x32-10 (Salmon et al., "Parallel random
 * numbers: as easy as 1, 2, 3", 2011). The same key and counter give the same four words, on any
 * thread of any device. Use one key for each run, and one counter for each thread and draw.
 */
#ifndef KERNEL_RANDOM_H
#define KERNEL_RANDOM_H

#include "kernel.h"

struct philox {
    uint32_t word[4];
};

DEVICE struct philox philox4x32(uint64_t key, uint64_t counter, uint64_t counter_high) {
    struct philox of;
    uint32_t low = (uint32_t)key, high = (uint32_t)(key >> 32);
    of.word[0] = (uint32_t)counter;
    of.word[1] = (uint32_t)(counter >> 32);
    of.word[2] = (uint32_t)counter_high;
    of.word[3] = (uint32_t)(counter_high >> 32);
    for (uint32_t round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xd2511f53 * of.word[0], b = (uint64_t)0xcd9e8d57 * of.word[2];
        uint32_t w1 = of.word[1], w3 = of.word[3];
        of.word[0] = (uint32_t)(b >> 32) ^ w1 ^ low;
        of.word[1] = (uint32_t)b;
        of.word[2] = (uint32_t)(a >> 32) ^ w3 ^ high;
        of.word[3] = (uint32_t)a;
        low += 0x9e3779b9;
        high += 0xbb67ae85;
    }
    return of;
}

/** From 0 (included) to 1 (excluded), a multiple of 2^-24. */
DEVICE float uniform_f32(uint32_t word) {
    return (float)(word >> 8) * 0x1p-24f;
}

/** A number of the normal distribution, of two words (Box and Muller). */
DEVICE float normal_f32(uint32_t first, uint32_t second) {
    float above_zero = ((float)(first >> 8) + 1.0f) * 0x1p-24f;
    return sqrt_f32(-2.0f * log_f32(above_zero)) * cos_f32(0x1.921fb6p+2f * uniform_f32(second));
}

#endif
