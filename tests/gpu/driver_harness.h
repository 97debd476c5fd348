/**
 * A device for tests of a driver. GPU_WORKER_TEST_DRIVER says which driver: cpu (the default) or
 * cuda. Whatever goes wrong in here fails the test that runs.
 */
#ifndef TESTS_GPU_DRIVER_HARNESS_H
#define TESTS_GPU_DRIVER_HARNESS_H

#include <stdbool.h>

#include "gpu/driver.h"
#include "testing.h"

enum { HARNESS_MEMORY_BYTES = 64 << 20 }; /* of each device of the CPU driver */

extern const struct gpu_driver *driver;

#define GIVES(result, call) assert_int_equal(result, driver->call)
#define WORKS(call) GIVES(CUDA_SUCCESS, call)

/** Opens the driver with device 0's context current. `cpu` is for the CPU driver alone. */
void harness_open(const struct gpu_cpu_options *cpu);

/** The CPU driver is reset, whatever hangs in it; its counters of mistakes must be 0 before. */
void harness_close(void);

/** Ends without a look at the mistakes, for tests that make some. */
void harness_close_after_mistakes(void);

bool harness_is_cpu(void);
bool harness_names_cuda(void); /* asked for, open or not */

CUstream harness_stream(void);
CUevent harness_event(void);
CUdeviceptr harness_memory(size_t bytes);
void *harness_pinned(size_t bytes);

/** A kernel of driver_probe, from a module of its own. */
CUfunction harness_probe(const char *entry);

/** A program that is shipped. */
CUmodule harness_program(const char *program);

CUresult harness_launch(CUfunction function, unsigned grid, unsigned block, unsigned shared_bytes,
    CUstream stream, void **args);

/** Keeps `stream` from going on until the gate is opened. One gate at a time. */
void harness_close_gate(CUstream stream);
void harness_open_gate(void);

#endif
