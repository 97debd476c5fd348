#include "pipeline/devices.h"

#include <stdio.h>

#include "gpu/device.h"
#include "gpu/health.h"

enum err devices_open_driver(
    const struct settings *settings, const struct gpu_driver **ret, struct error *err) {
    const struct gpu_cpu_options cpu = {.device_count = (int)settings->cpu_driver.devices,
        .memory_bytes = settings->cpu_driver.memory_bytes,
        .faults = settings->cpu_driver.faults};
    return gpu_driver_open(
        settings->driver == DRIVER_CPU ? GPU_DRIVER_CPU : GPU_DRIVER_CUDA, &cpu, ret, err);
}

static enum err describe(
    const struct gpu_driver *driver, int index, struct device_info *ret, struct error *err) {
    struct device device;
    enum err code = device_identify(&device, driver, index, err);
    if (code != ERR_OK) return code;
    *ret = (struct device_info){.index = (uint32_t)index};
    snprintf(ret->uuid, sizeof ret->uuid, "%s", device.uuid);
    snprintf(ret->pci, sizeof ret->pci, "%s", device.pci);
    locality_find(LOCALITY_SYSFS, device.pci, &ret->locality);
    snprintf(ret->name, sizeof ret->name, "%s", device.name);
    if (!device.on_cpu) health_check(device.uuid, ret->fault, sizeof ret->fault);
    return ERR_OK;
}

enum err devices_list(const struct settings *settings, struct device_info ret[static DEVICES_MAX],
    size_t *count, struct error *err) {
    const struct gpu_driver *driver;
    int shown = 0;
    enum err code = devices_open_driver(settings, &driver, err);
    if (code == ERR_OK) code = GPU_TRY(driver, device_count(&shown), err);
    if (code != ERR_OK) return code;
    *count = 0;
    for (int i = 0; i < shown && *count < DEVICES_MAX && code == ERR_OK; i++)
        code = describe(driver, i, &ret[(*count)++], err);
    return code;
}
