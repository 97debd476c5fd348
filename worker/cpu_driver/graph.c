#include "cpu_driver/graph.h"

#include <stdlib.h>

#include "cpu_driver/enqueue.h"
#include "cpu_driver/handle.h"
#include "cpu_driver/stream.h"

/* Also an executable graph, which has launches of its own. A node is a launch's number, from 1. */
struct cpu_graph {
    struct cpu_device *device;
    size_t count, room;
    struct cpu_launch **launches;
};

static struct cpu_graph *graph_find(
    const struct cpu_device *device, enum cpu_handle_kind kind, const void *handle) {
    struct cpu_graph *graph = cpu_handle_find(kind, handle);
    return graph != NULL && graph->device == device ? graph : NULL;
}

/* NULL when memory is short. */
static void *graph_create(
    struct cpu_device *device, enum cpu_handle_kind kind, struct cpu_graph **ret) {
    struct cpu_graph *graph = calloc(1, sizeof *graph);
    void *handle = graph != NULL ? cpu_handle_create(kind, graph) : NULL;
    if (handle == NULL) {
        free(graph);
        return NULL;
    }
    graph->device = device;
    cpu.counters.graphs_live++;
    *ret = graph;
    return handle;
}

static void graph_destroy(struct cpu_graph *graph, const void *handle) {
    cpu_handle_drop(handle);
    cpu.counters.graphs_live--;
    for (size_t i = 0; i < graph->count; i++) cpu_launch_destroy(graph->launches[i]);
    free(graph->launches);
    free(graph);
}

