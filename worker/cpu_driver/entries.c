/* The entry points. Each calls call_begin(), then the function that does the work, then call_end().
 */
#include <stdio.h>
#include <string.h>

#include "cpu_driver/attributes.h"
#include "cpu_driver/call.h"
#include "cpu_driver/context.h"
#include "cpu_driver/enqueue.h"
#include "cpu_driver/graph.h"
#include "cpu_driver/limits.h"
#include "cpu_driver/module.h"
#include "cpu_driver/record.h"

static CUresult entry_init(unsigned flags) {
    struct call call;
    if (call_begin(&call, CPU_init, NEEDS_NOTHING)) {
        if (flags != 0) call.result = CUDA_ERROR_INVALID_VALUE;
        else if (cpu.device_count == 0) call.result = CUDA_ERROR_NO_DEVICE;
        else cpu.is_initialised = true;
    }
    return call_end(&call);
}

static CUresult entry_driver_version(int *ret) {
    struct call call;
    if (call_begin(&call, CPU_driver_version, NEEDS_NOTHING)) *ret = CPU_DRIVER_VERSION;
    return call_end(&call);
}

static CUresult entry_error_name(CUresult result, const char **ret) {
    struct call call;
    if (call_begin(&call, CPU_error_name, NEEDS_NOTHING))
        call.result = cpu_result_name(result, ret);
    return call_end(&call);
}

static CUresult entry_error_string(CUresult result, const char **ret) {
    struct call call;
    if (call_begin(&call, CPU_error_string, NEEDS_NOTHING))
        call.result = cpu_result_text(result, ret);
    return call_end(&call);
}

static CUresult entry_device_count(int *ret) {
    struct call call;
    if (call_begin(&call, CPU_device_count, NEEDS_INIT)) *ret = cpu.device_count;
    return call_end(&call);
}

static CUresult entry_device_get(CUdevice *ret, int ordinal) {
    struct call call;
    if (call_begin(&call, CPU_device_get, NEEDS_INIT)) {
        if (cpu_device_find(ordinal) == NULL) call.result = CUDA_ERROR_INVALID_DEVICE;
        else *ret = ordinal;
    }
    return call_end(&call);
}

static CUresult entry_device_name(char *ret, int size, CUdevice ordinal) {
    struct call call;
    if (call_begin(&call, CPU_device_name, NEEDS_INIT)) {
        if (cpu_device_find(ordinal) == NULL) call.result = CUDA_ERROR_INVALID_DEVICE;
        else if (ret == NULL || size <= 0) call.result = CUDA_ERROR_INVALID_VALUE;
        else snprintf(ret, (size_t)size, "CPU driver device %d", ordinal);
    }
    return call_end(&call);
}

/* A UUID that every process sees, as a GPU's; the last byte is the ordinal. */
static CUresult entry_device_uuid(CUuuid *ret, CUdevice ordinal) {
    struct call call;
    if (call_begin(&call, CPU_device_uuid, NEEDS_INIT)) {
        if (cpu_device_find(ordinal) == NULL) call.result = CUDA_ERROR_INVALID_DEVICE;
        else if (ret == NULL) call.result = CUDA_ERROR_INVALID_VALUE;
        else *ret = (CUuuid){.bytes = {[15] = (char)ordinal}};
    }
    return call_end(&call);
}

/* An address of a domain that no machine has, so that it is never taken for that of a real device.
 */
static CUresult entry_device_pci_bus_id(char *ret, int size, CUdevice ordinal) {
    struct call call;
    if (call_begin(&call, CPU_device_pci_bus_id, NEEDS_INIT)) {
        if (cpu_device_find(ordinal) == NULL) call.result = CUDA_ERROR_INVALID_DEVICE;
        else if (ret == NULL || size <= 0) call.result = CUDA_ERROR_INVALID_VALUE;
        else snprintf(ret, (size_t)size, "FFFF:%02X:00.0", (unsigned)ordinal);
    }
    return call_end(&call);
}

static CUresult entry_device_attribute(int *ret, CUdevice_attribute attribute, CUdevice ordinal) {
    struct call call;
    if (call_begin(&call, CPU_device_attribute, NEEDS_INIT)) {
        if (cpu_device_find(ordinal) == NULL) call.result = CUDA_ERROR_INVALID_DEVICE;
        else call.result = cpu_device_attribute(ret, attribute);
    }
    return call_end(&call);
}

