#include "gpu/health.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>

#include "gpu/nvidia_library.h"

enum { NVML_SUCCESS = 0, NVML_GPU_IS_LOST = 15 };

struct nvml {
    int (*init)(void);
    int (*shutdown)(void);
    int (*device_by_uuid)(const char *uuid, void **device);
    int (*ecc_mode)(void *device, unsigned *current, unsigned *pending);
    int (*remapped_rows)(void *device, unsigned *corrected, unsigned *uncorrected,
        unsigned *is_pending, unsigned *has_failed);
};

static bool load(struct nvml *nvml) {
    void *library = nvidia_library_open("libnvidia-ml.so.1", &(struct error){0});
    if (library == NULL) return false;
    const struct {
        void **function;
        const char *name;
    } functions[] = {{(void **)&nvml->init, "nvmlInit_v2"},
        {(void **)&nvml->shutdown, "nvmlShutdown"},
        {(void **)&nvml->device_by_uuid, "nvmlDeviceGetHandleByUUID"},
        {(void **)&nvml->ecc_mode, "nvmlDeviceGetEccMode"},
        {(void **)&nvml->remapped_rows, "nvmlDeviceGetRemappedRows"}};
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        *functions[i].function = dlsym(library, functions[i].name);
        if (*functions[i].function == NULL) return false;
    }
    return true;
}

static void check(const struct nvml *nvml, const char *uuid, char *fault, size_t size) {
    void *device;
    unsigned ignored, has_failed = 0;
    int result = nvml->device_by_uuid(uuid, &device);
    if (result == NVML_SUCCESS) result = nvml->ecc_mode(device, &ignored, &ignored);
    if (result == NVML_GPU_IS_LOST) {
        snprintf(fault, size, "it has fallen off the bus");
        return;
    }
    if (result == NVML_SUCCESS)
        result = nvml->remapped_rows(device, &ignored, &ignored, &ignored, &has_failed);
    if (result == NVML_SUCCESS && has_failed != 0)
        snprintf(fault, size, "failing rows of its memory could not be replaced");
}

void health_check(const char *uuid, char *fault, size_t size) {
    struct nvml nvml;
    fault[0] = 0;
    if (!load(&nvml) || nvml.init() != NVML_SUCCESS) return;
    check(&nvml, uuid, fault, size);
    (void)nvml.shutdown();
}
