/**
 * Graphs: launches that come again and again in the same order go to the device with one call of
 * the driver, not one each.
 *
 * The launches of a job, or of a coalesced run, are gathered in a list. A list of the same kernels
 * that has come GRAPH_PLAIN_RUNS times is made a graph and kept, because to make one takes as long
 * as several runs; only nodes whose arguments or shapes differ are changed before the graph is
 * launched again. A batch has graphs of its own, because its
 * slabs, and so most addresses in arguments, are the same each time. At most GRAPHS_MAX are kept;
 * another takes the place of the one that was not used for longest.
 *
 * A graph is used as long as it takes the lane less time than launches one by one, as measured: a
 * batch can lose no more than that time, in which the device may have to wait. The slower way is
 * tried again from time to time.
 *
 * A graph that the driver cannot make, change or launch is not used; its launches go one by one. A
 * kernel's fault shows at the batch's fence, as with launches one by one. Modules are held as long
 * as a graph has kernels of them.
 *
 * Lifetime: graphs_create() to graphs_destroy(), while the modules are there. Threads: the lane's.
 */
#ifndef BATCH_GRAPHS_H
#define BATCH_GRAPHS_H

#include "batch/kernel_launch.h"

enum {
    GRAPHS_MAX = 8,
    GRAPH_LAUNCHES_MIN = 8, /* fewer are launched one by one */
    GRAPH_PLAIN_RUNS = 6    /* of a list, before it is made a graph */
};

struct graphs;

/** Whether the driver has all functions for graphs; before CUDA 12 it may lack some. */
bool graphs_can(const struct gpu_driver *driver);

/** ERR_NO_MEMORY. What is launched counts in `telemetry`. */
MUST_CHECK enum err graphs_create(const struct device *device, CUstream stream,
    struct batch_telemetry *telemetry, struct graphs **ret, struct error *err);
void graphs_destroy(struct graphs *graphs); /* NULL is fine */

/** Gathers a launch, whose arguments are copied. Errors are those of the launches before it. */
MUST_CHECK enum err graphs_add(
    struct graphs *graphs, const struct kernel_launch *launch, struct error *err);

/** Launches what was gathered, and counts its launches. After an error too, nothing is left. */
MUST_CHECK enum err graphs_flush(struct graphs *graphs, struct error *err);

#endif
