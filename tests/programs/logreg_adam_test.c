#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rig.h"

struct data {
    uint32_t rows, features;
    float *x, *y;
};

struct model {
    double *weights;
    double loss, accuracy;
};

struct settings {
    float learning_rate, l2;
    uint32_t epochs;
};

static float *floats(size_t count) {
    float *array = calloc(count, sizeof *array);
    assert_non_null(array);
    return array;
}

static double *doubles(size_t count) {
    double *array = calloc(count, sizeof *array);
    assert_non_null(array);
    return array;
}

static void data_fini(struct data *data) {
    free(data->x);
    free(data->y);
}

/** Each column with mean 0 and variance 1. */
static void standardise(struct data *data) {
    for (uint32_t j = 0; j < data->features; j++) {
        double sum = 0.0, squares = 0.0;
        for (uint32_t i = 0; i < data->rows; i++) sum += data->x[i * data->features + j];
        double mean = sum / data->rows;
        for (uint32_t i = 0; i < data->rows; i++)
            squares += pow(data->x[i * data->features + j] - mean, 2.0);
        double deviation = sqrt(squares / data->rows);
        for (uint32_t i = 0; i < data->rows; i++) {
            float *x = &data->x[i * data->features + j];
            *x = (float)((*x - mean) / deviation);
        }
    }
}

static struct data breast_cancer(void) {
    struct data data = {0};
    FILE *file = fopen(EXAMPLES_FOLDER "/breast_cancer.csv", "r");
    assert_non_null(file);
    assert_int_equal(2, fscanf(file, "%u,%u,%*[^\n]", &data.rows, &data.features));
    data.x = floats((size_t)data.rows * data.features);
    data.y = floats(data.rows);
    for (uint32_t i = 0; i < data.rows; i++) {
        for (uint32_t j = 0; j < data.features; j++)
            assert_int_equal(1, fscanf(file, "%f,", &data.x[i * data.features + j]));
        assert_int_equal(1, fscanf(file, "%f", &data.y[i]));
    }
    fclose(file);
    standardise(&data);
    return data;
}

/** Rows that a plane through the origin nearly separates. */
static struct data synthetic(uint32_t rows, uint32_t features) {
    struct data data = {.rows = rows,
        .features = features,
        .x = floats((size_t)rows * features),
        .y = floats(rows)};
    uint32_t seed = 3;
    for (uint32_t i = 0; i < rows; i++) {
        float side = 0.3f * rig_random(&seed);
        for (uint32_t j = 0; j < features; j++) {
            float value = rig_random(&seed);
            data.x[i * features + j] = value;
            side += j % 2 == 0 ? value : -value;
        }
        data.y[i] = side > 0.0f ? 1.0f : 0.0f;
    }
    standardise(&data);
    return data;
}

static double logit(const struct data *data, const double *weights, uint32_t row) {
    double z = weights[data->features];
    for (uint32_t j = 0; j < data->features; j++)
        z += weights[j] * data->x[row * data->features + j];
    return z;
}

static void measure(const struct data *data, float l2, struct model *model) {
    double loss = 0.0, penalty = 0.0;
    uint32_t right = 0;
    for (uint32_t i = 0; i < data->rows; i++) {
        double z = logit(data, model->weights, i);
        loss += fmax(z, 0.0) + log1p(exp(-fabs(z))) - data->y[i] * z;
        right += (z > 0.0) == (data->y[i] > 0.5f);
    }
    for (uint32_t j = 0; j < data->features; j++) penalty += pow(model->weights[j], 2.0);
    model->loss = loss / data->rows + (double)l2 / 2 * penalty;
    model->accuracy = (double)right / data->rows;
}

