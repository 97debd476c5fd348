/** One device of the CPU driver, for tests of what lives on a device. */
#ifndef TESTS_GPU_CPU_DEVICE_H
#define TESTS_GPU_CPU_DEVICE_H

#include "cpu_driver/cpu_driver.h"
#include "gpu/device.h"
#include "testing.h"

enum { CPU_DEVICE_BYTES = 64 << 20 };

/** `faults` is a script, counted from here; NULL for none. */
static inline void cpu_device_open(struct device *device, const char *faults) {
    const struct gpu_cpu_options cpu = {
        .device_count = 1, .memory_bytes = CPU_DEVICE_BYTES, .faults = faults};
    const struct gpu_driver *driver;
    struct error err;
    if (gpu_driver_open(GPU_DRIVER_CPU, &cpu, &driver, &err) != ERR_OK ||
        device_open(device, driver, 0, &err) != ERR_OK)
        fail_msg("%s", err.message);
}

/** A cmocka teardown: whatever became of the test, the next one finds a fresh driver. */
static inline int cpu_device_reset(void **state) {
    cpu_driver_reset();
    return 0;
}

#define D(name) cmocka_unit_test_teardown(name, cpu_device_reset)

#endif
