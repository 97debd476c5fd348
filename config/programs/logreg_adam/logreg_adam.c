/**
 * Logistic regression by full-batch Adam, in one block.
 *
 * logreg_adam: `epochs` passes over the data, each with one step of Adam. Weights and moments carry
 * a training from one launch to the next.
 * logreg_metrics: loss and accuracy of the weights, as a second step of the job.
 *
 *   x        rows x features, row-major, standardised by the sender
 *   y        rows labels, 0 or 1
 *   weights  features, then the bias. Start with zeroes, or with weights to train on
 *   moments  2 (features + 1) + 2 floats: Adam's averages of the gradient, of its square, and of a
 *            constant 1 with each of the two decays. Start with zeroes
 *   metrics  loss = mean log loss + l2 / 2 |w|^2 without the bias; share of rows predicted right
 *
 * A block works on a tile of rows in shared memory. If all rows fit, they are read only once.
 * Where many jobs share a launch, a block trains up to TRAININGS of them that have the same x and
 * y, so that its tile serves them all. Each of them gets the bits that it gets alone: the order of
 * additions depends only on the block's size and its shared memory.
 *
 * Shared memory: logreg_adam needs 132 bytes for each feature and 296 more. It is fastest where all
 * rows fit, with 4 (features + 2) + 32 bytes for each, and 64 bytes for each thread; with few rows,
 * more blocks run side by side if a step asks for less than the manifest's most.
 * logreg_metrics needs two floats for each thread.
 */
#include "kernel.h"

/* A block trains so many at once; and a thread works on so many rows or columns at once, which
 * share what it reads of each training: the GPU multiplies faster than it reads shared memory. */
enum { TRAININGS = 8, PAIR = 2 };

#define MEAN_DECAY 0.9f
#define SQUARE_DECAY 0.999f
#define EPSILON 1e-8f

/** The log-odds of label 1. */
DEVICE float logit(const float *row, const float *weights, uint32_t features) {
    float z = weights[features];
    for (uint32_t j = 0; j < features; j++) z += weights[j] * row[j];
    return z;
}

DEVICE float sigmoid(float z) {
    return 1.0f / (1.0f + exp_f32(-z));
}

/** log(1 + e^z), without overflow. */
DEVICE float softplus(float z) {
    return z > 0.0f ? z + log_f32(1.0f + exp_f32(-z)) : log_f32(1.0f + exp_f32(z));
}

DEVICE float moving_average(float decay, float average, float value) {
    return fma_f32(decay, average, (1.0f - decay) * value);
}

struct adam_row {
    ROW_FIELD const float *x;
    ROW_FIELD const float *y;
    ROW_FIELD float *weights;
    ROW_FIELD float *moments;
    ROW_FIELD float learning_rate;
    ROW_FIELD float l2;
    ROW_FIELD uint32_t rows;
    ROW_FIELD uint32_t features;
    ROW_FIELD uint32_t epochs;
};

/** One value for each training of a block. */
struct __attribute__((aligned(16))) values {
    float of[TRAININGS];
};

/** A weight, and Adam's averages of its gradient and of the gradient's square. */
struct column {
    struct values weight, mean, square;
};

/** What a block keeps in shared memory. */
struct room {
    struct column *columns;   /* the features, the bias, and the averages of a constant 1 */
    struct values *partial;   /* gradients: group g has the sums over every groups-th row from g */
    struct values *residuals; /* one for each row of the tile: predicted less wanted */
    float *tile;              /* rows of x, each with a 1 behind it for the bias */
    uint32_t stride;          /* floats from a row to the next */
    uint32_t groups;
    uint32_t tile_rows;
};

DEVICE uint32_t pairs_of(uint32_t columns) {
    return (columns + PAIR - 1) / PAIR;
}

