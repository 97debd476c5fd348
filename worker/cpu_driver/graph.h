/**
 * Graphs of kernel launches. They run in the order in which they were added, which satisfies every
 * dependency: a node can only wait for one that was there before it.
 *
 * A module that is unloaded while a graph has launches of it counts as a mistake of the caller.
 */
#ifndef CPU_DRIVER_GRAPH_H
#define CPU_DRIVER_GRAPH_H

#include "cpu_driver/state.h"

CUresult cpu_graph_create(struct cpu_device *device, CUgraph *ret);
CUresult cpu_graph_destroy(const struct cpu_device *device, CUgraph handle);

CUresult cpu_graph_add(const struct cpu_device *device, CUgraph handle,
    const CUgraphNode *dependencies, size_t count, const CUDA_KERNEL_NODE_PARAMS *params,
    CUgraphNode *ret);

/** What is executed is a copy: it outlives the graph. */
CUresult cpu_graph_instantiate(struct cpu_device *device, CUgraph handle, CUgraphExec *ret);
CUresult cpu_graph_exec_destroy(const struct cpu_device *device, CUgraphExec handle);

/** Changes a launch for those that come after; what is queued stays as it is. */
CUresult cpu_graph_exec_set(const struct cpu_device *device, CUgraphExec handle, CUgraphNode node,
    const CUDA_KERNEL_NODE_PARAMS *params);

/** Enqueues all launches, or none. The fault strikes the first. */
CUresult cpu_graph_exec_launch(
    const struct cpu_device *device, CUgraphExec handle, CUstream stream, struct cpu_fault fault);

/** Destroys all graphs of the device, executable ones too. */
void cpu_graphs_clear(const struct cpu_device *device);

#endif
