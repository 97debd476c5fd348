/* NVML as health.c and usage.c ask it, with the GPU that FAKE_NVML names:
 * fine, lost, rows (that fail and could not be replaced), slice (of MIG, which has its memory
 * alone), hung (in the driver), unknown (no such UUID); or dead: it does not start. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS = 0, UNINITIALIZED = 1, NOT_SUPPORTED = 3, NOT_FOUND = 6, GPU_IS_LOST = 15 };

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetHandleByUUID(const char *uuid, void **device);
int nvmlDeviceGetEccMode(void *device, unsigned *current, unsigned *pending);
int nvmlDeviceGetRemappedRows(void *device, unsigned *corrected, unsigned *uncorrected,
    unsigned *is_pending, unsigned *has_failed);

struct memory {
    unsigned long long total, free, used;
};
struct utilization {
    unsigned gpu, memory;
};
int nvmlDeviceGetMemoryInfo(void *device, struct memory *ret);
int nvmlDeviceGetUtilizationRates(void *device, struct utilization *ret);
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius);
int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts);
int nvmlDeviceGetTotalEccErrors(void *device, int type, int counter, unsigned long long *ret);

static int started, gpu;

static int is(const char *name) {
    const char *named = getenv("FAKE_NVML");
    return named != NULL && strcmp(named, name) == 0;
}

int nvmlInit_v2(void) {
    if (is("dead")) return UNINITIALIZED;
    started++;
    return SUCCESS;
}

int nvmlShutdown(void) {
    started--;
    return SUCCESS;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **device) {
    if (started != 1) return UNINITIALIZED;
    if (is("unknown")) return NOT_FOUND;
    *device = &gpu;
    return SUCCESS;
}

int nvmlDeviceGetEccMode(void *device, unsigned *current, unsigned *pending) {
    if (device != &gpu) abort();
    if (is("lost")) return GPU_IS_LOST;
    *current = *pending = 1;
    return SUCCESS;
}

int nvmlDeviceGetRemappedRows(void *device, unsigned *corrected, unsigned *uncorrected,
    unsigned *is_pending, unsigned *has_failed) {
    if (device != &gpu) abort();
    *corrected = *uncorrected = *is_pending = 1; /* each of which a GPU lives on with */
    *has_failed = (unsigned)is("rows");
    return SUCCESS;
}

/* What a slice does not have, and nobody has once it is lost. */
static int measured(const void *device) {
    if (device != &gpu || started != 1) abort();
    return is("lost") ? GPU_IS_LOST : is("slice") ? NOT_SUPPORTED : SUCCESS;
}

int nvmlDeviceGetMemoryInfo(void *device, struct memory *ret) {
    while (is("hung")) pause();
    if (measured(device) == GPU_IS_LOST) return GPU_IS_LOST;
    *ret = (struct memory){.total = 80ull << 30, .free = 60ull << 30, .used = 20ull << 30};
    return SUCCESS;
}

int nvmlDeviceGetUtilizationRates(void *device, struct utilization *ret) {
    *ret = (struct utilization){.gpu = 75, .memory = 11};
    return measured(device);
}

int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius) {
    if (sensor != 0) abort();
    *celsius = 41;
    return measured(device);
}

int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts) {
    *milliwatts = 312500;
    return measured(device);
}

int nvmlDeviceGetTotalEccErrors(void *device, int type, int counter, unsigned long long *ret) {
    if (counter != 0) abort();
    *ret = type == 0 ? 7 : 2;
    return measured(device);
}
