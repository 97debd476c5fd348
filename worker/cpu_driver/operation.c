#include "cpu_driver/operation.h"

#include <stdlib.h>
#include <string.h>

#include "base/invariant.h"
#include "cpu_driver/module.h"
#include "cpu_driver/stream.h"

struct cpu_operation *cpu_operation_create(enum cpu_operation_kind kind, struct cpu_fault fault) {
    struct cpu_operation *operation = calloc(1, sizeof *operation);
    if (operation == NULL) return NULL;
    operation->kind = kind;
    operation->fault = fault;
    return operation;
}

void cpu_operation_use(
    struct cpu_operation *operation, struct cpu_block *block, enum cpu_access access) {
    INVARIANT(operation->use_count < KERNEL_PARAMS_MAX,
        "an operation has room for each block that it names");
    operation->uses[operation->use_count++] = (struct cpu_use){.block = block, .access = access};
    block->users++;
}

static void run_copy(const struct cpu_copy *copy, uint64_t *moved) {
    pthread_mutex_unlock(&cpu.lock);
    memcpy(copy->to, copy->from, copy->bytes);
    pthread_mutex_lock(&cpu.lock);
    *moved += copy->bytes;
    if (copy->is_pageable) cpu.counters.copies_pageable++;
}

static void run_fill(const struct cpu_fill *fill) {
    pthread_mutex_unlock(&cpu.lock);
    memset(fill->to, fill->value, fill->bytes);
    pthread_mutex_lock(&cpu.lock);
    cpu.counters.bytes_filled += fill->bytes;
}

static CUresult run_launch(const struct cpu_operation *operation, struct cpu_engine *engine) {
    pthread_mutex_unlock(&cpu.lock);
    CUresult result = cpu_launch_run(operation->launch, engine);
    pthread_mutex_lock(&cpu.lock);
    cpu.counters.launches++;
    for (unsigned i = 0; i < operation->use_count; i++)
        cpu_block_check_guards(operation->uses[i].block);
    return result;
}

/* Memory that was freed while this operation was queued. */
static bool names_freed_memory(const struct cpu_operation *operation) {
    for (unsigned i = 0; i < operation->use_count; i++)
        if (operation->uses[i].block->is_freed) return true;
    return false;
}

static CUresult suffer(const struct cpu_fault *fault, struct cpu_stream *stream) {
    if (fault->effect == CPU_EFFECT_HANG) cpu_stream_stall(stream, UINT64_MAX);
    if (fault->effect == CPU_EFFECT_SLOW) cpu_stream_stall(stream, fault->delay_ns);
    return fault->effect == CPU_EFFECT_LOSE ? fault->result : CUDA_SUCCESS;
}

CUresult cpu_operation_run(
    struct cpu_operation *operation, struct cpu_stream *stream, struct cpu_engine *engine) {
    CUresult result = suffer(&operation->fault, stream);
    if (result != CUDA_SUCCESS || cpu.is_stopping) return result;
    if (names_freed_memory(operation)) return CUDA_ERROR_ILLEGAL_ADDRESS;
    switch (operation->kind) {
    case CPU_OPERATION_TO_DEVICE:
        run_copy(&operation->copy, &cpu.counters.bytes_to_device);
        return CUDA_SUCCESS;
    case CPU_OPERATION_TO_HOST:
        run_copy(&operation->copy, &cpu.counters.bytes_to_host);
        return CUDA_SUCCESS;
    case CPU_OPERATION_FILL: run_fill(&operation->fill); return CUDA_SUCCESS;
    case CPU_OPERATION_LAUNCH: return run_launch(operation, engine);
    case CPU_OPERATION_RECORD:
        cpu_event_pass(operation->event,
            (struct cpu_point){.slot = stream->slot, .number = operation->number});
        return CUDA_SUCCESS;
    case CPU_OPERATION_WAIT: return cpu_point_wait(operation->wait, stream->device);
    }
    return CUDA_ERROR_UNKNOWN;
}

void cpu_operation_destroy(struct cpu_operation *operation) {
    if (operation == NULL) return;
    for (unsigned i = 0; i < operation->use_count; i++) cpu_block_unuse(operation->uses[i].block);
    if (operation->kind == CPU_OPERATION_RECORD) cpu_event_unref(operation->event);
    if (operation->kind == CPU_OPERATION_LAUNCH) {
        cpu_module_unuse(operation->launch->module);
        free(operation->launch);
    }
    free(operation);
}