static CUresult entry_device_total_memory(size_t *ret, CUdevice ordinal) {
    struct call call;
    if (call_begin(&call, CPU_device_total_memory, NEEDS_INIT)) {
        if (cpu_device_find(ordinal) == NULL) call.result = CUDA_ERROR_INVALID_DEVICE;
        else *ret = cpu.memory_bytes;
    }
    return call_end(&call);
}

static CUresult entry_primary_context_retain(CUcontext *ret, CUdevice ordinal) {
    struct call call;
    *ret = NULL;
    if (call_begin(&call, CPU_primary_context_retain, NEEDS_INIT)) {
        struct cpu_device *device = cpu_device_find(ordinal);
        if (device == NULL) call.result = CUDA_ERROR_INVALID_DEVICE;
        else call.result = cpu_context_retain(device, ret);
    }
    return call_end(&call);
}

static CUresult entry_primary_context_release(CUdevice ordinal) {
    struct call call;
    if (call_begin(&call, CPU_primary_context_release, NEEDS_INIT)) {
        struct cpu_device *device = cpu_device_find(ordinal);
        if (device == NULL) call.result = CUDA_ERROR_INVALID_DEVICE;
        else call.result = cpu_context_release(device);
    }
    return call_end(&call);
}

static CUresult entry_context_set_current(CUcontext context) {
    struct call call;
    if (call_begin(&call, CPU_context_set_current, NEEDS_INIT))
        call.result = cpu_context_set_current(context);
    return call_end(&call);
}

static CUresult entry_memory_alloc(CUdeviceptr *ret, size_t bytes) {
    struct call call;
    *ret = 0;
    if (call_begin(&call, CPU_memory_alloc, NEEDS_CONTEXT)) {
        void *data = NULL;
        call.result = cpu_block_create(CPU_BLOCK_DEVICE, call.device, bytes, &data);
        *ret = (CUdeviceptr)(uintptr_t)data;
    }
    return call_end(&call);
}

static CUresult entry_memory_free(CUdeviceptr data) {
    struct call call;
    if (call_begin(&call, CPU_memory_free, NEEDS_CONTEXT))
        call.result = cpu_block_free(CPU_BLOCK_DEVICE, call.device, (void *)(uintptr_t)data);
    return call_end(&call);
}

static CUresult entry_host_alloc(void **ret, size_t bytes, unsigned flags) {
    const unsigned known_flags =
        CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
    struct call call;
    *ret = NULL;
    if (call_begin(&call, CPU_host_alloc, NEEDS_CONTEXT)) {
        if ((flags & ~known_flags) != 0) call.result = CUDA_ERROR_INVALID_VALUE;
        else call.result = cpu_block_create(CPU_BLOCK_PINNED, call.device, bytes, ret);
    }
    return call_end(&call);
}

static CUresult entry_host_free(void *data) {
    struct call call;
    if (call_begin(&call, CPU_host_free, NEEDS_CONTEXT))
        call.result = cpu_block_free(CPU_BLOCK_PINNED, call.device, data);
    return call_end(&call);
}

static CUresult entry_host_device_pointer(CUdeviceptr *ret, void *data, unsigned flags) {
    struct call call;
    *ret = 0;
    if (call_begin(&call, CPU_host_device_pointer, NEEDS_CONTEXT)) {
        if (flags != 0 || !cpu_block_is_mapped(data)) call.result = CUDA_ERROR_INVALID_VALUE;
        else *ret = (CUdeviceptr)(uintptr_t)data; /* one address space, as on every 64-bit host */
    }
    return call_end(&call);
}

static CUresult entry_host_register(void *data, size_t bytes, unsigned flags) {
    const unsigned known_flags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
                                 CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY;
    struct call call;
    if (call_begin(&call, CPU_host_register, NEEDS_CONTEXT)) {
        if ((flags & ~known_flags) != 0) call.result = CUDA_ERROR_INVALID_VALUE;
        else call.result = cpu_block_register(call.device, data, bytes);
    }
    return call_end(&call);
}

static CUresult entry_host_unregister(void *data) {
    struct call call;
    if (call_begin(&call, CPU_host_unregister, NEEDS_CONTEXT)) {
        call.result = cpu_block_free(CPU_BLOCK_REGISTERED, call.device, data);
        if (call.result == CUDA_ERROR_INVALID_VALUE)
            call.result = CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    }
    return call_end(&call);
}

static CUresult entry_copy_to_device(
    CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
    struct call call;
    struct cpu_copy copy = {.to = (void *)(uintptr_t)to, .from = from, .bytes = bytes};
    if (call_begin(&call, CPU_copy_to_device, NEEDS_CONTEXT))
        call.result =
            cpu_enqueue_copy(call.device, CPU_OPERATION_TO_DEVICE, &copy, stream, call.fault);
    return call_end(&call);
}

