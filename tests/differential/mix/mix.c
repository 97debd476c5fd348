/**
 * Kernels whose results model.py states exactly: integers, bytes and bits, no rounding. Each shows
 * a different part of a launch: element by element, byte ranges, shared memory, positions, scalars.
 */
#include "kernel.h"

DEVICE void add_multiple(uint32_t *y, const uint32_t *x, uint32_t k, uint32_t n) {
    uint32_t i = global_x();
    if (i < n) y[i] += k * x[i];
}

KERNEL(add_u32, (uint32_t *)y, (const uint32_t *)x, (uint32_t)k, (uint32_t)n) {
    add_multiple(y, x, k, n);
}

struct add_row {
    ROW_FIELD uint32_t *y;
    ROW_FIELD const uint32_t *x;
    ROW_FIELD uint32_t k;
    ROW_FIELD uint32_t n;
};

KERNEL(add_u32_batched, (const struct add_row *)rows, (uint32_t)jobs) {
    if (block_y() >= jobs) return;
    const struct add_row *row = &rows[block_y()];
    add_multiple(row->y, row->x, row->k, row->n);
}

KERNEL(xor_shift, (uint32_t *)y, (uint32_t)n) {
    uint32_t i = global_x();
    if (i >= n) return;
    uint32_t value = y[i];
    value ^= value << 13;
    value ^= value >> 17;
    value ^= value << 5;
    y[i] = value;
}

KERNEL(scale_u64, (uint64_t *)y, (uint64_t)factor, (int64_t)addend, (uint32_t)n) {
    uint32_t i = global_x();
    if (i < n) y[i] = y[i] * factor + (uint64_t)addend;
}

KERNEL(reverse, (uint32_t *)y, (const uint32_t *)x, (uint32_t)n) {
    uint32_t i = global_x();
    if (i < n) y[n - 1 - i] = x[i];
}

/** Adds the table, again and again, to y. */
KERNEL(gather, (uint32_t *)y, (const uint32_t *)table, (uint32_t)table_n, (uint32_t)n) {
    uint32_t i = global_x();
    if (i < n) y[i] += table[i % table_n];
}

KERNEL(copy_range, (uint8_t *)to, (uint64_t)to_offset, (const uint8_t *)from, (uint64_t)from_offset,
    (uint64_t)n) {
    uint64_t i = global_x();
    if (i < n) to[to_offset + i] = from[from_offset + i];
}

DEVICE void turn_block(uint32_t *y, uint32_t n) {
    SHARED(uint32_t, turned);
    uint32_t start = block_x() * block_dim_x();
    uint32_t rest = start < n ? n - start : 0;
    uint32_t count = rest < block_dim_x() ? rest : block_dim_x();
    uint32_t i = thread_x();
    if (i < count) turned[count - 1 - i] = y[start + i];
    barrier();
    if (i < count) y[start + i] = turned[i];
}

/** Turns each block's elements around, through shared memory: 4 bytes a thread. */
KERNEL(reverse_blocks, (uint32_t *)y, (uint32_t)n) {
    turn_block(y, n);
}

struct reverse_row {
    ROW_FIELD uint32_t *y;
    ROW_FIELD uint32_t n;
};

KERNEL(reverse_blocks_batched, (const struct reverse_row *)rows, (uint32_t)jobs) {
    if (block_y() >= jobs) return;
    turn_block(rows[block_y()].y, rows[block_y()].n);
}

DEVICE void turn_out(const uint32_t *y, uint32_t *scratch, uint32_t n) {
    uint32_t i = global_x();
    if (i < n) scratch[i] = y[i];
}

DEVICE void turn_in(uint32_t *y, const uint32_t *scratch, uint32_t n) {
    uint32_t i = global_x();
    if (i < n) y[n - 1 - i] = scratch[i] + 1;
}

/** Turns all of y around and adds 1: the second half needs all of the first, of all blocks. */
KERNEL(turn, (uint32_t *)y, (uint32_t *)scratch, (uint32_t *)word, (uint32_t)n) {
    turn_out(y, scratch, n);
    grid_barrier(word);
    turn_in(y, scratch, n);
}

