#include "cpu_driver/context.h"

#include "cpu_driver/block.h"
#include "cpu_driver/event.h"
#include "cpu_driver/graph.h"
#include "cpu_driver/handle.h"
#include "cpu_driver/module.h"
#include "cpu_driver/stream.h"

static _Thread_local struct cpu_device *current;

struct cpu_device *cpu_device_find(CUdevice ordinal) {
    return ordinal >= 0 && ordinal < cpu.device_count ? &cpu.devices[ordinal] : NULL;
}

CUresult cpu_context_retain(struct cpu_device *device, CUcontext *ret) {
    if (device->lost != CUDA_SUCCESS) return device->lost;
    device->retained++;
    *ret = (CUcontext)device;
    return CUDA_SUCCESS;
}

static void drop_streams(const struct cpu_device *device) {
    size_t cursor = 0;
    CUstream handle;
    while ((handle = cpu_handle_next(CPU_HANDLE_STREAM, &cursor)) != NULL)
        if (cpu_stream_find(device, handle) != NULL) cpu_stream_destroy(handle);
}

static void drop_events(const struct cpu_device *device) {
    size_t cursor = 0;
    CUevent handle;
    while ((handle = cpu_handle_next(CPU_HANDLE_EVENT, &cursor)) != NULL)
        if (cpu_event_find(device, handle) != NULL) cpu_event_destroy(handle);
}

static void drop_modules(const struct cpu_device *device) {
    size_t cursor = 0;
    CUmodule handle;
    while ((handle = cpu_handle_next(CPU_HANDLE_MODULE, &cursor)) != NULL)
        if (cpu_module_find(device, handle) != NULL) cpu_module_unload(handle);
}

void cpu_context_clear(struct cpu_device *device) {
    drop_streams(device);
    cpu_streams_drain(device);
    drop_events(device);
    cpu_graphs_clear(device);
    drop_modules(device);
    cpu_blocks_clear(device);
}

CUresult cpu_context_release(struct cpu_device *device) {
    if (device->retained == 0) return CUDA_ERROR_INVALID_CONTEXT;
    if (--device->retained == 0) cpu_context_clear(device);
    return CUDA_SUCCESS;
}

CUresult cpu_context_set_current(CUcontext context) {
    struct cpu_device *device = (struct cpu_device *)context;
    if (device != NULL && (device < cpu.devices || device >= cpu.devices + cpu.device_count))
        return CUDA_ERROR_INVALID_CONTEXT;
    current = device;
    return CUDA_SUCCESS;
}

struct cpu_device *cpu_context_current(void) {
    return current != NULL && current->retained > 0 ? current : NULL;
}