static CUresult entry_copy_to_host(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
    struct call call;
    struct cpu_copy copy = {.to = to, .from = (void *)(uintptr_t)from, .bytes = bytes};
    if (call_begin(&call, CPU_copy_to_host, NEEDS_CONTEXT))
        call.result =
            cpu_enqueue_copy(call.device, CPU_OPERATION_TO_HOST, &copy, stream, call.fault);
    return call_end(&call);
}

static CUresult entry_fill(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream) {
    struct call call;
    struct cpu_fill fill = {.to = (void *)(uintptr_t)to, .bytes = bytes, .value = value};
    if (call_begin(&call, CPU_fill, NEEDS_CONTEXT))
        call.result = cpu_enqueue_fill(call.device, &fill, stream, call.fault);
    return call_end(&call);
}

static CUresult entry_stream_create(CUstream *ret, unsigned flags) {
    struct call call;
    *ret = NULL;
    if (call_begin(&call, CPU_stream_create, NEEDS_CONTEXT))
        call.result = cpu_stream_create(call.device, flags, ret);
    return call_end(&call);
}

static CUresult entry_stream_destroy(CUstream handle) {
    struct call call;
    if (call_begin(&call, CPU_stream_destroy, NEEDS_CONTEXT)) {
        if (cpu_stream_find(call.device, handle) == NULL) call.result = CUDA_ERROR_INVALID_HANDLE;
        else cpu_stream_destroy(handle);
    }
    return call_end(&call);
}

static CUresult entry_stream_synchronize(CUstream handle) {
    struct call call;
    if (call_begin(&call, CPU_stream_synchronize, NEEDS_CONTEXT)) {
        struct cpu_stream *stream = cpu_stream_find(call.device, handle);
        if (stream == NULL) call.result = CUDA_ERROR_INVALID_HANDLE;
        else call.result = cpu_stream_synchronize(stream);
    }
    return call_end(&call);
}

static CUresult entry_stream_wait_event(
    CUstream stream_handle, CUevent event_handle, unsigned flags) {
    struct call call;
    if (call_begin(&call, CPU_stream_wait_event, NEEDS_CONTEXT)) {
        struct cpu_stream *stream = cpu_stream_find(call.device, stream_handle);
        struct cpu_event *event = cpu_event_find(call.device, event_handle);
        if (stream == NULL || event == NULL) call.result = CUDA_ERROR_INVALID_HANDLE;
        else if (flags != CU_EVENT_WAIT_DEFAULT) call.result = CUDA_ERROR_INVALID_VALUE;
        else call.result = cpu_stream_wait_event(stream, event, call.fault);
    }
    return call_end(&call);
}

static CUresult entry_event_create(CUevent *ret, unsigned flags) {
    struct call call;
    *ret = NULL;
    if (call_begin(&call, CPU_event_create, NEEDS_CONTEXT))
        call.result = cpu_event_create(call.device, flags, ret);
    return call_end(&call);
}

static CUresult entry_event_destroy(CUevent handle) {
    struct call call;
    if (call_begin(&call, CPU_event_destroy, NEEDS_CONTEXT)) {
        if (cpu_event_find(call.device, handle) == NULL) call.result = CUDA_ERROR_INVALID_HANDLE;
        else cpu_event_destroy(handle);
    }
    return call_end(&call);
}

static CUresult entry_event_record(CUevent event_handle, CUstream stream_handle) {
    struct call call;
    if (call_begin(&call, CPU_event_record, NEEDS_CONTEXT)) {
        struct cpu_event *event = cpu_event_find(call.device, event_handle);
        struct cpu_stream *stream = cpu_stream_find(call.device, stream_handle);
        if (event == NULL || stream == NULL) call.result = CUDA_ERROR_INVALID_HANDLE;
        else call.result = cpu_event_record(event, stream, call.fault);
    }
    return call_end(&call);
}

static CUresult entry_event_query(CUevent handle) {
    struct call call;
    if (call_begin(&call, CPU_event_query, NEEDS_CONTEXT)) {
        struct cpu_event *event = cpu_event_find(call.device, handle);
        call.result = event == NULL ? CUDA_ERROR_INVALID_HANDLE : cpu_event_query(event);
    }
    return call_end(&call);
}

static CUresult entry_event_synchronize(CUevent handle) {
    struct call call;
    if (call_begin(&call, CPU_event_synchronize, NEEDS_CONTEXT)) {
        struct cpu_event *event = cpu_event_find(call.device, handle);
        call.result = event == NULL ? CUDA_ERROR_INVALID_HANDLE : cpu_event_synchronize(event);
    }
    return call_end(&call);
}

