#include "gpu/memory.h"

enum err device_block_alloc(
    const struct device *device, size_t bytes, struct device_block *ret, struct error *err) {
    *ret = (struct device_block){0};
    if (bytes == 0) return ERR_OK;
    CUdeviceptr address = 0;
    enum err code = GPU_TRY(device->driver, memory_alloc(&address, bytes), err);
    if (code != ERR_OK) return code;
    if (address == 0)
        return error_set(err, ERR_DRIVER, 0, "update the GPU driver",
            "cuMemAlloc of %zu bytes reported success with a null address", bytes);
    *ret = (struct device_block){.address = address, .bytes = bytes};
    return ERR_OK;
}

void device_block_free(const struct device *device, struct device_block *block) {
    /* Freeing fails only if the context is lost, and the memory with it. */
    if (block->address != 0) (void)device->driver->memory_free(block->address);
    *block = (struct device_block){0};
}

enum err pinned_block_alloc(
    const struct device *device, size_t bytes, struct pinned_block *ret, struct error *err) {
    *ret = (struct pinned_block){0};
    if (bytes == 0) return ERR_OK;
    void *data = NULL;
    enum err code = GPU_TRY(device->driver,
        host_alloc(&data, bytes, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP), err);
    if (code == ERR_DEVICE_MEMORY)
        return error_set(err, ERR_NO_MEMORY, err->native,
            "lower `lanes` or `lane_slab_bytes`, or raise the memory limit of the process",
            "the host cannot pin %zu bytes", bytes);
    if (code != ERR_OK) return code;
    if (data == NULL)
        return error_set(err, ERR_DRIVER, 0, "update the GPU driver",
            "cuMemHostAlloc of %zu bytes reported success with a null address", bytes);
    *ret = (struct pinned_block){.data = data, .bytes = bytes};
    return ERR_OK;
}

enum err pinned_device_address(
    const struct device *device, void *data, CUdeviceptr *ret, struct error *err) {
    enum err code = GPU_TRY(device->driver, host_device_pointer(ret, data, 0), err);
    if (code == ERR_OK && *ret == 0)
        return error_set(err, ERR_DRIVER, 0, "update the GPU driver",
            "cuMemHostGetDevicePointer reported success with a null address");
    return code;
}

void pinned_block_free(const struct device *device, struct pinned_block *block) {
    if (block->data != NULL) (void)device->driver->host_free(block->data);
    *block = (struct pinned_block){0};
}
