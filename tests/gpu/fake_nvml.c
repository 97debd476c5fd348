/* NVIDIA's management library as health.c asks it, with the GPU that FAKE_NVML names: fine, lost,
 * rows (that fail and could not be replaced), unknown (no such UUID); or dead: it does not start.
 */
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, UNINITIALIZED = 1, NOT_FOUND = 6, GPU_IS_LOST = 15 };

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetHandleByUUID(const char *uuid, void **device);
int nvmlDeviceGetEccMode(void *device, unsigned *current, unsigned *pending);
int nvmlDeviceGetRemappedRows(void *device, unsigned *corrected, unsigned *uncorrected,
    unsigned *is_pending, unsigned *has_failed);

static int started, gpu;

static int is(const char *name) {
    return strcmp(getenv("FAKE_NVML"), name) == 0;
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
