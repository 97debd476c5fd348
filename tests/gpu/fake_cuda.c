/* A driver's library with one GPU that can do nothing: enough for a worker that looks for one. */
#include <cuda.h>
#include <string.h>

CUresult cuGetProcAddress_v2(const char *symbol, void **ret, int cuda_version, cuuint64_t flags,
    CUdriverProcAddressQueryResult *status);

static CUresult succeed(unsigned flags) {
    (void)flags;
    return CUDA_SUCCESS;
}

static CUresult count_devices(int *count) {
    *count = 1;
    return CUDA_SUCCESS;
}

static CUresult refuse(void) {
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuGetProcAddress_v2(const char *symbol, void **ret, int cuda_version, cuuint64_t flags,
    CUdriverProcAddressQueryResult *status) {
    (void)cuda_version, (void)flags, (void)status;
    *ret = (void *)refuse;
    if (strcmp(symbol, "cuInit") == 0) *ret = (void *)succeed;
    if (strcmp(symbol, "cuDeviceGetCount") == 0) *ret = (void *)count_devices;
    return CUDA_SUCCESS;
}
