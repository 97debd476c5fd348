/**
 * Device and pinned host memory: the one place that calls the driver's allocators.
 *
 * Units: bytes. Lifetime: the caller frees each block, after the work that uses it is fenced.
 * Threads: any bound thread. A block of zero bytes takes no memory: its address is null.
 */
#ifndef GPU_MEMORY_H
#define GPU_MEMORY_H

#include "gpu/device.h"

struct device_block {
    CUdeviceptr address;
    size_t bytes;
};

struct pinned_block {
    uint8_t *data;
    size_t bytes;
};

/** Errors: ERR_DEVICE_MEMORY, if the device has no room. The contents are undefined. */
MUST_CHECK enum err device_block_alloc(
    const struct device *device, size_t bytes, struct device_block *ret, struct error *err);
void device_block_free(const struct device *device, struct device_block *block);

/**
 * Errors: ERR_NO_MEMORY, if the host cannot pin that much. The block is visible to every context
 * and to kernels.
 */
MUST_CHECK enum err pinned_block_alloc(
    const struct device *device, size_t bytes, struct pinned_block *ret, struct error *err);
/** The address under which kernels see a host address in a pinned block. */
MUST_CHECK enum err pinned_device_address(
    const struct device *device, void *data, CUdeviceptr *ret, struct error *err);
void pinned_block_free(const struct device *device, struct pinned_block *block);

#endif
