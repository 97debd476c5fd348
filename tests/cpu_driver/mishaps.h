/** What tests of the CPU driver share beside the harness: one device, and what went wrong on it. */
#ifndef TESTS_CPU_DRIVER_MISHAPS_H
#define TESTS_CPU_DRIVER_MISHAPS_H

#include "cpu_driver/cpu_driver.h"
#include "gpu/driver_harness.h"

enum { BYTES = 4096 };

/** Opens the CPU driver with one device and these faults. */
static inline void open_with(const char *faults) {
    const struct gpu_cpu_options cpu = {
        .device_count = 1, .memory_bytes = HARNESS_MEMORY_BYTES, .faults = faults};
    harness_open(&cpu);
}

static inline void *host_pointer(CUdeviceptr memory) {
    return (void *)(uintptr_t)memory;
}

/** Every test opens its driver itself; the end comes whatever became of it. */
static inline int close_driver(void **state) {
    if (driver != NULL) harness_close_after_mistakes();
    return 0;
}

#define C(name) cmocka_unit_test_teardown(name, close_driver)

#define RUN_CPU_TESTS(...)                                                                         \
    TEST_MAIN() {                                                                                  \
        const struct CMUnitTest tests[] = {__VA_ARGS__};                                           \
        return cmocka_run_group_tests(tests, NULL, NULL);                                          \
    }

#endif
