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
 * Shared memory: logreg_adam needs TILE_ROWS floats, and one for each thread or for each column
 * (features + 1), the larger of the two. logreg_metrics needs two floats for each thread. The order
 * of additions depends only on the block size.
 */
#include "kernel.h"

enum { TILE_ROWS = 1024 };

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

/**
 * For every column, sums residual times input over all rows, into `groups` partial sums:
 * partial[group * columns + column] has every groups-th row. Ends with a barrier.
 */
DEVICE void sum_gradient(const float *x, const float *y, const float *weights, uint32_t rows,
    uint32_t features, uint32_t groups, float *residuals, float *partial) {
    uint32_t columns = features + 1;
    for (uint32_t cell = thread_x(); cell < groups * columns; cell += block_dim_x())
        partial[cell] = 0.0f;

    /* 64 bits: with nearly 2^32 rows, 32 bits would overflow to the first tile */
    for (uint64_t first = 0; first < rows; first += TILE_ROWS) {
        uint32_t tile = min_u32(rows - (uint32_t)first, TILE_ROWS);
        const float *tile_x = x + first * features;
        for (uint32_t i = thread_x(); i < tile; i += block_dim_x())
            residuals[i] =
                sigmoid(logit(tile_x + (uint64_t)i * features, weights, features)) - y[first + i];
        barrier();

        for (uint32_t cell = thread_x(); cell < groups * columns; cell += block_dim_x()) {
            float sum = partial[cell];
            for (uint32_t i = cell / columns; i < tile; i += groups)
                sum += residuals[i] * input_at(tile_x, i, cell % columns, features);
            partial[cell] = sum;
        }
        barrier();
    }
}

DEVICE void train(const float *x, const float *y, float *weights, float *moments,
    float learning_rate, float l2, uint32_t rows, uint32_t features) {
    SHARED(float, residuals);
    float *partial = residuals + TILE_ROWS;
    uint32_t columns = features + 1;
    uint32_t groups = block_dim_x() > columns ? block_dim_x() / columns : 1;
    float *means = moments;
    float *squares = moments + columns;
    float *ones = moments + 2 * (uint64_t)columns;
    /* Averages start at 0 and are too small at first. The average of a constant 1 is too small by
     * the same factor. All threads read the old averages before the barriers, and one thread writes
     * the new ones after them. */
    float mean_of_ones = moving_average(MEAN_DECAY, ones[0], 1.0f);
    float square_of_ones = moving_average(SQUARE_DECAY, ones[1], 1.0f);

    sum_gradient(x, y, weights, rows, features, groups, residuals, partial);

    for (uint32_t j = thread_x(); j < columns; j += block_dim_x()) {
        float sum = 0.0f;
        for (uint32_t group = 0; group < groups; group++) sum += partial[group * columns + j];
        float gradient = sum / (float)rows + (j < features ? l2 * weights[j] : 0.0f);
        means[j] = moving_average(MEAN_DECAY, means[j], gradient);
        squares[j] = moving_average(SQUARE_DECAY, squares[j], gradient * gradient);
        float mean = means[j] / mean_of_ones;
        float square = squares[j] / square_of_ones;
        weights[j] -= learning_rate * mean / (sqrt_f32(square) + EPSILON);
    }
    if (thread_x() == 0) {
        ones[0] = mean_of_ones;
        ones[1] = square_of_ones;
    }
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
    train(x, y, weights, moments, learning_rate, l2, rows, features);
}

KERNEL(logreg_metrics, (const float *)x, (const float *)y, (const float *)weights, (float *)metrics,
    (float)l2, (uint32_t)rows, (uint32_t)features) {
    measure(x, y, weights, metrics, l2, rows, features);
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

KERNEL(logreg_adam_batched, (const struct adam_row *)table, (uint32_t)jobs) {
    if (block_y() >= jobs) return;
    const struct adam_row *row = &table[block_y()];
    train(row->x, row->y, row->weights, row->moments, row->learning_rate, row->l2, row->rows,
        row->features);
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