static CUresult entry_event_elapsed(float *ret_ms, CUevent start_handle, CUevent end_handle) {
    struct call call;
    if (call_begin(&call, CPU_event_elapsed, NEEDS_CONTEXT)) {
        struct cpu_event *start = cpu_event_find(call.device, start_handle);
        struct cpu_event *end = cpu_event_find(call.device, end_handle);
        if (start == NULL || end == NULL) call.result = CUDA_ERROR_INVALID_HANDLE;
        else call.result = cpu_event_elapsed(start, end, ret_ms);
    }
    return call_end(&call);
}

/*
 * The driver passes some options' values as numbers in pointers, and writes sizes back into them.
 */
static struct cpu_module_log find_log(
    unsigned count, const CUjit_option *options, void **values, void ***ret_size) {
    struct cpu_module_log log = {.text = NULL};
    for (unsigned i = 0; i < count; i++) {
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER) log.text = values[i];
        if (options[i] != CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) continue;
        log.bytes = (uintptr_t)values[i];
        *ret_size = &values[i];
    }
    if (log.text == NULL) log.bytes = 0;
    if (log.bytes > 0) log.text[0] = '\0';
    return log;
}

static CUresult entry_module_load(
    CUmodule *ret, const void *image, unsigned count, CUjit_option *options, void **values) {
    struct call call;
    *ret = NULL;
    if (call_begin(&call, CPU_module_load, NEEDS_CONTEXT)) {
        void **log_size = NULL;
        struct cpu_module_log log = find_log(count, options, values, &log_size);
        if (image == NULL) call.result = CUDA_ERROR_INVALID_VALUE;
        else call.result = cpu_module_load(call.device, image, &log, ret);
        if (log_size != NULL && log.bytes > 0)
            *log_size = (void *)(uintptr_t)strnlen(log.text, log.bytes);
    }
    return call_end(&call);
}

static CUresult entry_module_unload(CUmodule handle) {
    struct call call;
    if (call_begin(&call, CPU_module_unload, NEEDS_CONTEXT)) {
        if (cpu_module_find(call.device, handle) == NULL) call.result = CUDA_ERROR_INVALID_HANDLE;
        else cpu_module_unload(handle);
    }
    return call_end(&call);
}

static CUresult entry_module_function(CUfunction *ret, CUmodule handle, const char *name) {
    struct call call;
    *ret = NULL;
    if (call_begin(&call, CPU_module_function, NEEDS_CONTEXT)) {
        struct cpu_module *module = cpu_module_find(call.device, handle);
        if (module == NULL) call.result = CUDA_ERROR_INVALID_HANDLE;
        else call.result = cpu_module_function(module, name, ret);
    }
    return call_end(&call);
}

