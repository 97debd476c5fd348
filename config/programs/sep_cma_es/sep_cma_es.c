/**
 * Separable CMA-ES: an evolution strategy that adapts a step size, and a variance for each axis.
 * Ros and Hansen, "A simple modification in CMA-ES achieving linear time and space complexity"
 * (2008); equations and default parameters are those of Hansen, "The CMA evolution strategy: a
 * tutorial" (arXiv:1604.00772), with positive weights, and both learning rates of the covariance
 * times (dimension + 2) / 3 as Ros and Hansen have them.
 *
 * One block is one search, and one launch is one generation: a round. A search begins by itself
 * where its buffers are zeroes, and goes on from what they hold.
 *
 *   state       4 dimension + 1 floats: mean, variances, path of the step size, path of the
 *               covariance, step size
 *   population  of this generation only: lambda points, then their values
 *   normals     of this generation only: lambda times dimension random numbers, which led there
 *   best, loss  the best point so far, and its value
 *   counts      rounds done, the round that found `best`, and why the search has ended: 1 its
 *               target, 2 nothing better for `window` rounds, 3 no numbers to go on with
 *   done        0, or the round after which it was done
 *   seed        random numbers depend on it, the round, the sample and the axis alone
 *   sigma       the first step size, about a third of the range in which the optimum is
 *   low, high   the first mean is between them on each axis; later points may be anywhere
 *   target, window      optimizer.h, which has the objectives, too
 *
 * Results are the same bits for any block. It has threads in x only, and one block is enough: 64
 * threads suit up to about 20 axes. Shared memory: 8 bytes for each sample, and 128.
 */
#include "optimizer.h"

/** Partial sums over the axes. Not one for each thread: additions would depend on the block. */
enum { PARTS = 32 };

struct search {
    float *mean, *variance, *path_sigma, *path_c, *sigma;
    float *population, *values, *normals;
    uint32_t dimension, lambda, round;
    uint64_t seed;
    /* in shared memory */
    float *parts, *weights;
    uint32_t *order; /* the sample of each rank */
};

/** Numbers that depend on dimension and lambda only; the names are the tutorial's. */
struct strategy {
    float weights_sum, mu_eff, c_sigma, d_sigma, c_c, c_1, c_mu, chi;
};

DEVICE uint32_t parents_of(const struct search *search) {
    return search->lambda / 2;
}

DEVICE void begin(const struct search *search, float sigma, float low, float high) {
    for (uint32_t k = thread_x(); k < search->dimension; k += block_dim_x()) {
        float at = uniform_f32(philox4x32(search->seed, 0, k).word[0]);
        search->mean[k] = one_nan_f32(low + (high - low) * at);
        search->variance[k] = 1.0f;
        search->path_sigma[k] = 0.0f;
        search->path_c[k] = 0.0f;
    }
    if (thread_x() == 0) *search->sigma = one_nan_f32(sigma);
}

DEVICE void place(const struct search *search, uint32_t i, uint32_t k, float normal) {
    if (k >= search->dimension) return;
    uint32_t at = i * search->dimension + k;
    float step = *search->sigma * sqrt_f32(search->variance[k]) * normal;
    search->population[at] = one_nan_f32(search->mean[k] + step);
    search->normals[at] = normal;
}

DEVICE void sample(const struct search *search) {
    uint32_t pairs = (search->dimension + 1) / 2;
    for (uint32_t at = thread_x(); at < search->lambda * pairs; at += block_dim_x()) {
        uint32_t i = at / pairs, pair = at % pairs;
        uint64_t counter = (uint64_t)search->round << 32 | i;
        struct philox four = philox4x32(search->seed, counter, pair);
        place(search, i, 2 * pair, normal_f32(four.word[0], four.word[1]));
        place(search, i, 2 * pair + 1, normal_f32(four.word[2], four.word[3]));
    }
}