/* Takes the launch, which may be NULL. */
static CUresult graph_append(struct cpu_graph *graph, struct cpu_launch *launch) {
    if (graph->count == graph->room) {
        size_t room = graph->room == 0 ? 64 : graph->room * 2;
        struct cpu_launch **grown = realloc(graph->launches, room * sizeof grown[0]);
        if (grown != NULL) {
            graph->launches = grown;
            graph->room = room;
        }
    }
    if (launch == NULL || graph->count == graph->room) {
        cpu_launch_destroy(launch);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    graph->launches[graph->count++] = launch;
    return CUDA_SUCCESS;
}

static CUresult prepare(const struct cpu_device *device, const CUDA_KERNEL_NODE_PARAMS *params,
    struct cpu_launch **ret) {
    const struct cpu_shape shape = {{params->gridDimX, params->gridDimY, params->gridDimZ},
        {params->blockDimX, params->blockDimY, params->blockDimZ}, params->sharedMemBytes, false};
    if (params->extra != NULL) return CUDA_ERROR_NOT_SUPPORTED;
    return cpu_launch_prepare(device, params->func, &shape, params->kernelParams, ret);
}

static bool has_node(const struct cpu_graph *graph, CUgraphNode node) {
    return node != NULL && (uintptr_t)node <= graph->count;
}

CUresult cpu_graph_create(struct cpu_device *device, CUgraph *ret) {
    struct cpu_graph *graph;
    *ret = graph_create(device, CPU_HANDLE_GRAPH, &graph);
    return *ret == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUresult cpu_graph_destroy(const struct cpu_device *device, CUgraph handle) {
    struct cpu_graph *graph = graph_find(device, CPU_HANDLE_GRAPH, handle);
    if (graph == NULL) return CUDA_ERROR_INVALID_VALUE;
    graph_destroy(graph, handle);
    return CUDA_SUCCESS;
}

CUresult cpu_graph_add(const struct cpu_device *device, CUgraph handle,
    const CUgraphNode *dependencies, size_t count, const CUDA_KERNEL_NODE_PARAMS *params,
    CUgraphNode *ret) {
    struct cpu_graph *graph = graph_find(device, CPU_HANDLE_GRAPH, handle);
    if (graph == NULL) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++)
        if (!has_node(graph, dependencies[i])) return CUDA_ERROR_INVALID_VALUE;
    struct cpu_launch *launch;
    CUresult result = prepare(device, params, &launch);
    if (result == CUDA_SUCCESS) result = graph_append(graph, launch);
    if (result == CUDA_SUCCESS) *ret = (CUgraphNode)graph->count;
    return result;
}

CUresult cpu_graph_instantiate(struct cpu_device *device, CUgraph handle, CUgraphExec *ret) {
    const struct cpu_graph *graph = graph_find(device, CPU_HANDLE_GRAPH, handle);
    if (graph == NULL) return CUDA_ERROR_INVALID_VALUE;
    struct cpu_graph *exec;
    CUgraphExec exec_handle = graph_create(device, CPU_HANDLE_GRAPH_EXEC, &exec);
    if (exec_handle == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < graph->count && result == CUDA_SUCCESS; i++)
        result = graph_append(exec, cpu_launch_copy(graph->launches[i]));
    if (result == CUDA_SUCCESS) *ret = exec_handle;
    else graph_destroy(exec, exec_handle);
    return result;
}

CUresult cpu_graph_exec_destroy(const struct cpu_device *device, CUgraphExec handle) {
    struct cpu_graph *exec = graph_find(device, CPU_HANDLE_GRAPH_EXEC, handle);
    if (exec == NULL) return CUDA_ERROR_INVALID_VALUE;
    graph_destroy(exec, handle);
    return CUDA_SUCCESS;
}

CUresult cpu_graph_exec_set(const struct cpu_device *device, CUgraphExec handle, CUgraphNode node,
    const CUDA_KERNEL_NODE_PARAMS *params) {
    struct cpu_graph *exec = graph_find(device, CPU_HANDLE_GRAPH_EXEC, handle);
    if (exec == NULL || !has_node(exec, node)) return CUDA_ERROR_INVALID_VALUE;
    struct cpu_launch *launch;
    CUresult result = prepare(device, params, &launch);
    if (result != CUDA_SUCCESS) return result;
    struct cpu_launch **place = &exec->launches[(uintptr_t)node - 1];
    cpu_launch_destroy(*place);
    *place = launch;
    return CUDA_SUCCESS;
}

static struct cpu_operation *take_first(struct cpu_operation **list) {
    struct cpu_operation *first = *list;
    if (first == NULL) return NULL;
    *list = first->next;
    first->next = NULL;
    return first;
}

CUresult cpu_graph_exec_launch(const struct cpu_device *device, CUgraphExec handle,
    CUstream stream_handle, struct cpu_fault fault) {
    const struct cpu_graph *exec = graph_find(device, CPU_HANDLE_GRAPH_EXEC, handle);
    struct cpu_stream *stream = cpu_stream_find(device, stream_handle);
    if (exec == NULL) return CUDA_ERROR_INVALID_VALUE;
    if (stream == NULL) return CUDA_ERROR_INVALID_HANDLE;
    struct cpu_operation *all = NULL, **end = &all, *operation;
    for (size_t i = 0; i < exec->count; i++) {
        *end = cpu_operation_of(cpu_launch_copy(exec->launches[i]), fault);
        if (*end == NULL) goto fail;
        end = &(*end)->next;
        fault = (struct cpu_fault){.effect = CPU_EFFECT_NONE};
    }
    while ((operation = take_first(&all)) != NULL) cpu_stream_enqueue(stream, operation);
    return CUDA_SUCCESS;
fail:
    while ((operation = take_first(&all)) != NULL) cpu_operation_destroy(operation);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

static void clear(const struct cpu_device *device, enum cpu_handle_kind kind) {
    size_t cursor = 0;
    void *handle;
    while ((handle = cpu_handle_next(kind, &cursor)) != NULL) {
        struct cpu_graph *graph = graph_find(device, kind, handle);
        if (graph != NULL) graph_destroy(graph, handle);
    }
}

void cpu_graphs_clear(const struct cpu_device *device) {
    clear(device, CPU_HANDLE_GRAPH);
    clear(device, CPU_HANDLE_GRAPH_EXEC);
}