DEVICE struct room arrange(uint32_t features) {
    SHARED(struct column, shared);
    struct room room = {.columns = shared};
    /* Odd, so that threads that read the same column of 32 rows read from 32 banks. */
    room.stride = (features + 1) | 1;
    room.partial = (struct values *)(room.columns + features + 2);
    uint32_t one_group = room.stride * (uint32_t)sizeof(struct values);
    room.groups = min_u32(block_dim_x() / pairs_of(room.stride), shared_bytes() / 4 / one_group);
    room.groups = max_u32(room.groups, 1);
    room.residuals = room.partial + room.groups * room.stride;
    uint32_t one_row = room.stride * (uint32_t)sizeof(float) + (uint32_t)sizeof(struct values);
    uint32_t used = (features + 2) * (uint32_t)sizeof(struct column) + room.groups * one_group;
    room.tile_rows = (shared_bytes() - used) / one_row;
    room.tile = (float *)(room.residuals + room.tile_rows);
    return room;
}

/** Where Adam's averages of column j are among a job's moments; those of the constant come last. */
DEVICE uint32_t mean_index(uint32_t columns, uint32_t j) {
    return j < columns ? j : 2 * columns;
}
DEVICE uint32_t square_index(uint32_t columns, uint32_t j) {
    return columns + j + (j < columns ? 0 : 1);
}

DEVICE void load_columns(const struct room *room, const struct adam_row *jobs, uint32_t count) {
    uint32_t columns = jobs->features + 1;
    for (uint32_t cell = thread_x(); cell < (columns + 1) * TRAININGS; cell += block_dim_x()) {
        uint32_t j = cell / TRAININGS, k = cell % TRAININGS;
        const struct adam_row *job = &jobs[k < count ? k : 0];
        struct column *column = &room->columns[j];
        column->weight.of[k] = j < columns ? job->weights[j] : 0.0f;
        column->mean.of[k] = job->moments[mean_index(columns, j)];
        column->square.of[k] = job->moments[square_index(columns, j)];
    }
}

DEVICE void store_columns(const struct room *room, const struct adam_row *jobs, uint32_t count) {
    uint32_t columns = jobs->features + 1;
    for (uint32_t cell = thread_x(); cell < (columns + 1) * TRAININGS; cell += block_dim_x()) {
        uint32_t j = cell / TRAININGS, k = cell % TRAININGS;
        if (k >= count) continue;
        const struct column *column = &room->columns[j];
        if (j < columns) jobs[k].weights[j] = column->weight.of[k];
        jobs[k].moments[mean_index(columns, j)] = column->mean.of[k];
        jobs[k].moments[square_index(columns, j)] = column->square.of[k];
    }
}

DEVICE void load_tile(const struct room *room, const float *x, uint32_t rows, uint32_t features) {
    uint32_t stride = room->stride, row = thread_x() / stride, column = thread_x() % stride;
    for (uint32_t at = thread_x(); at < rows * stride; at += block_dim_x()) {
        float bias = column == features ? 1.0f : 0.0f;
        room->tile[at] = column < features ? x[row * features + column] : bias;
        row += block_dim_x() / stride;
        column += block_dim_x() % stride;
        if (column < stride) continue;
        column -= stride;
        row++;
    }
}

/** Adds `factor` times the values of `width` trainings. */
DEVICE void add_product(float *sum, const struct values *values, float factor, uint32_t width) {
    struct values all;
    if (width == 1) all.of[0] = values->of[0];
    else all = *values; /* few wide loads instead of many */
    UNROLL(TRAININGS)
    for (uint32_t k = 0; k < width; k++) sum[k] = fma_f32(all.of[k], factor, sum[k]);
}

DEVICE void store(struct values *to, const float *from, uint32_t width) {
    struct values all;
    UNROLL(TRAININGS)
    for (uint32_t k = 0; k < width; k++) all.of[k] = from[k];
    if (width == 1) to->of[0] = all.of[0];
    else *to = all;
}

/** The residuals of the tile's rows. */
DEVICE void predict(
    const struct room *room, const float *y, uint32_t rows, uint32_t features, uint32_t width) {
    for (uint32_t first = thread_x(); first < rows; first += PAIR * block_dim_x()) {
        const float *row[PAIR];
        float z[PAIR][TRAININGS] = {{0.0f}};
        UNROLL(PAIR)
        for (uint32_t p = 0; p < PAIR; p++) {
            row[p] = room->tile + min_u32(first + p * block_dim_x(), rows - 1) * room->stride;
            add_product(z[p], &room->columns[features].weight, 1.0f, width);
        }
        UNROLL(4)
        for (uint32_t j = 0; j < features; j++) {
            UNROLL(PAIR)
            for (uint32_t p = 0; p < PAIR; p++)
                add_product(z[p], &room->columns[j].weight, row[p][j], width);
        }
        UNROLL(PAIR)
        for (uint32_t p = 0; p < PAIR; p++) {
            uint32_t i = first + p * block_dim_x();
            if (i >= rows) continue;
            float label = y[i];
            UNROLL(TRAININGS)
            for (uint32_t k = 0; k < width; k++) z[p][k] = sigmoid(z[p][k]) - label;
            store(&room->residuals[i], z[p], width);
        }
    }
}