KERNEL(turn_first, (uint32_t *)y, (uint32_t *)scratch, (uint32_t *)word, (uint32_t)n) {
    (void)word;
    turn_out(y, scratch, n);
}

KERNEL(turn_second, (uint32_t *)y, (uint32_t *)scratch, (uint32_t *)word, (uint32_t)n) {
    (void)word;
    turn_in(y, scratch, n);
}

/** Each thread of up to three dimensions adds where it is, and k, to an element of its own. */
KERNEL(positions, (uint32_t *)y, (uint32_t)k, (uint32_t)n) {
    uint32_t block = (block_z() * grid_dim_y() + block_y()) * grid_dim_x() + block_x();
    uint32_t thread = (thread_z() * block_dim_y() + thread_y()) * block_dim_x() + thread_x();
    uint32_t i = block * block_dim_x() * block_dim_y() * block_dim_z() + thread;
    if (i >= n) return;
    y[i] += k + thread_x() + (thread_y() << 4) + (thread_z() << 8) + (block_x() << 12) +
            (block_y() << 20) + (block_z() << 26);
}

DEVICE uint64_t bits_of_f64(double value) {
    union {
        double value;
        uint64_t bits;
    } both;
    both.value = value;
    return both.bits;
}

struct scalars_row {
    ROW_FIELD uint64_t *y;
    ROW_FIELD uint32_t a;
    ROW_FIELD int32_t b;
    ROW_FIELD uint64_t c;
    ROW_FIELD int64_t d;
    ROW_FIELD float e;
    ROW_FIELD double f;
};

/** Adds each argument's bits to an element of its own, signed ones widened with their sign. */
DEVICE void add_bits(const struct scalars_row *row) {
    if (global_x() != 0) return;
    row->y[0] += row->a;
    row->y[1] += (uint64_t)(int64_t)row->b;
    row->y[2] += row->c;
    row->y[3] += (uint64_t)row->d;
    row->y[4] += bits_of_f32(row->e);
    row->y[5] += bits_of_f64(row->f);
}

KERNEL(
    scalars, (uint64_t *)y, (uint32_t)a, (int32_t)b, (uint64_t)c, (int64_t)d, (float)e, (double)f) {
    const struct scalars_row row = {y, a, b, c, d, e, f};
    add_bits(&row);
}

KERNEL(scalars_batched, (const struct scalars_row *)rows, (uint32_t)jobs) {
    if (block_y() < jobs) add_bits(&rows[block_y()]);
}

/** y = words[i % 4], from a block by value and from one in a buffer. */
struct four_words {
    uint32_t words[4];
};

KERNEL(words_by_value, (uint32_t *)y, (uint32_t)n, (struct four_words)block) {
    uint32_t i = global_x();
    if (i < n) y[i] += block.words[i % 4];
}

DEVICE void add_words(uint32_t *y, uint32_t n, const uint32_t *words) {
    uint32_t i = global_x();
    if (i < n) y[i] += words[i % 4];
}

KERNEL(words_in_buffer, (uint32_t *)y, (uint32_t)n, (const uint32_t *)words) {
    add_words(y, n, words);
}

struct words_row {
    ROW_FIELD uint32_t *y;
    ROW_FIELD uint32_t n;
    ROW_FIELD const uint32_t *words;
};

KERNEL(words_in_buffer_batched, (const struct words_row *)rows, (uint32_t)jobs) {
    if (block_y() >= jobs) return;
    const struct words_row *row = &rows[block_y()];
    add_words(row->y, row->n, row->words);
}

/* A round of a long job: draws a number, until as many were drawn as `last` says; with 0 for ever.
 */
DEVICE void draw_number(uint32_t *state, uint32_t *done, uint32_t last) {
    if (global_x() != 0 || done[0] != 0) return;
    state[0]++;
    state[1] = state[1] * 1664525u + 1013904223u;
    if (state[0] == last) done[0] = last;
}

BATCHED_KERNEL(draw, (uint32_t *)state, (uint32_t *)done, (uint32_t)last) {
    draw_number(state, done, last);
}

KERNEL(draw_alone, (uint32_t *)state, (uint32_t *)done, (uint32_t)last) {
    draw_number(state, done, last);
}
