/**
 * What `gpu-worker bench` runs: nothing at all and z = x + y, with and without coalescing, and four
 * scores of 16 parameters against a shared table; and rounds of a long job.
 */
#include "kernel.h"

KERNEL(nothing, (uint32_t)word) {
    (void)word; /* a kernel has a parameter at least */
}

KERNEL(nothing_coalesced, (uint32_t)word) {
    (void)word;
}

struct nothing_row {
    ROW_FIELD uint32_t word;
};

KERNEL(nothing_batched, (const struct nothing_row *)rows, (uint32_t)jobs) {
    (void)rows, (void)jobs;
}

DEVICE void add_elements(const float *x, const float *y, float *z, uint32_t n) {
    uint32_t i = global_x();
    if (i < n) z[i] = x[i] + y[i];
}

KERNEL(add, (const float *)x, (const float *)y, (float *)z, (uint32_t)n) {
    add_elements(x, y, z, n);
}

KERNEL(add_coalesced, (const float *)x, (const float *)y, (float *)z, (uint32_t)n) {
    add_elements(x, y, z, n);
}

struct add_row {
    ROW_FIELD const float *x;
    ROW_FIELD const float *y;
    ROW_FIELD float *z;
    ROW_FIELD uint32_t n;
};

KERNEL(add_batched, (const struct add_row *)rows, (uint32_t)jobs) {
    if (block_y() >= jobs) return;
    const struct add_row *row = &rows[block_y()];
    add_elements(row->x, row->y, row->z, row->n);
}

/* Four threads have a score each. */
DEVICE void score_parameters(
    const float *parameters, const float *table, float *scores, uint32_t n) {
    uint32_t i = global_x();
    if (i >= 4) return;
    float sum = 0;
    for (uint32_t k = 0; k < n; k++) sum += parameters[4 * i + k % 4] * table[k];
    scores[i] = sum;
}

KERNEL(score, (const float *)parameters, (const float *)table, (float *)scores, (uint32_t)n) {
    score_parameters(parameters, table, scores, n);
}

struct score_row {
    ROW_FIELD const float *parameters;
    ROW_FIELD const float *table;
    ROW_FIELD float *scores;
    ROW_FIELD uint32_t n;
};

KERNEL(score_batched, (const struct score_row *)rows, (uint32_t)jobs) {
    if (block_y() >= jobs) return;
    const struct score_row *row = &rows[block_y()];
    score_parameters(row->parameters, row->table, row->scores, row->n);
}

/* A round of a long job: each thread draws numbers, and the first one counts rounds, until there
 * are as many as `last` says. */
DEVICE void draw_numbers(uint32_t *numbers, uint32_t *rounds, uint32_t *done, const uint32_t *last,
    uint32_t n, uint32_t turns) {
    uint32_t i = thread_x(), is_done = done[0], number = i < n ? numbers[i] : 0;
    barrier();
    if (is_done != 0 || block_x() != 0) return;
    for (uint32_t k = 0; k < turns; k++) number = number * 1664525u + 1013904223u;
    if (i < n) numbers[i] = number;
    if (i != 0) return;
    rounds[0]++;
    if (rounds[0] == last[0]) done[0] = last[0];
}

BATCHED_KERNEL(draw, (uint32_t *)numbers, (uint32_t *)rounds, (uint32_t *)done,
    (const uint32_t *)last, (uint32_t)n, (uint32_t)turns) {
    draw_numbers(numbers, rounds, done, last, n, turns);
}
