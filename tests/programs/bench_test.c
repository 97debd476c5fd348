#include <math.h>

#include "rig.h"

enum { JOBS = 3, PARAMETERS = 16, SCORES = 4, ENTRIES = 64, ROOM = SCORES + 1 };

static float parameters[JOBS][PARAMETERS], table[ENTRIES], got[JOBS][ROOM];

static double score_of(const float *row, int score) {
    double sum = 0;
    for (int k = 0; k < ENTRIES; k++) sum += (double)row[4 * score + k % 4] * table[k];
    return sum;
}

static void check_scores(int job) {
    for (int i = 0; i < SCORES; i++)
        assert_true(fabs(score_of(parameters[job], i) - got[job][i]) < 1e-5);
    assert_true(got[job][SCORES] == 0);
}

static void fill_inputs(void) {
    uint32_t seed = 1;
    for (int job = 0; job < JOBS; job++)
        for (int i = 0; i < PARAMETERS; i++) parameters[job][i] = rig_random(&seed);
    for (int k = 0; k < ENTRIES; k++) table[k] = rig_random(&seed);
}

TEST(score_equals_sums_in_doubles_and_leaves_the_rest) {
    uint32_t n = ENTRIES;
    fill_inputs();
    CUfunction score = rig_kernel(PROGRAMS_FOLDER, "bench", "score");
    CUdeviceptr row = rig_buffer(parameters[0], sizeof parameters[0]);
    CUdeviceptr all = rig_buffer(table, sizeof table), scores = rig_buffer(NULL, sizeof got[0]);
    rig_launch(score, (struct rig_shape){.grid = 2, .block = 32, .iterations = 1},
        (void *[]){&row, &all, &scores, &n});
    rig_read(scores, got[0], sizeof got[0]);
    rig_free_all();
    check_scores(0);
}

TEST(score_batched_gives_each_row_its_own_scores) {
    uint64_t rows[JOBS][4];
    uint32_t jobs = JOBS;
    fill_inputs();
    CUfunction batched = rig_kernel(PROGRAMS_FOLDER, "bench", "score_batched");
    CUdeviceptr all = rig_buffer(table, sizeof table), scores = rig_buffer(NULL, sizeof got);
    for (int job = 0; job < JOBS; job++) {
        rows[job][0] = rig_buffer(parameters[job], sizeof parameters[job]);
        rows[job][1] = all;
        rows[job][2] = scores + (uint64_t)job * sizeof got[job];
        rows[job][3] = ENTRIES;
    }
    CUdeviceptr device_rows = rig_buffer(rows, sizeof rows);
    rig_launch_3d(batched, (uint32_t[]){1, JOBS + 1, 1}, (uint32_t[]){32, 1, 1}, 0,
        (void *[]){&device_rows, &jobs});
    rig_read(scores, got, sizeof got);
    rig_free_all();
    for (int job = 0; job < JOBS; job++) check_scores(job);
}

RUN_RIG_TESTS(T(score_equals_sums_in_doubles_and_leaves_the_rest),
    T(score_batched_gives_each_row_its_own_scores))