DEVICE void weigh(const struct search *search) {
    float middle = log_f32(0.5f * (float)(search->lambda + 1));
    for (uint32_t i = thread_x(); i < parents_of(search); i += block_dim_x())
        search->weights[i] = middle - log_f32((float)(i + 1));
}

/** Each thread counts how many samples come before its own. */
DEVICE void rank(const struct search *search) {
    for (uint32_t i = thread_x(); i < search->lambda; i += block_dim_x()) {
        uint32_t own = place_of_f32(search->values[i]), rank = 0;
        for (uint32_t j = 0; j < search->lambda; j++) {
            uint32_t other = place_of_f32(search->values[j]);
            rank += other < own || (other == own && j < i);
        }
        search->order[rank] = i;
    }
}

DEVICE struct strategy strategy_of(const struct search *search) {
    struct strategy of = {.weights_sum = 0.0f};
    float n = (float)search->dimension, squares = 0.0f, faster = (n + 2.0f) / 3.0f;
    for (uint32_t i = 0; i < parents_of(search); i++) {
        of.weights_sum += search->weights[i];
        squares += search->weights[i] * search->weights[i];
    }
    float mu_eff = of.weights_sum * of.weights_sum / squares;
    float excess = sqrt_f32((mu_eff - 1.0f) / (n + 1.0f)) - 1.0f;
    float of_mu = 2.0f * (mu_eff - 1.75f + 1.0f / mu_eff) / ((n + 2.0f) * (n + 2.0f) + mu_eff);
    of.mu_eff = mu_eff;
    of.c_sigma = (mu_eff + 2.0f) / (n + mu_eff + 5.0f);
    of.d_sigma = 1.0f + 2.0f * max_f32(0.0f, excess) + of.c_sigma;
    of.c_c = (4.0f + mu_eff / n) / (n + 4.0f + 2.0f * mu_eff / n);
    of.c_1 = min_f32(1.0f, faster * 2.0f / ((n + 1.3f) * (n + 1.3f) + mu_eff));
    of.c_mu = min_f32(1.0f - of.c_1, faster * of_mu);
    of.chi = sqrt_f32(n) * (1.0f - 0.25f / n + 1.0f / (21.0f * n * n));
    return of;
}

/** Weighted means over the parents' steps on an axis, as normals. Not taken from the points: near
 * the end of a search they are rounded to fewer steps, or to none. */
struct steps {
    float mean, square;
};

DEVICE struct steps steps_of(const struct search *search, const struct strategy *with, uint32_t k) {
    struct steps of = {0.0f, 0.0f};
    for (uint32_t rank = 0; rank < parents_of(search); rank++) {
        float step = search->normals[search->order[rank] * search->dimension + k];
        float weight = search->weights[rank] / with->weights_sum;
        of.mean += weight * step;
        of.square += weight * step * step;
    }
    return of;
}

DEVICE void adapt_path_sigma(const struct search *search, const struct strategy *with) {
    float keep = 1.0f - with->c_sigma;
    float gain = sqrt_f32(with->c_sigma * (2.0f - with->c_sigma) * with->mu_eff);
    for (uint32_t k = thread_x(); k < search->dimension; k += block_dim_x()) {
        float step = steps_of(search, with, k).mean;
        search->path_sigma[k] = one_nan_f32(keep * search->path_sigma[k] + gain * step);
    }
}

/** How long the path of the step size is. All threads of the block call it. */
DEVICE float length_of_path(const struct search *search) {
    for (uint32_t part = thread_x(); part < PARTS; part += block_dim_x()) {
        float sum = 0.0f;
        for (uint32_t k = part; k < search->dimension; k += PARTS)
            sum += search->path_sigma[k] * search->path_sigma[k];
        search->parts[part] = sum;
    }
    barrier();
    float sum = 0.0f;
    for (uint32_t part = 0; part < PARTS; part++) sum += search->parts[part];
    return sqrt_f32(sum);
}

