/**
 * The CUDA driver API as one table: all CUDA calls of the worker go through it.
 *
 * `driver: cuda` fills it from libcuda.so.1 (opened at run time: the binary starts on machines
 * without one), `driver: cpu` from cpu_driver/. Every entry point is looked up with the library's
 * cuGetProcAddress, for the version whose signature our header declares, so that a newer driver
 * never returns a newer, incompatible one.
 *
 * Lifetime: a table stays valid until the process ends. Threads: any, each with its context bound.
 * Errors: ERR_DRIVER with the CUresult in `native`, or a code of its own for some results
 * (driver.c).
 */
#ifndef GPU_DRIVER_H
#define GPU_DRIVER_H

#include <cuda.h>

#include "base/error.h"

#if CUDA_VERSION < 12040
CUresult CUDAAPI cuFuncGetParamInfo(CUfunction, size_t index, size_t *ret_offset, size_t *ret_size);
#endif

/* What a node of a graph is told has two fields more from CUDA 12 on. */
#define GPU_NODE_VERSION (CUDA_VERSION < 12000 ? 10000 : 12000)

/* X(field, function of cuda.h, CUDA version that introduced this signature). Functions that a
 * driver may lack are NULL. */
#define GPU_DRIVER_LIST(X) GPU_DRIVER_REQUIRED_LIST(X) GPU_DRIVER_OPTIONAL_LIST(X)
#define GPU_DRIVER_OPTIONAL_LIST(X)                                                                \
    X(function_param, cuFuncGetParamInfo, 12040)                                                   \
    GPU_DRIVER_GRAPH_LIST(X)
#define GPU_DRIVER_GRAPH_LIST(X)                                                                   \
    X(graph_create, cuGraphCreate, 10000)                                                          \
    X(graph_destroy, cuGraphDestroy, 10000)                                                        \
    X(graph_add_kernel, cuGraphAddKernelNode, GPU_NODE_VERSION)                                    \
    X(graph_instantiate, cuGraphInstantiateWithFlags, 11040)                                       \
    X(graph_exec_destroy, cuGraphExecDestroy, 10000)                                               \
    X(graph_exec_set_kernel, cuGraphExecKernelNodeSetParams, GPU_NODE_VERSION)                     \
    X(graph_launch, cuGraphLaunch, 10000)
#define GPU_DRIVER_REQUIRED_LIST(X)                                                                \
    X(init, cuInit, 2000)                                                                          \
    X(driver_version, cuDriverGetVersion, 2020)                                                    \
    X(error_name, cuGetErrorName, 6000)                                                            \
    X(error_string, cuGetErrorString, 6000)                                                        \
    X(device_count, cuDeviceGetCount, 2000)                                                        \
    X(device_get, cuDeviceGet, 2000)                                                               \
    X(device_name, cuDeviceGetName, 2000)                                                          \
    X(device_uuid, cuDeviceGetUuid, 9020)                                                          \
    X(device_pci_bus_id, cuDeviceGetPCIBusId, 4010)                                                \
    X(device_attribute, cuDeviceGetAttribute, 2000)                                                \
    X(device_total_memory, cuDeviceTotalMem, 3020)                                                 \
    X(primary_context_retain, cuDevicePrimaryCtxRetain, 7000)                                      \
    X(primary_context_release, cuDevicePrimaryCtxRelease, 11000)                                   \
    X(context_set_current, cuCtxSetCurrent, 4000)                                                  \
    X(memory_alloc, cuMemAlloc, 3020)                                                              \
    X(memory_free, cuMemFree, 3020)                                                                \
    X(host_alloc, cuMemHostAlloc, 2020)                                                            \
    X(host_free, cuMemFreeHost, 2000)                                                              \
    X(host_device_pointer, cuMemHostGetDevicePointer, 3020)                                        \
    X(host_register, cuMemHostRegister, 6050)                                                      \
    X(host_unregister, cuMemHostUnregister, 4000)                                                  \
    X(copy_to_device, cuMemcpyHtoDAsync, 3020)                                                     \
    X(copy_to_host, cuMemcpyDtoHAsync, 3020)                                                       \
    X(fill, cuMemsetD8Async, 3020)                                                                 \
    X(stream_create, cuStreamCreate, 2000)                                                         \
    X(stream_destroy, cuStreamDestroy, 4000)                                                       \
    X(stream_synchronize, cuStreamSynchronize, 2000)                                               \
    X(stream_wait_event, cuStreamWaitEvent, 3020)                                                  \
    X(event_create, cuEventCreate, 2000)                                                           \
    X(event_destroy, cuEventDestroy, 4000)                                                         \
    X(event_record, cuEventRecord, 2000)                                                           \
    X(event_query, cuEventQuery, 2000)                                                             \
    X(event_synchronize, cuEventSynchronize, 2000)                                                 \
    X(event_elapsed, cuEventElapsedTime, 2000)                                                     \
    X(module_load, cuModuleLoadDataEx, 2010)                                                       \
    X(module_unload, cuModuleUnload, 2000)                                                         \
    X(module_function, cuModuleGetFunction, 2000)                                                  \
    X(function_attribute, cuFuncGetAttribute, 2020)                                                \
    X(function_set_attribute, cuFuncSetAttribute, 9000)                                            \
    X(function_occupancy, cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050)                       \
    X(launch, cuLaunchKernel, 4000)                                                                \
    X(launch_cooperative, cuLaunchCooperativeKernel, 9000)

struct gpu_driver {
    const char *name; /* "cuda" or "cpu" */
#define X(field, function, version) __typeof__(function) *field;
    GPU_DRIVER_LIST(X)
#undef X
};

enum gpu_driver_kind { GPU_DRIVER_CUDA, GPU_DRIVER_CPU };

/** What `driver: cpu` simulates. cpu_driver/cpu_driver.h describes the fault script. */
struct gpu_cpu_options {
    int device_count;
    size_t memory_bytes; /* of each device */
    const char *faults;  /* fault script; NULL or "" for none */
};

/**
 * Opens a driver and calls its cuInit. Call it once in a process. `cpu` is read only for
 * GPU_DRIVER_CPU. Errors: ERR_NO_DEVICE, if the library, an entry point or a device is missing; the
 * message names it, and the fix says what to install or set.
 */
MUST_CHECK enum err gpu_driver_open(enum gpu_driver_kind kind, const struct gpu_cpu_options *cpu,
    const struct gpu_driver **ret, struct error *err);

/** Checks a fault script of `driver: cpu`. Errors: ERR_CONFIG, with the position. */
MUST_CHECK enum err gpu_cpu_faults_check(const char *faults, struct error *err);

/**
 * ERR_OK for CUDA_SUCCESS; otherwise fills in `err`, for example "cuMemAlloc(&block, size):
 * CUDA_ERROR_OUT_OF_MEMORY (out of memory)".
 */
MUST_CHECK enum err gpu_check(
    const struct gpu_driver *driver, CUresult result, const char *call, struct error *err);

/** Calls through the table and checks: GPU_TRY(gpu, memory_alloc(&block, size), err). */
#define GPU_TRY(driver, call, err) gpu_check((driver), (driver)->call, #call, (err))

#endif
