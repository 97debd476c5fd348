#include "cpu_driver/enqueue.h"

#include <string.h>

#include "cpu_driver/attributes.h"
#include "cpu_driver/limits.h"
#include "cpu_driver/module.h"
#include "cpu_driver/stream.h"

/* The device's block that holds the range, or NULL. */
static struct cpu_block *find_device_range(
    const struct cpu_device *device, const void *address, size_t bytes) {
    struct cpu_block *block = cpu_block_find(address);
    bool is_ours = block != NULL && block->kind == CPU_BLOCK_DEVICE && block->device == device &&
                   cpu_block_covers(block, address, bytes);
    return is_ours ? block : NULL;
}

/*
 * True for a host range that a copy can use: either all of it is pinned (*ret is its block), or
 * none of it (*ret is NULL).
 */
static bool find_host_range(const void *address, size_t bytes, struct cpu_block **ret) {
    struct cpu_block *block = cpu_block_find(address);
    if (address == NULL) return false;
    *ret = block;
    return block == NULL ||
           (block->kind != CPU_BLOCK_DEVICE && cpu_block_covers(block, address, bytes));
}

CUresult cpu_enqueue_copy(struct cpu_device *device, enum cpu_operation_kind kind,
    const struct cpu_copy *copy, CUstream handle, struct cpu_fault fault) {
    bool is_up = kind == CPU_OPERATION_TO_DEVICE;
    struct cpu_stream *stream = cpu_stream_find(device, handle);
    if (stream == NULL) return CUDA_ERROR_INVALID_HANDLE;
    if (copy->bytes == 0) return CUDA_SUCCESS;
    struct cpu_block *device_block =
        find_device_range(device, is_up ? copy->to : copy->from, copy->bytes);
    struct cpu_block *host_block = NULL;
    if (device_block == NULL ||
        !find_host_range(is_up ? copy->from : copy->to, copy->bytes, &host_block))
        return CUDA_ERROR_INVALID_VALUE;
    struct cpu_operation *operation = cpu_operation_create(kind, fault);
    if (operation == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    operation->copy = *copy;
    operation->copy.is_pageable = host_block == NULL;
    enum cpu_access of_source = CPU_READS, of_target = CPU_WRITES;
    cpu_operation_use(operation, (struct cpu_use){device_block, is_up ? of_target : of_source,
                                     is_up ? copy->to : copy->from, copy->bytes});
    if (host_block != NULL)
        cpu_operation_use(operation, (struct cpu_use){host_block, is_up ? of_source : of_target,
                                         is_up ? copy->from : copy->to, copy->bytes});
    cpu_stream_enqueue(stream, operation);
    return CUDA_SUCCESS;
}

CUresult cpu_enqueue_fill(struct cpu_device *device, const struct cpu_fill *fill, CUstream handle,
    struct cpu_fault fault) {
    struct cpu_stream *stream = cpu_stream_find(device, handle);
    if (stream == NULL) return CUDA_ERROR_INVALID_HANDLE;
    if (fill->bytes == 0) return CUDA_SUCCESS;
    struct cpu_block *block = find_device_range(device, fill->to, fill->bytes);
    if (block == NULL) return CUDA_ERROR_INVALID_VALUE;
    struct cpu_operation *operation = cpu_operation_create(CPU_OPERATION_FILL, fault);
    if (operation == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    operation->fill = *fill;
    cpu_operation_use(operation, (struct cpu_use){block, CPU_WRITES, fill->to, fill->bytes});
    cpu_stream_enqueue(stream, operation);
    return CUDA_SUCCESS;
}

static CUresult check_shape(const struct cpu_function *function, const struct cpu_shape *shape) {
    const unsigned grid_max[3] = {CPU_GRID_X_MAX, CPU_GRID_Y_MAX, CPU_GRID_Z_MAX};
    const unsigned block_max[3] = {CPU_BLOCK_X_MAX, CPU_BLOCK_Y_MAX, CPU_BLOCK_Z_MAX};
    for (int axis = 0; axis < 3; axis++) {
        if (shape->grid[axis] == 0 || shape->grid[axis] > grid_max[axis] ||
            shape->block[axis] == 0 || shape->block[axis] > block_max[axis])
            return CUDA_ERROR_INVALID_VALUE;
    }
    if (shape->block[0] * shape->block[1] * shape->block[2] > CPU_BLOCK_THREADS_MAX ||
        shape->shared_bytes > (unsigned)function->shared_bytes_max)
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

CUresult cpu_launch_prepare(const struct cpu_device *device, CUfunction handle,
    const struct cpu_shape *shape, void **args, struct cpu_launch **ret) {
    const struct cpu_function *function = cpu_function_find(device, handle);
    if (function == NULL) return CUDA_ERROR_INVALID_HANDLE;
    CUresult result = check_shape(function, shape);
    if (result != CUDA_SUCCESS) return result;
    if (args == NULL && function->kernel->param_count > 0) return CUDA_ERROR_INVALID_VALUE;
    *ret = cpu_launch_create(function->kernel, function->module, shape, args);
    return *ret != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Assumes that the kernel uses each block that an argument could point into. */
static void use_arguments(struct cpu_operation *operation) {
    const struct cpu_launch *launch = operation->launch;
    for (uint32_t i = 0; i < launch->kernel->param_count; i++) {
        void *pointer;
        if (launch->kernel->param_bytes[i] != sizeof pointer) continue;
        memcpy(&pointer, launch->args[i], sizeof pointer);
        struct cpu_block *block = cpu_block_find(pointer);
        if (block != NULL)
            cpu_operation_use(operation, (struct cpu_use){block, CPU_KERNEL, pointer, 1});
        else if (cpu_block_was_freed(pointer))
            operation->fault =
                (struct cpu_fault){.effect = CPU_EFFECT_LOSE, .result = CUDA_ERROR_ILLEGAL_ADDRESS};
    }
}

struct cpu_operation *cpu_operation_of(struct cpu_launch *launch, struct cpu_fault fault) {
    struct cpu_operation *operation =
        launch != NULL ? cpu_operation_create(CPU_OPERATION_LAUNCH, fault) : NULL;
    if (operation == NULL) {
        cpu_launch_destroy(launch);
        return NULL;
    }
    operation->launch = launch;
    use_arguments(operation);
    return operation;
}

CUresult cpu_enqueue_launch(struct cpu_device *device, CUfunction function,
    const struct cpu_shape *shape, void **args, CUstream stream_handle, struct cpu_fault fault) {
    struct cpu_stream *stream = cpu_stream_find(device, stream_handle);
    if (stream == NULL) return CUDA_ERROR_INVALID_HANDLE;
    struct cpu_launch *launch;
    CUresult result = cpu_launch_prepare(device, function, shape, args, &launch);
    if (result != CUDA_SUCCESS) return result;
    struct cpu_operation *operation = cpu_operation_of(launch, fault);
    if (operation == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    cpu_stream_enqueue(stream, operation);
    return CUDA_SUCCESS;
}

bool cpu_shape_fits_at_once(const struct cpu_shape *shape) {
    uint64_t threads = (uint64_t)shape->block[0] * shape->block[1] * shape->block[2];
    if (threads == 0 || threads > CPU_BLOCK_THREADS_MAX) return true; /* refused for that reason */
    uint64_t blocks = (uint64_t)shape->grid[0] * shape->grid[1] * shape->grid[2];
    return blocks <=
           (uint64_t)cpu_occupancy((int)threads, shape->shared_bytes) * CPU_MULTIPROCESSORS;
}
