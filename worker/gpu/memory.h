/**
 * Device and pinned host memory: the one place that calls the driver's allocators.
 *
 * Units: bytes. Lifetime: who allocates a block frees it, after the work that uses it is
 * fenced. Threads: any bound thread. A block of zero bytes takes nothing: its address is null.
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

/** ERR_DEVICE_MEMORY when the device has no room. The contents are whatever was there before. */
MUST_CHECK enum err device_block_alloc(
    const struct device *device, size_t bytes, struct device_block *ret, struct error *err);
void device_block_free(const struct device *device, struct device_block *block);

/** ERR_NO_MEMORY when the host cannot pin that much. Visible to every context and to kernels. */
MUST_CHECK enum err pinned_block_alloc(
    const struct device *device, size_t bytes, struct pinned_block *ret, struct error *err);
/** The address under which kernels see a host address in a pinned block. */
MUST_CHECK enum err pinned_device_address(
    const struct device *device, void *data, CUdeviceptr *ret, struct error *err);
void pinned_block_free(const struct device *device, struct pinned_block *block);

#endif