/** scripts/python/logreg_reference.py in C. The caller frees the weights. */
static struct model train_reference(const struct data *data, struct settings settings) {
    uint32_t columns = data->features + 1;
    double *weights = doubles(columns), *gradient = doubles(columns);
    double *mean = doubles(columns), *square = doubles(columns);
    for (uint32_t step = 1; step <= settings.epochs; step++) {
        for (uint32_t j = 0; j < columns; j++)
            gradient[j] = j < data->features ? (double)settings.l2 * weights[j] : 0.0;
        for (uint32_t i = 0; i < data->rows; i++) {
            double residual = 1.0 / (1.0 + exp(-logit(data, weights, i))) - data->y[i];
            for (uint32_t j = 0; j < columns; j++) {
                double input = j < data->features ? data->x[i * data->features + j] : 1.0;
                gradient[j] += residual * input / data->rows;
            }
        }
        for (uint32_t j = 0; j < columns; j++) {
            mean[j] = 0.9 * mean[j] + 0.1 * gradient[j];
            square[j] = 0.999 * square[j] + 0.001 * gradient[j] * gradient[j];
            double unbiased_mean = mean[j] / (1.0 - pow(0.9, step));
            double unbiased_square = square[j] / (1.0 - pow(0.999, step));
            weights[j] -=
                (double)settings.learning_rate * unbiased_mean / (sqrt(unbiased_square) + 1e-8);
        }
    }
    free(gradient);
    free(mean);
    free(square);
    struct model model = {.weights = weights};
    measure(data, settings.l2, &model);
    return model;
}

struct training {
    CUdeviceptr x, y, weights, moments, metrics;
    uint32_t columns;
};

static struct training start(const struct data *data) {
    uint32_t columns = data->features + 1;
    return (struct training){
        .x = rig_buffer(data->x, (size_t)data->rows * data->features * sizeof(float)),
        .y = rig_buffer(data->y, data->rows * sizeof(float)),
        .weights = rig_buffer(NULL, columns * sizeof(float)),
        .moments = rig_buffer(NULL, (2 * columns + 2) * sizeof(float)),
        .metrics = rig_buffer(NULL, 2 * sizeof(float)),
        .columns = columns};
}

/** Of shared memory: room for few rows, or for all of the breast cancer data. */
enum { SMALL_ROOM = 16384, LARGE_ROOM = 114688 };

/** One launch. */
static void train(struct training *training, const struct data *data, struct settings settings,
    uint32_t block, uint32_t shared_bytes) {
    uint32_t rows = data->rows, features = data->features;
    rig_launch(rig_kernel(PROGRAMS_FOLDER, "logreg_adam", "logreg_adam"),
        (struct rig_shape){
            .grid = 1, .block = block, .shared_bytes = shared_bytes, .iterations = 1},
        (void *[]){&training->x, &training->y, &training->weights, &training->moments,
            &settings.learning_rate, &settings.l2, &rows, &features, &settings.epochs});
}

/** The trained model in the caller's `weights`. */
static void finish(struct training *training, const struct data *data, float l2, float *weights,
    float metrics[2]) {
    uint32_t rows = data->rows, features = data->features;
    rig_launch(rig_kernel(PROGRAMS_FOLDER, "logreg_adam", "logreg_metrics"),
        (struct rig_shape){.grid = 1, .block = 256, .shared_bytes = 2048, .iterations = 1},
        (void *[]){&training->x, &training->y, &training->weights, &training->metrics, &l2, &rows,
            &features});
    rig_read(training->weights, weights, training->columns * sizeof(float));
    rig_read(training->metrics, metrics, 2 * sizeof(float));
    rig_free_all();
}

static double norm(const double *weights, uint32_t count) {
    double squares = 0.0;
    for (uint32_t j = 0; j < count; j++) squares += weights[j] * weights[j];
    return sqrt(squares);
}

static uint32_t different_predictions(
    const struct data *data, const double *one, const double *other) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < data->rows; i++)
        count += (logit(data, one, i) > 0.0) != (logit(data, other, i) > 0.0);
    return count;
}