/** Whether the path is no longer than chance makes it; else the covariance must not follow it. */
DEVICE bool is_steady(const struct search *search, const struct strategy *with, float length) {
    float n = (float)search->dimension;
    float unseen = pow_f32(1.0f - with->c_sigma, 2.0f * (float)search->round);
    return length / sqrt_f32(1.0f - unseen) < (1.4f + 2.0f / (n + 1.0f)) * with->chi;
}

DEVICE void adapt_axes(const struct search *search, const struct strategy *with, float length) {
    float follow = is_steady(search, with, length) ? 1.0f : 0.0f;
    float c_c = with->c_c, gain = follow * sqrt_f32(c_c * (2.0f - c_c) * with->mu_eff);
    float keep = 1.0f - with->c_1 - with->c_mu + (1.0f - follow) * with->c_1 * c_c * (2.0f - c_c);
    for (uint32_t k = thread_x(); k < search->dimension; k += block_dim_x()) {
        struct steps steps = steps_of(search, with, k);
        float before = search->variance[k], step = sqrt_f32(before) * steps.mean;
        float path = one_nan_f32((1.0f - c_c) * search->path_c[k] + gain * step);
        float variance = keep * before + with->c_1 * path * path;
        search->path_c[k] = path;
        search->variance[k] = one_nan_f32(variance + with->c_mu * before * steps.square);
        search->mean[k] = one_nan_f32(search->mean[k] + *search->sigma * step);
    }
}

DEVICE struct search arrange(
    float *state, float *population, float *normals, uint32_t dimension, uint32_t lambda) {
    SHARED(float, shared);
    struct search search = {.dimension = dimension, .lambda = lambda};
    search.mean = state;
    search.variance = search.mean + dimension;
    search.path_sigma = search.variance + dimension;
    search.path_c = search.path_sigma + dimension;
    search.sigma = search.path_c + dimension;
    search.population = population;
    search.values = population + lambda * dimension;
    search.normals = normals;
    search.parts = shared;
    search.weights = shared + PARTS;
    search.order = (uint32_t *)(search.weights + lambda);
    return search;
}

/** From the samples and their order: the next mean, variances and step size. */
DEVICE void adapt(const struct search *search, float *next_sigma) {
    struct strategy with = strategy_of(search);
    adapt_path_sigma(search, &with);
    barrier();
    float length = length_of_path(search);
    adapt_axes(search, &with, length);
    float change = with.c_sigma / with.d_sigma * (length / with.chi - 1.0f);
    *next_sigma = one_nan_f32(*search->sigma * exp_f32(change));
}

BATCHED_KERNEL(sep_cma_es, (float *)state, (float *)population, (float *)normals, (float *)best,
    (float *)loss, (uint32_t *)counts, (uint32_t *)done, (uint32_t)objective, (uint32_t)dimension,
    (uint32_t)lambda, (uint64_t)seed, (float)sigma, (float)low, (float)high, (float)target,
    (uint32_t)window) {
    if (!is_live(done)) return;
    struct ending ending = {loss, counts, done, target, window};
    struct search search = arrange(state, population, normals, dimension, lambda);
    search.seed = seed;
    search.round = counts[ROUNDS] + 1;
    if (search.round == 1) {
        begin_search(&ending);
        begin(&search, sigma, low, high);
    }
    barrier();
    sample(&search);
    weigh(&search);
    barrier();
    evaluate(objective, search.population, search.values, lambda, dimension);
    barrier();
    rank(&search);
    barrier();
    uint32_t first = search.order[0];
    float found = search.values[first], next_sigma;
    if (is_better(&ending, found))
        for (uint32_t k = thread_x(); k < dimension; k += block_dim_x())
            best[k] = search.population[first * dimension + k];
    adapt(&search, &next_sigma);
    finish_round(
        &ending, search.round, found, !(next_sigma > 0.0f && next_sigma < KERNEL_INFINITY));
    if (thread_x() == 0) *search.sigma = next_sigma; /* no thread reads the old one any more */
}