/** Residual times input, summed over the tile's rows for every column, in `groups` parts. */
DEVICE void sum_gradient(const struct room *room, uint32_t rows, bool is_first, uint32_t width) {
    uint32_t pairs = pairs_of(room->stride), cells = room->groups * pairs;
    for (uint32_t cell = thread_x(); cell < cells; cell += block_dim_x()) {
        uint32_t group = cell / pairs, first = cell % pairs * PAIR;
        uint32_t count = (rows + room->groups - 1 - group) / room->groups;
        const struct values *residual = room->residuals + group;
        const float *row = room->tile + group * room->stride;
        struct values *partial = room->partial + group * room->stride;
        uint32_t column[PAIR];
        float sum[PAIR][TRAININGS] = {{0.0f}};
        UNROLL(PAIR)
        for (uint32_t p = 0; p < PAIR; p++) column[p] = min_u32(first + p, room->stride - 1);
        UNROLL(4)
        for (uint32_t i = 0; i < count; i++) {
            UNROLL(PAIR)
            for (uint32_t p = 0; p < PAIR; p++)
                add_product(sum[p], residual, row[column[p]], width);
            residual += room->groups;
            row += room->groups * room->stride;
        }
        UNROLL(PAIR)
        for (uint32_t p = 0; p < PAIR; p++) {
            if (first + p >= room->stride) continue;
            if (!is_first) add_product(sum[p], &partial[first + p], 1.0f, width);
            store(&partial[first + p], sum[p], width);
        }
    }
}

/** Adam's step for the weight of column j of training k. */
DEVICE void step(const struct room *room, const struct adam_row *job, uint32_t j, uint32_t k) {
    struct column *column = &room->columns[j];
    const struct column *ones = &room->columns[job->features + 1];
    float sum = 0.0f;
    for (uint32_t group = 0; group < room->groups; group++)
        sum += room->partial[group * room->stride + j].of[k];
    float penalty = j < job->features ? job->l2 * column->weight.of[k] : 0.0f;
    float gradient = sum / (float)job->rows + penalty;
    float mean = moving_average(MEAN_DECAY, column->mean.of[k], gradient);
    float square = moving_average(SQUARE_DECAY, column->square.of[k], gradient * gradient);
    /* Averages start at 0 and are too small at first. The average of a constant 1 is too small by
     * the same factor. */
    column->weight.of[k] -= job->learning_rate * (mean / ones->mean.of[k]) /
                            (sqrt_f32(square / ones->square.of[k]) + EPSILON);
    column->mean.of[k] = mean;
    column->square.of[k] = square;
}

/** One epoch of `count` jobs, at most `width`. */
DEVICE void train_epoch(const struct room *room, const struct adam_row *jobs, uint32_t count,
    uint32_t width, bool is_first) {
    uint32_t rows = jobs->rows, features = jobs->features;
    struct column *ones = &room->columns[features + 1];
    for (uint32_t k = thread_x(); k < count; k += block_dim_x()) {
        ones->mean.of[k] = moving_average(MEAN_DECAY, ones->mean.of[k], 1.0f);
        ones->square.of[k] = moving_average(SQUARE_DECAY, ones->square.of[k], 1.0f);
    }
    /* 64 bits: with nearly 2^32 rows, 32 bits would overflow to the first tile */
    for (uint64_t first = 0; first < rows; first += room->tile_rows) {
        uint32_t tile = min_u32(rows - (uint32_t)first, room->tile_rows);
        if (is_first || rows > room->tile_rows) {
            load_tile(room, jobs->x + first * features, tile, features);
            barrier();
        }
        predict(room, jobs->y + first, tile, features, width);
        barrier();
        sum_gradient(room, tile, first == 0, width);
        barrier();
    }
    /* Neighbours have the same column of different trainings: they read from different banks. */
    for (uint32_t cell = thread_x(); cell < (features + 1) * TRAININGS; cell += block_dim_x())
        if (cell % TRAININGS < count)
            step(room, &jobs[cell % TRAININGS], cell / TRAININGS, cell % TRAININGS);
    barrier();
}