static void assert_trains_like_the_reference(
    const struct data *data, struct settings settings, uint32_t block, uint32_t shared_bytes) {
    uint32_t columns = data->features + 1;
    struct model expected = train_reference(data, settings);
    float *weights = floats(columns), metrics[2];
    struct training training = start(data);
    train(&training, data, settings, block, shared_bytes);
    finish(&training, data, settings.l2, weights, metrics);

    double *got = doubles(columns);
    for (uint32_t j = 0; j < columns; j++) got[j] = weights[j];
    double norm_error = fabs(norm(got, columns) / norm(expected.weights, columns) - 1.0);
    double loss_error = fabs(metrics[0] / expected.loss - 1.0);
    print_message("rate %g l2 %g: loss %.6f (off by %.1e), norm off by %.1e\n",
        (double)settings.learning_rate, (double)settings.l2, (double)metrics[0], loss_error,
        norm_error);
    assert_true(norm_error < 1e-3);
    assert_true(loss_error < 1e-3);
    assert_true(fabs((double)metrics[1] - expected.accuracy) < 1.5 / data->rows);
    assert_in_range(different_predictions(data, got, expected.weights), 0, 1);
    free(got);
    free(weights);
    free(expected.weights);
}

/* loss and norm as scripts/python/logreg_reference.py prints them for 300 iterations: the two
 * references are one. */
TEST(the_reference_agrees_with_numpy) {
    static const struct {
        struct settings settings;
        double loss, norm;
    } printed[] = {
        {{0.001f, 0.0f, 300}, 0.183950037, 0.941889597},
        {{0.1f, 0.0f, 300}, 0.044179895, 6.588494450},
        {{0.01f, 0.1f, 300}, 0.196747805, 1.262341293},
    };
    struct data data = breast_cancer();
    for (size_t i = 0; i < sizeof printed / sizeof *printed; i++) {
        struct model model = train_reference(&data, printed[i].settings);
        assert_true(fabs(model.loss - printed[i].loss) < 1e-6);
        assert_true(fabs(norm(model.weights, data.features + 1) - printed[i].norm) < 1e-5);
        free(model.weights);
    }
    data_fini(&data);
}

TEST(three_hundred_epochs_match_float64_over_rates_and_penalties) {
    static const float rates[] = {1e-3f, 1e-2f, 3e-2f, 1e-1f};
    static const float penalties[] = {0.0f, 1e-3f, 1e-1f};
    struct data data = breast_cancer();
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
        for (size_t j = 0; j < sizeof penalties / sizeof *penalties; j++)
            assert_trains_like_the_reference(
                &data, (struct settings){rates[i], penalties[j], 300}, 256, LARGE_ROOM);
    data_fini(&data);
}

TEST(more_rows_than_a_tile_and_more_columns_than_threads_work_too) {
    struct data data = synthetic(2500, 40);
    assert_trains_like_the_reference(&data, (struct settings){1e-2f, 1e-3f, 50}, 32, SMALL_ROOM);
    data_fini(&data);
}

/* The least that the manifest's bound lets a step ask for: 132 bytes for each feature, and 296. */
TEST(a_tile_of_one_row_works_too) {
    struct data data = synthetic(70, 40);
    assert_trains_like_the_reference(
        &data, (struct settings){1e-2f, 1e-3f, 20}, 32, 132 * 40 + 296);
    data_fini(&data);
    data = synthetic(70, 1);
    assert_trains_like_the_reference(&data, (struct settings){1e-2f, 1e-3f, 20}, 64, 132 + 296);
    data_fini(&data);
}

TEST(two_halves_of_a_training_are_the_whole_bit_for_bit) {
    struct data data = breast_cancer();
    float whole[31], halves[31], metrics[2];
    struct training training = start(&data);
    train(&training, &data, (struct settings){1e-2f, 1e-3f, 20}, 128, LARGE_ROOM);
    finish(&training, &data, 1e-3f, whole, metrics);

    training = start(&data);
    train(&training, &data, (struct settings){1e-2f, 1e-3f, 10}, 128, LARGE_ROOM);
    train(&training, &data, (struct settings){1e-2f, 1e-3f, 10}, 128, LARGE_ROOM);
    finish(&training, &data, 1e-3f, halves, metrics);
    assert_memory_equal(whole, halves, sizeof whole);
    data_fini(&data);
}

