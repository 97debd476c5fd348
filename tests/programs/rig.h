/**
 * A device for tests of kernels, through the driver table. GPU_WORKER_TEST_DRIVER says which
 * driver: cpu (the default) or cuda. Whatever goes wrong in here fails the test that runs.
 */
#ifndef TESTS_PROGRAMS_RIG_H
#define TESTS_PROGRAMS_RIG_H

#include "gpu/driver.h"
#include "testing.h"

struct rig_shape {
    uint32_t grid, block;
    uint32_t shared_bytes;
    uint32_t iterations;
};

/** Group set-up and tear-down: the driver, a context and a stream. */
int rig_open(void **state);
int rig_close(void **state);

/** An entry of FOLDER/PROGRAM/, which stays loaded until rig_close(), with all shared memory of the
 * device allowed. `program` is a literal. */
CUfunction rig_kernel(const char *folder, const char *program, const char *entry);

/** Device memory until rig_free_all(): a copy of `data`, or zeroes for NULL. */
CUdeviceptr rig_buffer(const void *data, size_t bytes);
void rig_read(CUdeviceptr from, void *to, size_t bytes);
void rig_free_all(void);

/** Launches and waits. `args` are pointers to the arguments' values. */
void rig_launch(CUfunction kernel, struct rig_shape shape, void **args);
void rig_launch_3d(CUfunction kernel, const uint32_t grid[3], const uint32_t block[3],
    uint32_t shared_bytes, void **args);

/** Floats in [-1, 1) from a fixed sequence. */
float rig_random(uint32_t *seed);

#define RUN_RIG_TESTS(...)                                                                         \
    TEST_MAIN() {                                                                                  \
        const struct CMUnitTest tests[] = {__VA_ARGS__};                                           \
        return cmocka_run_group_tests(tests, rig_open, rig_close);                                 \
    }

#endif
