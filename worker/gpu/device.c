#include "gpu/device.h"

#include <stdio.h>
#include <string.h>

static enum err read_attribute(
    const struct device *device, CUdevice_attribute attribute, uint32_t *ret, struct error *err) {
    int value = 0;
    const struct gpu_driver *gpu = device->driver;
    enum err code = GPU_TRY(gpu, device_attribute(&value, attribute, device->handle), err);
    if (code == ERR_OK) *ret = value > 0 ? (uint32_t)value : 0;
    return code;
}

static enum err read_limits(struct device *device, struct error *err) {
    struct gpu_limits *limits = &device->limits;
    uint32_t major = 0, minor = 0, cooperative = 0, can_map = 0, reaches_host = 0;
    const struct {
        CUdevice_attribute attribute;
        uint32_t *value;
    } attributes[] = {
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor},
        {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, &cooperative},
        {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, &can_map},
        {CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, &reaches_host},
        {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &limits->multiprocessors},
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &limits->block_threads_max},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, &limits->block_max[0]},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, &limits->block_max[1]},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, &limits->block_max[2]},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, &limits->grid_max[0]},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, &limits->grid_max[1]},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, &limits->grid_max[2]},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &limits->shared_bytes_max},
    };
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++) {
        enum err code = read_attribute(device, attributes[i].attribute, attributes[i].value, err);
        if (code != ERR_OK) return code;
    }
    limits->architecture = (int)(10 * major + minor);
    limits->cooperative = cooperative != 0;
    limits->can_map = can_map != 0;
    limits->reaches_host = reaches_host != 0;
    size_t memory = 0;
    int version = 0;
    const struct gpu_driver *gpu = device->driver;
    enum err code = GPU_TRY(gpu, driver_version(&version), err);
    if (code != ERR_OK) return code;
    /* CUDA 12.1 raised the limit for Volta and newer. */
    bool is_raised = version >= 12010 && limits->architecture >= 70;
    limits->param_bytes_max = is_raised ? 32764 : 4096;
    code = GPU_TRY(gpu, device_total_memory(&memory, device->handle), err);
    limits->memory_bytes = memory;
    return code;
}

enum err device_bind(const struct device *device, struct error *err) {
    return GPU_TRY(device->driver, context_set_current(device->context), err);
}

/* Reads the UUID in the form that tools print and CUDA_VISIBLE_DEVICES accepts. */
static enum err read_uuid(struct device *device, struct error *err) {
    static const char dash_before[16] = {[4] = 1, [6] = 1, [8] = 1, [10] = 1};
    CUuuid uuid = {{0}};
    const struct gpu_driver *gpu = device->driver;
    enum err code = GPU_TRY(gpu, device_uuid(&uuid, device->handle), err);
    if (code != ERR_OK) return code;
    size_t used = (size_t)snprintf(device->uuid, sizeof device->uuid, "GPU-");
    for (size_t i = 0; i < sizeof uuid.bytes; i++)
        used += (size_t)snprintf(device->uuid + used, sizeof device->uuid - used, "%s%02x",
            dash_before[i] ? "-" : "", (unsigned char)uuid.bytes[i]);
    return ERR_OK;
}

/* CUDA writes letters large, the kernel small. A device can be used without an address. */
static void read_pci(struct device *device) {
    const struct gpu_driver *gpu = device->driver;
    struct error err;
    if (GPU_TRY(gpu, device_pci_bus_id(device->pci, sizeof device->pci, device->handle), &err) !=
        ERR_OK)
        device->pci[0] = 0;
    for (char *next = device->pci; *next != 0; next++)
        if (*next >= 'A' && *next <= 'F') *next = (char)(*next - 'A' + 'a');
}

static enum err check_index(const struct gpu_driver *gpu, int index, struct error *err) {
    int count = 0;
    enum err code = GPU_TRY(gpu, device_count(&count), err);
    if (code != ERR_OK) return code;
    if (index < 0 || index >= count)
        return error_set(err, ERR_NO_DEVICE, 0, "set `devices` to devices that exist",
            "there is no device %d: the %s driver shows %d", index, gpu->name, count);
    return ERR_OK;
}

enum err device_identify(
    struct device *device, const struct gpu_driver *driver, int index, struct error *err) {
    *device = (struct device){
        .driver = driver, .index = index, .on_cpu = strcmp(driver->name, "cpu") == 0};
    enum err code = check_index(driver, index, err);
    if (code != ERR_OK) return code;
    code = GPU_TRY(driver, device_get(&device->handle, index), err);
    if (code != ERR_OK) return code;
    code =
        GPU_TRY(driver, device_name(device->name, (int)sizeof device->name, device->handle), err);
    read_pci(device);
    return code == ERR_OK ? read_uuid(device, err) : code;
}

enum err device_open(
    struct device *device, const struct gpu_driver *driver, int index, struct error *err) {
    enum err code = device_identify(device, driver, index, err);
    if (code != ERR_OK) return code;
    code = read_limits(device, err);
    if (code != ERR_OK) return code;
    code = GPU_TRY(driver, primary_context_retain(&device->context, device->handle), err);
    if (code != ERR_OK) return code;
    code = device_bind(device, err);
    if (code != ERR_OK) device_close(device);
    return code;
}

void device_close(struct device *device) {
    if (device->context == NULL) return;
    /* After a sticky error even this fails, but the process is about to end anyway. */
    (void)device->driver->primary_context_release(device->handle);
    device->context = NULL;
}
