/** Checks work against memory and limits, then puts it on its stream. */
#ifndef CPU_DRIVER_ENQUEUE_H
#define CPU_DRIVER_ENQUEUE_H

#include "cpu_driver/operation.h"

/** `kind` says which way. `is_pageable` of `copy` is ignored. */
CUresult cpu_enqueue_copy(struct cpu_device *device, enum cpu_operation_kind kind,
    const struct cpu_copy *copy, CUstream stream, struct cpu_fault fault);

CUresult cpu_enqueue_fill(struct cpu_device *device, const struct cpu_fill *fill, CUstream stream,
    struct cpu_fault fault);

/** Checks a launch that is enqueued later. The caller owns `*ret`. */
CUresult cpu_launch_prepare(const struct cpu_device *device, CUfunction function,
    const struct cpu_shape *shape, void **args, struct cpu_launch **ret);

/** Takes the launch, which may be NULL; NULL when memory is short. */
struct cpu_operation *cpu_operation_of(struct cpu_launch *launch, struct cpu_fault fault);

CUresult cpu_enqueue_launch(struct cpu_device *device, CUfunction function,
    const struct cpu_shape *shape, void **args, CUstream stream, struct cpu_fault fault);

/** False if a cooperative launch could not run all blocks at once. */
bool cpu_shape_fits_at_once(const struct cpu_shape *shape);

#endif