static CUresult function_attribute(
    const struct cpu_function *function, CUfunction_attribute attribute, int *ret) {
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *ret = CPU_BLOCK_THREADS_MAX; break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: *ret = function->shared_bytes_max; break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS: *ret = CPU_REGISTERS_THREAD; break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: *ret = 0; break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION: *ret = CPU_COMPUTE_MAJOR * 10 + CPU_COMPUTE_MINOR; break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

static CUresult entry_function_attribute(
    int *ret, CUfunction_attribute attribute, CUfunction handle) {
    struct call call;
    if (call_begin(&call, CPU_function_attribute, NEEDS_CONTEXT)) {
        struct cpu_function *function = cpu_function_find(call.device, handle);
        if (function == NULL) call.result = CUDA_ERROR_INVALID_HANDLE;
        else call.result = function_attribute(function, attribute, ret);
    }
    return call_end(&call);
}

static CUresult entry_function_param(
    CUfunction handle, size_t index, size_t *ret_offset, size_t *ret_size) {
    struct call call;
    if (call_begin(&call, CPU_function_param, NEEDS_CONTEXT)) {
        struct cpu_function *function = cpu_function_find(call.device, handle);
        if (function == NULL) call.result = CUDA_ERROR_INVALID_HANDLE;
        else call.result = cpu_function_param(function, index, ret_offset, ret_size);
    }
    return call_end(&call);
}

static CUresult entry_function_set_attribute(
    CUfunction handle, CUfunction_attribute attribute, int value) {
    struct call call;
    if (call_begin(&call, CPU_function_set_attribute, NEEDS_CONTEXT)) {
        struct cpu_function *function = cpu_function_find(call.device, handle);
        bool is_shared = attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        if (function == NULL) call.result = CUDA_ERROR_INVALID_HANDLE;
        else if (!is_shared || value < 0 || value > CPU_SHARED_BYTES_OPTIN)
            call.result = CUDA_ERROR_INVALID_VALUE;
        else function->shared_bytes_max = value;
    }
    return call_end(&call);
}

static CUresult entry_function_occupancy(
    int *ret, CUfunction handle, int block_threads, size_t shared_bytes) {
    struct call call;
    if (call_begin(&call, CPU_function_occupancy, NEEDS_CONTEXT)) {
        if (cpu_function_find(call.device, handle) == NULL) call.result = CUDA_ERROR_INVALID_HANDLE;
        else if (block_threads <= 0) call.result = CUDA_ERROR_INVALID_VALUE;
        else *ret = cpu_occupancy(block_threads, shared_bytes);
    }
    return call_end(&call);
}

static CUresult entry_launch(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
    unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream,
    void **args, void **extra) {
    struct call call;
    struct cpu_shape shape = {
        {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, false};
    if (call_begin(&call, CPU_launch, NEEDS_CONTEXT)) {
        if (extra != NULL) call.result = CUDA_ERROR_NOT_SUPPORTED;
        else
            call.result =
                cpu_enqueue_launch(call.device, function, &shape, args, stream, call.fault);
    }
    return call_end(&call);
}

static CUresult entry_launch_cooperative(CUfunction function, unsigned grid_x, unsigned grid_y,
    unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
    CUstream stream, void **args) {
    struct call call;
    struct cpu_shape shape = {
        {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, true};
    if (call_begin(&call, CPU_launch_cooperative, NEEDS_CONTEXT)) {
        if (!cpu_shape_fits_at_once(&shape)) call.result = CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
        else
            call.result =
                cpu_enqueue_launch(call.device, function, &shape, args, stream, call.fault);
    }
    return call_end(&call);
}

static CUresult entry_graph_create(CUgraph *ret, unsigned flags) {
    struct call call;
    *ret = NULL;
    if (call_begin(&call, CPU_graph_create, NEEDS_CONTEXT)) {
        if (flags != 0) call.result = CUDA_ERROR_INVALID_VALUE;
        else call.result = cpu_graph_create(call.device, ret);
    }
    return call_end(&call);
}

static CUresult entry_graph_destroy(CUgraph handle) {
    struct call call;
    if (call_begin(&call, CPU_graph_destroy, NEEDS_CONTEXT))
        call.result = cpu_graph_destroy(call.device, handle);
    return call_end(&call);
}

static CUresult entry_graph_add_kernel(CUgraphNode *ret, CUgraph handle,
    const CUgraphNode *dependencies, size_t count, const CUDA_KERNEL_NODE_PARAMS *params) {
    struct call call;
    *ret = NULL;
    if (call_begin(&call, CPU_graph_add_kernel, NEEDS_CONTEXT))
        call.result = cpu_graph_add(call.device, handle, dependencies, count, params, ret);
    return call_end(&call);
}

static CUresult entry_graph_instantiate(
    CUgraphExec *ret, CUgraph handle, unsigned long long flags) {
    struct call call;
    *ret = NULL;
    if (call_begin(&call, CPU_graph_instantiate, NEEDS_CONTEXT)) {
        if (flags != 0) call.result = CUDA_ERROR_INVALID_VALUE;
        else call.result = cpu_graph_instantiate(call.device, handle, ret);
    }
    return call_end(&call);
}

static CUresult entry_graph_exec_destroy(CUgraphExec handle) {
    struct call call;
    if (call_begin(&call, CPU_graph_exec_destroy, NEEDS_CONTEXT))
        call.result = cpu_graph_exec_destroy(call.device, handle);
    return call_end(&call);
}

static CUresult entry_graph_exec_set_kernel(
    CUgraphExec handle, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params) {
    struct call call;
    if (call_begin(&call, CPU_graph_exec_set_kernel, NEEDS_CONTEXT))
        call.result = cpu_graph_exec_set(call.device, handle, node, params);
    return call_end(&call);
}

static CUresult entry_graph_launch(CUgraphExec handle, CUstream stream) {
    struct call call;
    if (call_begin(&call, CPU_graph_launch, NEEDS_CONTEXT))
        call.result = cpu_graph_exec_launch(call.device, handle, stream, call.fault);
    return call_end(&call);
}

void cpu_driver_table(struct gpu_driver *ret) {
    *ret = (struct gpu_driver){.name = "cpu",
#define X(field, function, version) .field = entry_##field,
        GPU_DRIVER_LIST(X)
#undef X
    };
}