/** Trains `count` jobs, at most `width`, that share x, y, their sizes and epochs. Inlined, or the
 * compiler would not know that the room is in shared memory, nor the width. */
DEVICE __attribute__((always_inline)) void train(
    const struct adam_row *jobs, uint32_t count, uint32_t width) {
    struct room room = arrange(jobs->features);
    load_columns(&room, jobs, count);
    barrier();
    for (uint32_t epoch = 0; epoch < jobs->epochs; epoch++)
        train_epoch(&room, jobs, count, width, epoch == 0);
    store_columns(&room, jobs, count);
}

DEVICE bool share_data(const struct adam_row *jobs, uint32_t count) {
    for (uint32_t k = 1; k < count; k++)
        if (jobs[k].x != jobs->x || jobs[k].y != jobs->y || jobs[k].rows != jobs->rows ||
            jobs[k].features != jobs->features || jobs[k].epochs != jobs->epochs)
            return false;
    return true;
}

DEVICE void measure(const float *x, const float *y, const float *weights, float *metrics, float l2,
    uint32_t rows, uint32_t features) {
    SHARED(float, losses); /* one for each thread */
    float *hits = losses + block_dim_x();
    float loss = 0.0f, right = 0.0f;
    for (uint64_t i = thread_x(); i < rows; i += block_dim_x()) {
        float z = logit(x + i * features, weights, features);
        loss += softplus(z) - y[i] * z;
        right += (z > 0.0f) == (y[i] > 0.5f) ? 1.0f : 0.0f;
    }
    losses[thread_x()] = loss;
    hits[thread_x()] = right;
    block_sum_f32(losses);
    block_sum_f32(hits);
    if (thread_x() != 0) return;

    float penalty = 0.0f;
    for (uint32_t j = 0; j < features; j++) penalty += weights[j] * weights[j];
    metrics[0] = losses[0] / (float)rows + 0.5f * l2 * penalty;
    metrics[1] = hits[0] / (float)rows;
}

KERNEL(logreg_adam, (const float *)x, (const float *)y, (float *)weights, (float *)moments,
    (float)learning_rate, (float)l2, (uint32_t)rows, (uint32_t)features, (uint32_t)epochs) {
    struct adam_row job = {x, y, weights, moments, learning_rate, l2, rows, features, epochs};
    train(&job, 1, 1);
}

KERNEL(logreg_adam_batched, (const struct adam_row *)table, (uint32_t)jobs) {
    uint32_t first = block_y() * TRAININGS;
    if (first >= jobs) return;
    uint32_t count = min_u32(jobs - first, TRAININGS);
    if (share_data(&table[first], count)) {
        train(&table[first], count, TRAININGS);
        return;
    }
    for (uint32_t k = 0; k < count; k++) {
        train(&table[first + k], 1, 1);
        barrier();
    }
}

KERNEL(logreg_metrics, (const float *)x, (const float *)y, (const float *)weights, (float *)metrics,
    (float)l2, (uint32_t)rows, (uint32_t)features) {
    measure(x, y, weights, metrics, l2, rows, features);
}

struct metrics_row {
    ROW_FIELD const float *x;
    ROW_FIELD const float *y;
    ROW_FIELD const float *weights;
    ROW_FIELD float *metrics;
    ROW_FIELD float l2;
    ROW_FIELD uint32_t rows;
    ROW_FIELD uint32_t features;
};

KERNEL(logreg_metrics_batched, (const struct metrics_row *)table, (uint32_t)jobs) {
    if (block_y() >= jobs) return;
    const struct metrics_row *row = &table[block_y()];
    measure(row->x, row->y, row->weights, row->metrics, row->l2, row->rows, row->features);
}
