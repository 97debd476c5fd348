#include "cpu_driver/attributes.h"

#include "cpu_driver/limits.h"

static const struct {
    CUdevice_attribute attribute;
    int value;
} attributes[] = {
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, CPU_BLOCK_THREADS_MAX},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, CPU_BLOCK_X_MAX},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, CPU_BLOCK_Y_MAX},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, CPU_BLOCK_Z_MAX},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, CPU_GRID_X_MAX},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, CPU_GRID_Y_MAX},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, CPU_GRID_Z_MAX},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, CPU_SHARED_BYTES_DEFAULT},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, CPU_SHARED_BYTES_OPTIN},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, CPU_SHARED_BYTES_MULTIPROCESSOR},
    {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, CPU_SHARED_BYTES_RESERVED},
    {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536},
    {CU_DEVICE_ATTRIBUTE_WARP_SIZE, CPU_WARP_SIZE},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, CPU_REGISTERS_BLOCK},
    {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1000000},
    {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, CPU_MULTIPROCESSORS},
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, CPU_THREADS_MULTIPROCESSOR},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, CPU_BLOCKS_MULTIPROCESSOR},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, CPU_COMPUTE_MAJOR},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, CPU_COMPUTE_MINOR},
    {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
    {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 2},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, CU_COMPUTEMODE_DEFAULT},
    {CU_DEVICE_ATTRIBUTE_ECC_ENABLED, 0},
    {CU_DEVICE_ATTRIBUTE_INTEGRATED, 0},
    {CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 0},
    {CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 0},
    {CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 0},
};

CUresult cpu_device_attribute(int *ret, CUdevice_attribute attribute) {
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++) {
        if (attributes[i].attribute != attribute) continue;
        *ret = attributes[i].value;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
}

static const struct {
    CUresult result;
    const char *name, *text;
} results[] = {
#define X(name, text)                                                                              \
    { name, #name, text }
    X(CUDA_SUCCESS, "no error"),
    X(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
    X(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
    X(CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
    X(CUDA_ERROR_DEINITIALIZED, "driver shutting down"),
    X(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
    X(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
    X(CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid"),
    X(CUDA_ERROR_INVALID_CONTEXT, "invalid device context"),
    X(CUDA_ERROR_NO_BINARY_FOR_GPU, "no kernel image is available for execution on the device"),
    X(CUDA_ERROR_ECC_UNCORRECTABLE, "uncorrectable ECC error encountered"),
    X(CUDA_ERROR_INVALID_PTX, "a PTX JIT compilation failed"),
    X(CUDA_ERROR_OPERATING_SYSTEM, "OS call failed or operation not supported on this OS"),
    X(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"),
    X(CUDA_ERROR_NOT_FOUND, "named symbol not found"),
    X(CUDA_ERROR_NOT_READY, "device not ready"),
    X(CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
    X(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch"),
    X(CUDA_ERROR_LAUNCH_TIMEOUT, "the launch timed out and was terminated"),
    X(CUDA_ERROR_ASSERT, "device-side assert triggered"),
    X(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "part of the memory range is already registered"),
    X(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "pointer does not correspond to a registered range"),
    X(CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"),
    X(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "too many blocks in cooperative launch"),
    X(CUDA_ERROR_NOT_SUPPORTED, "operation not supported"),
    X(CUDA_ERROR_UNKNOWN, "unknown error"),
#undef X
};

CUresult cpu_result_name(CUresult result, const char **ret) {
    *ret = NULL;
    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++)
        if (results[i].result == result) *ret = results[i].name;
    return *ret == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cpu_result_text(CUresult result, const char **ret) {
    *ret = NULL;
    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++)
        if (results[i].result == result) *ret = results[i].text;
    return *ret == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

int cpu_occupancy(int block_threads, size_t shared_bytes) {
    int by_threads = CPU_THREADS_MULTIPROCESSOR / block_threads;
    size_t by_shared = CPU_SHARED_BYTES_MULTIPROCESSOR / (shared_bytes + CPU_SHARED_BYTES_RESERVED);
    int blocks = by_threads < CPU_BLOCKS_MULTIPROCESSOR ? by_threads : CPU_BLOCKS_MULTIPROCESSOR;
    return by_shared < (size_t)blocks ? (int)by_shared : blocks;
}
