#include "rig.h"

enum { N = 10007, ROOM = N + 100 };

static float x[ROOM], y[ROOM], got[ROOM];

TEST(saxpy_equals_a_c_loop_bit_for_bit_and_leaves_the_rest) {
    uint32_t seed = 1, n = N;
    float a = 1.7f;
    for (int i = 0; i < ROOM; i++) {
        x[i] = rig_random(&seed);
        y[i] = rig_random(&seed);
    }
    CUfunction saxpy = rig_kernel(PROGRAMS_FOLDER, "saxpy", "saxpy");
    CUdeviceptr device_x = rig_buffer(x, sizeof x), device_y = rig_buffer(y, sizeof y);
    rig_launch(saxpy, (struct rig_shape){.grid = 40, .block = 256, .iterations = 1},
        (void *[]){&a, &device_x, &device_y, &n});
    rig_read(device_y, got, sizeof got);
    rig_free_all();

    for (int i = 0; i < N; i++) {
        float product = a * x[i];
        y[i] += product;
    }
    assert_memory_equal(y, got, sizeof y);
}

RUN_RIG_TESTS(T(saxpy_equals_a_c_loop_bit_for_bit_and_leaves_the_rest))
