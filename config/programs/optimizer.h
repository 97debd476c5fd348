/**
 * What the optimizers among the programs share: objectives, the order of their values, and when a
 * search ends. A search has one block, and a round of it is one launch.
 *
 * An objective of your own: a function like sphere(), with a case in objective_of(). Its number is
 * what jobs give as `objective`; let `between` of the manifest include it. Data that it reads comes
 * as an argument of the kernel in the place of `objective`, since a kernel has at most 16.
 */
#ifndef OPTIMIZER_H
#define OPTIMIZER_H

#include "kernel.h"

enum { SPHERE, ROSENBROCK, RASTRIGIN, ELLIPSOID };

DEVICE float sphere(const float *x, uint32_t dimension) {
    float sum = 0.0f;
    for (uint32_t k = 0; k < dimension; k++) sum += x[k] * x[k];
    return sum;
}

/** A curved valley to (1, ..., 1). */
DEVICE float rosenbrock(const float *x, uint32_t dimension) {
    float sum = 0.0f;
    for (uint32_t k = 0; k + 1 < dimension; k++) {
        float off = x[k] * x[k] - x[k + 1], apart = 1.0f - x[k];
        sum += 100.0f * off * off + apart * apart;
    }
    return sum;
}

/** About 11^dimension minima, one near each point of whole numbers. The sum of x^2 + 10 (1 - cos(2
 * pi x)): with the sine, nothing is lost near 0. */
DEVICE float rastrigin(const float *x, uint32_t dimension) {
    float sum = 0.0f;
    for (uint32_t k = 0; k < dimension; k++) {
        float wave = sin_f32(0x1.921fb6p+1f * x[k]);
        sum += x[k] * x[k] + 20.0f * wave * wave;
    }
    return sum;
}

/** A sphere whose last axis is 1000 times as steep as the first. */
DEVICE float ellipsoid(const float *x, uint32_t dimension) {
    const float log_million = 0x1.ba18aap+3f;
    float sum = 0.0f, step = dimension > 1 ? log_million / (float)(dimension - 1) : 0.0f;
    for (uint32_t k = 0; k < dimension; k++) sum += exp_f32(step * (float)k) * x[k] * x[k];
    return sum;
}

/** What is to be small, at the point x. NaN says that x has no value: it comes after all others. */
DEVICE float objective_of(uint32_t objective, const float *x, uint32_t dimension) {
    switch (objective) {
    case SPHERE: return sphere(x, dimension);
    case ROSENBROCK: return rosenbrock(x, dimension);
    case RASTRIGIN: return rastrigin(x, dimension);
    case ELLIPSOID: return ellipsoid(x, dimension);
    default: return KERNEL_NAN;
    }
}

/** x, where every NaN has the same bits. A GPU and a CPU make NaNs of different ones. */
DEVICE float one_nan_f32(float x) {
    return x == x ? x : KERNEL_NAN;
}

/** Numbers in the order of the values, that of NaN last: so each value has a place among others. */
DEVICE uint32_t place_of_f32(float value) {
    uint32_t bits = bits_of_f32(value);
    if (value != value) return 0xffffffff;
    return bits >> 31 ? ~bits : bits | 0x80000000;
}

/** values[i] is the objective at point i: a thread for each point, so that the bits are the same
 * for any block. */
DEVICE void evaluate(
    uint32_t objective, const float *points, float *values, uint32_t count, uint32_t dimension) {
    for (uint32_t i = thread_x(); i < count; i += block_dim_x())
        values[i] = one_nan_f32(objective_of(objective, points + i * dimension, dimension));
}

/** What `counts` of a search holds: rounds that were done, the round that found the best value, and
 * why the search has ended. */
enum { ROUNDS, IMPROVED, REASON };
enum { LIVE, REACHED, STAGNATED, BROKEN };

/** Of one search: its best value, its counts, its flag, and what ends it. */
struct ending {
    float *loss;
    uint32_t *counts, *done;
    float target;
    uint32_t window;
};

DEVICE void begin_search(const struct ending *of) {
    if (thread_x() == 0) *of->loss = KERNEL_INFINITY;
    if (thread_x() == 0) of->counts[IMPROVED] = 0;
}

/** Whether a round has found a better value than all before it. */
DEVICE bool is_better(const struct ending *of, float found) {
    return place_of_f32(found) < place_of_f32(*of->loss);
}

/**
 * Ends a round that has found this value at best. The search ends if its best value is at most the
 * target; if the last `window` rounds have found nothing better (a window of 0: never); if all that
 * a round found is NaN; or if the optimizer `is_broken`: it has no numbers to go on with. All
 * threads of the block call it.
 */
DEVICE void finish_round(const struct ending *of, uint32_t round, float found, bool is_broken) {
    uint32_t improved = is_better(of, found) ? round : of->counts[IMPROVED], reason = LIVE;
    float loss = is_better(of, found) ? found : *of->loss;
    if (of->window > 0 && round - improved >= of->window) reason = STAGNATED;
    if (found != found || is_broken) reason = BROKEN;
    if (loss <= of->target) reason = REACHED;
    end_round(of->done, round, reason != LIVE, found); /* behind its barrier nobody reads */
    if (thread_x() != 0) return;
    *of->loss = loss;
    of->counts[ROUNDS] = round;
    of->counts[IMPROVED] = improved;
    of->counts[REASON] = reason;
}

#endif
