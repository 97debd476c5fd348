/**
 * Logistic regression by full-batch Adam, in one block.
 *
 * logreg_adam: one launch is one iteration; the job's `iterations` say how many.
 * logreg_metrics: loss and accuracy of the weights, as a second step of the job.
 *
 *   x        rows x features, row-major, standardised by the sender
 *   y        rows labels, 0 or 1
 *   weights  features, then the bias. Start with zeroes, or with weights to train on
 *   moments  2 (features + 1) + 2 floats: Adam's averages of the gradient, of its square, and of a
 *            constant 1 with each of the two decays. Start with zeroes
 *   metrics  loss = mean log loss + l2 / 2 |w|^2 without the bias; share of rows predicted right
 *
 * Where many jobs share a launch, a block trains up to TRAININGS of them that have the same x and
 * y, so that what it reads of x serves them all: on an H200, 3 times as many jobs a second as one
 * by one. Each of them gets the bits that it gets alone: the order of additions depends only on the
 * block size.
 *
 * Shared memory: logreg_adam needs 16384 bytes, and 32 for each thread or for each column
 * (features + 1), whichever are more. logreg_metrics needs two floats for each thread.
 */
#include "kernel.h"

enum { TILE_ROWS = 1024, TRAININGS = 4 };

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

/** A column of a row of the tile: a feature, or 1 for the bias. */
DEVICE float input_at(const float *x, uint32_t row, uint32_t column, uint32_t features) {
    return column < features ? x[(uint64_t)row * features + column] : 1.0f;
}

DEVICE float moving_average(float decay, float average, float value) {
    return decay * average + (1.0f - decay) * value;
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
};

/** One value for each training of a block. */
struct __attribute__((aligned(16))) values {
    float of[TRAININGS];
};

/** residuals[row]: predicted less wanted, for `tile` rows. */
DEVICE void predict(const float *x, const float *y, uint32_t tile, uint32_t features,
    const struct values *weights, struct values *residuals) {
    for (uint32_t i = thread_x(); i < tile; i += block_dim_x()) {
        const float *row = x + (uint64_t)i * features;
        struct values z = weights[features];
        for (uint32_t j = 0; j < features; j++) {
            struct values weight = weights[j];
            for (uint32_t k = 0; k < TRAININGS; k++) z.of[k] += weight.of[k] * row[j];
        }
        for (uint32_t k = 0; k < TRAININGS; k++) z.of[k] = sigmoid(z.of[k]) - y[i];
        residuals[i] = z;
    }
}

/**
 * For every column, adds residual times input over the tile's rows to `groups` partial sums:
 * partial[group][column] has every groups-th row.
 */
DEVICE void sum_gradient(const float *x, uint32_t tile, uint32_t features, uint32_t groups,
    const struct values *residuals, struct values *partial) {
    uint32_t columns = features + 1;
    for (uint32_t cell = thread_x(); cell < groups * columns; cell += block_dim_x()) {
        struct values sum = partial[cell];
        for (uint32_t i = cell / columns; i < tile; i += groups) {
            struct values residual = residuals[i];
            float input = input_at(x, i, cell % columns, features);
            for (uint32_t k = 0; k < TRAININGS; k++) sum.of[k] += residual.of[k] * input;
        }
        partial[cell] = sum;
    }
}

/** Adam's step for one weight, of which `sum` is the gradient of the loss over all rows. */
DEVICE void step(const struct adam_row *job, uint32_t j, float weight, float sum) {
    uint32_t columns = job->features + 1;
    float *mean = job->moments + j;
    float *square = mean + columns;
    /* Averages start at 0 and are too small at first. The average of a constant 1 is too small by
     * the same factor. All threads read the old ones, and `train` writes the new ones later. */
    const float *ones = job->moments + 2 * (uint64_t)columns;
    float mean_of_ones = moving_average(MEAN_DECAY, ones[0], 1.0f);
    float square_of_ones = moving_average(SQUARE_DECAY, ones[1], 1.0f);
    float gradient = sum / (float)job->rows + (j < job->features ? job->l2 * weight : 0.0f);
    *mean = moving_average(MEAN_DECAY, *mean, gradient);
    *square = moving_average(SQUARE_DECAY, *square, gradient * gradient);
    job->weights[j] = weight - job->learning_rate * (*mean / mean_of_ones) /
                                   (sqrt_f32(*square / square_of_ones) + EPSILON);
}

/** One iteration of `count` jobs, at most TRAININGS, that share x, y and their sizes. Inlined, or
 * the compiler would not know that the values are in shared memory. */
DEVICE __attribute__((always_inline)) void train(const struct adam_row *jobs, uint32_t count) {
    const float *x = jobs->x, *y = jobs->y;
    uint32_t rows = jobs->rows, features = jobs->features, columns = features + 1;
    uint32_t groups = block_dim_x() > columns ? block_dim_x() / columns : 1;
    SHARED(struct values, residuals);
    struct values *weights = residuals + TILE_ROWS;
    struct values *partial = weights + columns;
    struct values zero = {{0.0f}};
    for (uint32_t j = thread_x(); j < columns; j += block_dim_x())
        for (uint32_t k = 0; k < TRAININGS; k++)
            weights[j].of[k] = k < count ? jobs[k].weights[j] : 0.0f;
    for (uint32_t cell = thread_x(); cell < groups * columns; cell += block_dim_x())
        partial[cell] = zero;
    barrier();

    /* 64 bits: with nearly 2^32 rows, 32 bits would overflow to the first tile */
    for (uint64_t first = 0; first < rows; first += TILE_ROWS) {
        uint32_t tile = min_u32(rows - (uint32_t)first, TILE_ROWS);
        const float *tile_x = x + first * features;
        predict(tile_x, y + first, tile, features, weights, residuals);
        barrier();
        sum_gradient(tile_x, tile, features, groups, residuals, partial);
        barrier();
    }

    for (uint32_t cell = thread_x(); cell < columns * count; cell += block_dim_x()) {
        uint32_t k = cell / columns, j = cell % columns;
        float sum = 0.0f;
        for (uint32_t group = 0; group < groups; group++) sum += partial[group * columns + j].of[k];
        step(&jobs[k], j, weights[j].of[k], sum);
    }
    barrier();
    for (uint32_t k = thread_x(); k < count; k += block_dim_x()) {
        float *ones = jobs[k].moments + 2 * (uint64_t)columns;
        ones[0] = moving_average(MEAN_DECAY, ones[0], 1.0f);
        ones[1] = moving_average(SQUARE_DECAY, ones[1], 1.0f);
    }
}

DEVICE bool share_data(const struct adam_row *jobs, uint32_t count) {
    for (uint32_t k = 1; k < count; k++)
        if (jobs[k].x != jobs->x || jobs[k].y != jobs->y || jobs[k].rows != jobs->rows ||
            jobs[k].features != jobs->features)
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
    (float)learning_rate, (float)l2, (uint32_t)rows, (uint32_t)features) {
    struct adam_row job = {x, y, weights, moments, learning_rate, l2, rows, features};
    train(&job, 1);
}

KERNEL(logreg_adam_batched, (const struct adam_row *)table, (uint32_t)jobs) {
    uint32_t first = block_y() * TRAININGS;
    if (first >= jobs) return;
    uint32_t count = min_u32(jobs - first, TRAININGS);
    uint32_t together = share_data(&table[first], count) ? count : 1;
    for (uint32_t k = 0; k < count; k += together) {
        train(&table[first + k], together);
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