enum { JOBS = 13, BLOCK = 64, COLUMNS = 31, MOMENTS = 2 * COLUMNS + 2 };

/** As the worker lays out the arguments of one job of a launch. */
struct row {
    uint64_t x, y, weights, moments;
    float learning_rate;
    uint32_t pad_1;
    float l2;
    uint32_t pad_2;
    uint64_t rows, features, epochs;
};

static struct settings settings_of(int job) {
    return (struct settings){0.01f * (float)(job + 1), 1e-3f, 20};
}

/** Trains JOBS models in shared launches. Every third job reads `other`. */
static void train_together(
    const struct data *data, const struct data *other, float weights[JOBS][COLUMNS]) {
    const uint64_t bytes = (uint64_t)data->rows * (COLUMNS - 1) * sizeof(float);
    const CUdeviceptr x[] = {rig_buffer(data->x, bytes), rig_buffer(other->x, bytes)};
    const CUdeviceptr y = rig_buffer(data->y, data->rows * sizeof(float));
    uint32_t jobs = JOBS;
    struct row table[JOBS];
    for (int i = 0; i < JOBS; i++)
        table[i] = (struct row){.x = x[i % 3 == 2],
            .y = y,
            .weights = rig_buffer(NULL, sizeof weights[i]),
            .moments = rig_buffer(NULL, MOMENTS * sizeof(float)),
            .learning_rate = settings_of(i).learning_rate,
            .l2 = settings_of(i).l2,
            .rows = data->rows,
            .features = COLUMNS - 1,
            .epochs = settings_of(i).epochs};
    CUdeviceptr rows = rig_buffer(table, sizeof table);
    CUfunction batched = rig_kernel(PROGRAMS_FOLDER, "logreg_adam", "logreg_adam_batched");
    rig_launch_3d(batched, (uint32_t[]){1, JOBS + 1, 1}, (uint32_t[]){BLOCK, 1, 1}, LARGE_ROOM,
        (void *[]){&rows, &jobs});
    for (int i = 0; i < JOBS; i++)
        rig_read((CUdeviceptr)table[i].weights, weights[i], sizeof weights[i]);
    rig_free_all();
}

static void assert_same_bits_as_alone(const struct data *data, const struct data *other) {
    float together[JOBS][COLUMNS], alone[COLUMNS];
    train_together(data, other, together);
    for (int i = 0; i < JOBS; i++) {
        struct training training = start(i % 3 == 2 ? other : data);
        train(&training, data, settings_of(i), BLOCK, LARGE_ROOM);
        rig_read(training.weights, alone, sizeof alone);
        rig_free_all();
        assert_memory_equal(alone, together[i], sizeof alone);
    }
}

TEST(jobs_of_one_launch_get_the_bits_that_each_gets_alone) {
    struct data data = breast_cancer();
    assert_same_bits_as_alone(&data, &data);
    data_fini(&data);
}

TEST(jobs_of_one_launch_that_have_other_data_do_not_meet) {
    struct data data = breast_cancer(), other = breast_cancer();
    for (uint32_t i = 0; i < other.rows * other.features; i++) other.x[i] = -0.5f * other.x[i];
    assert_same_bits_as_alone(&data, &other);
    data_fini(&data);
    data_fini(&other);
}

RUN_RIG_TESTS(T(the_reference_agrees_with_numpy),
    T(three_hundred_epochs_match_float64_over_rates_and_penalties),
    T(more_rows_than_a_tile_and_more_columns_than_threads_work_too), T(a_tile_of_one_row_works_too),
    T(two_halves_of_a_training_are_the_whole_bit_for_bit),
    T(jobs_of_one_launch_get_the_bits_that_each_gets_alone),
    T(jobs_of_one_launch_that_have_other_data_do_not_meet))
