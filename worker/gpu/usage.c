#include "gpu/usage.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>

#include "gpu/nvidia_library.h"

enum {
    NVML_SUCCESS = 0,
    NVML_TEMPERATURE_GPU = 0,
    NVML_MEMORY_ERROR_CORRECTED = 0,
    NVML_MEMORY_ERROR_UNCORRECTED = 1,
    NVML_VOLATILE_ECC = 0
};

struct nvml_memory {
    unsigned long long total, free, used;
};

struct nvml_utilization {
    unsigned gpu, memory;
};

struct usage {
    void *library, *device;
    int (*init)(void);
    int (*shutdown)(void);
    int (*device_by_uuid)(const char *uuid, void **device);
    /* NULL: a driver that does not have it */
    int (*memory)(void *device, struct nvml_memory *ret);
    int (*utilization)(void *device, struct nvml_utilization *ret);
    int (*temperature)(void *device, int sensor, unsigned *celsius);
    int (*power)(void *device, unsigned *milliwatts);
    int (*ecc_errors)(void *device, int type, int counter, unsigned long long *ret);
};

static bool load(struct usage *usage) {
    usage->library = nvidia_library_open("libnvidia-ml.so.1", &(struct error){0});
    if (usage->library == NULL) return false;
    const struct {
        void **function;
        const char *name;
    } functions[] = {{(void **)&usage->init, "nvmlInit_v2"},
        {(void **)&usage->shutdown, "nvmlShutdown"},
        {(void **)&usage->device_by_uuid, "nvmlDeviceGetHandleByUUID"},
        {(void **)&usage->memory, "nvmlDeviceGetMemoryInfo"},
        {(void **)&usage->utilization, "nvmlDeviceGetUtilizationRates"},
        {(void **)&usage->temperature, "nvmlDeviceGetTemperature"},
        {(void **)&usage->power, "nvmlDeviceGetPowerUsage"},
        {(void **)&usage->ecc_errors, "nvmlDeviceGetTotalEccErrors"}};
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        *functions[i].function = dlsym(usage->library, functions[i].name);
    return usage->init != NULL && usage->shutdown != NULL && usage->device_by_uuid != NULL;
}

struct usage *usage_open(const char *uuid) {
    struct usage *usage = uuid != NULL && uuid[0] != 0 ? calloc(1, sizeof *usage) : NULL;
    if (usage == NULL) return NULL;
    bool is_begun = load(usage) && usage->init() == NVML_SUCCESS;
    if (is_begun && usage->device_by_uuid(uuid, &usage->device) == NVML_SUCCESS) return usage;
    if (is_begun) (void)usage->shutdown();
    if (usage->library != NULL) dlclose(usage->library);
    free(usage);
    return NULL;
}

void usage_close(struct usage *usage) {
    if (usage == NULL) return;
    (void)usage->shutdown();
    dlclose(usage->library);
    free(usage);
}

static void set(
    struct usage_reading *reading, enum usage_figure figure, int result, uint64_t value) {
    if (result != NVML_SUCCESS) return;
    reading->known |= 1u << figure;
    reading->of[figure] = value;
}

void usage_read(const struct usage *usage, struct usage_reading *ret) {
    struct nvml_memory memory = {0};
    struct nvml_utilization utilization = {0};
    unsigned small = 0;
    unsigned long long errors = 0;
    int result;
    *ret = (struct usage_reading){0};
    if (usage == NULL) return;
    if (usage->memory != NULL) {
        result = usage->memory(usage->device, &memory);
        set(ret, USAGE_memory_bytes, result, memory.total);
        set(ret, USAGE_memory_used_bytes, result, memory.used);
    }
    if (usage->utilization != NULL) {
        result = usage->utilization(usage->device, &utilization);
        set(ret, USAGE_utilisation_percent, result, utilization.gpu);
    }
    if (usage->temperature != NULL) {
        result = usage->temperature(usage->device, NVML_TEMPERATURE_GPU, &small);
        set(ret, USAGE_temperature_celsius, result, small);
    }
    if (usage->power != NULL) {
        result = usage->power(usage->device, &small);
        set(ret, USAGE_power_milliwatts, result, small);
    }
    if (usage->ecc_errors == NULL) return;
    result =
        usage->ecc_errors(usage->device, NVML_MEMORY_ERROR_CORRECTED, NVML_VOLATILE_ECC, &errors);
    set(ret, USAGE_ecc_corrected, result, errors);
    result =
        usage->ecc_errors(usage->device, NVML_MEMORY_ERROR_UNCORRECTED, NVML_VOLATILE_ECC, &errors);
    set(ret, USAGE_ecc_uncorrected, result, errors);
}
