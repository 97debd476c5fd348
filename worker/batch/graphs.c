#include "batch/graphs.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/invariant.h"

enum {
    RISE = 8,      /* a spike passes: 1/8 of what is slower counts, */
    FALL = 2,      /* and 1/2 of what is quicker */
    TRY_AGAIN = 64 /* runs after which the slower way is tried again */
};

/* Launches that came, and may become a graph. */
struct graph {
    uint64_t signature;
    uint64_t runs, last_run;     /* how many, and when among all runs the last one was */
    uint64_t plain_ns, graph_ns; /* what a run takes one by one, and as a graph; 0: not known yet */
    bool is_refused;             /* the driver could not make or launch it */
    struct launch_list
        *launches;  /* as the nodes have them, with modules held; NULL: no graph yet */
    CUgraph source; /* the nodes are its own */
    CUgraphExec exec;
    CUgraphNode nodes[LAUNCHES_MAX];
};

struct graphs {
    const struct device *device;
    CUstream stream;
    struct batch_telemetry *telemetry;
    struct launch_list *gathered;
    uint64_t runs;
    struct graph items[GRAPHS_MAX];
};

bool graphs_can(const struct gpu_driver *driver) {
#define X(field, function, version) &&driver->field != NULL
    return true GPU_DRIVER_GRAPH_LIST(X);
#undef X
}

enum err graphs_create(const struct device *device, CUstream stream,
    struct batch_telemetry *telemetry, struct graphs **ret, struct error *err) {
    struct graphs *graphs = calloc(1, sizeof *graphs);
    struct launch_list *gathered = malloc(sizeof *gathered);
    if (graphs == NULL || gathered == NULL) {
        free(graphs);
        free(gathered);
        return error_no_memory(err, "no memory for graphs");
    }
    launch_list_clear(gathered);
    *graphs = (struct graphs){
        .device = device, .stream = stream, .telemetry = telemetry, .gathered = gathered};
    *ret = graphs;
    return ERR_OK;
}

/* Of a graph that was not finished, too. One that is on the device runs to its end. */
static void destroy(const struct graphs *graphs, struct graph *graph) {
    const struct gpu_driver *driver = graphs->device->driver;
    if (graph->exec != NULL) (void)driver->graph_exec_destroy(graph->exec);
    if (graph->source != NULL) (void)driver->graph_destroy(graph->source);
    graph->exec = NULL;
    graph->source = NULL;
    if (graph->launches == NULL) return;
    for (size_t i = 0; i < graph->launches->count; i++)
        module_release(graph->launches->items[i].launch.module);
    free(graph->launches);
    graph->launches = NULL;
}

void graphs_destroy(struct graphs *graphs) {
    if (graphs == NULL) return;
    for (size_t i = 0; i < GRAPHS_MAX; i++) destroy(graphs, &graphs->items[i]);
    free(graphs->gathered);
    free(graphs);
}

static CUDA_KERNEL_NODE_PARAMS node_params(const struct kernel_launch *launch) {
    return (CUDA_KERNEL_NODE_PARAMS){.func = launch->function,
        .gridDimX = launch->grid[0],
        .gridDimY = launch->grid[1],
        .gridDimZ = launch->grid[2],
        .blockDimX = launch->block[0],
        .blockDimY = launch->block[1],
        .blockDimZ = launch->block[2],
        .sharedMemBytes = launch->shared_bytes,
        .kernelParams = launch->params};
}

/* The first run counts as it is. */
static void learn(uint64_t *average_ns, uint64_t ns) {
    uint64_t before = *average_ns > 0 ? *average_ns : ns;
    *average_ns = ns < before ? before - (before - ns) / FALL : before + (ns - before) / RISE;
}

/* Each node waits for the one before it, as launches on a stream do. */
static enum err make(const struct graphs *graphs, struct graph *graph, struct error *err) {
    const struct gpu_driver *driver = graphs->device->driver;
    const struct launch_list *list = graphs->gathered;
    graph->launches = malloc(sizeof *graph->launches);
    if (graph->launches == NULL) return error_no_memory(err, "no memory for a graph");
    launch_list_clear(graph->launches);
    enum err code = GPU_TRY(driver, graph_create(&graph->source, 0), err);
    for (size_t i = 0; i < list->count && code == ERR_OK; i++) {
        const CUDA_KERNEL_NODE_PARAMS params = node_params(&list->items[i].launch);
        const CUgraphNode *before = i > 0 ? &graph->nodes[i - 1] : NULL;
        code = GPU_TRY(
            driver, graph_add_kernel(&graph->nodes[i], graph->source, before, i > 0, &params), err);
    }
    if (code != ERR_OK) return code;
    return GPU_TRY(driver, graph_instantiate(&graph->exec, graph->source, 0), err);
}

static enum err change(const struct graphs *graphs, const struct graph *graph, struct error *err) {
    const struct gpu_driver *driver = graphs->device->driver;
    const struct launch_list *list = graphs->gathered;
    enum err code = ERR_OK;
    for (size_t i = 0; i < list->count && code == ERR_OK; i++) {
        if (launch_list_same_at(graph->launches, list, i)) continue;
        const CUDA_KERNEL_NODE_PARAMS params = node_params(&list->items[i].launch);
        code = GPU_TRY(driver, graph_exec_set_kernel(graph->exec, graph->nodes[i], &params), err);
    }
    return code;
}

/* The nodes have what was gathered now. If they had the same kernels before, the modules are held
 * already. */
static void keep(struct graphs *graphs, struct graph *graph) {
    struct launch_list *before = graph->launches;
    graph->launches = graphs->gathered;
    graphs->gathered = before;
    for (size_t i = before->count; i < graph->launches->count; i++)
        module_hold(graph->launches->items[i].launch.module);
}

/* What was gathered, with one call. After an error nothing was launched. */
static enum err launch_as_graph(struct graphs *graphs, struct graph *graph, struct error *err) {
    bool is_new = graph->launches == NULL;
    uint64_t from_ns = clock_ns();
    enum err code = is_new ? make(graphs, graph, err) : change(graphs, graph, err);
    if (code == ERR_OK)
        code = GPU_TRY(graphs->device->driver, graph_launch(graph->exec, graphs->stream), err);
    if (code != ERR_OK) return code;
    if (!is_new) learn(&graph->graph_ns, clock_ns() - from_ns);
    keep(graphs, graph);
    graphs->telemetry->graph_launches++;
    for (size_t i = 0; i < graph->launches->count; i++) {
        graphs->telemetry->launches++;
        graphs->telemetry->coalesced_launches += graph->launches->items[i].launch.is_batched;
    }
    return ERR_OK;
}

static enum err launch_each(const struct graphs *graphs, struct error *err) {
    const struct launch_list *list = graphs->gathered;
    enum err code = ERR_OK;
    for (size_t i = 0; i < list->count && code == ERR_OK; i++)
        code = kernel_launch_enqueue(
            graphs->device, graphs->stream, &list->items[i].launch, graphs->telemetry, err);
    return code;
}

/* A list that came before, or the place of the one that did not come for longest. */
static struct graph *find(struct graphs *graphs) {
    const struct launch_list *list = graphs->gathered;
    struct graph *oldest = &graphs->items[0];
    for (size_t i = 0; i < GRAPHS_MAX; i++) {
        struct graph *graph = &graphs->items[i];
        bool is_same = graph->launches == NULL || launch_list_same_kernels(graph->launches, list);
        if (graph->runs > 0 && graph->signature == list->signature && is_same) return graph;
        if (graph->last_run < oldest->last_run) oldest = graph;
    }
    destroy(graphs, oldest);
    *oldest = (struct graph){.signature = list->signature};
    return oldest;
}

static bool prefers_graph(const struct graph *graph) {
    if (graph->is_refused || graph->runs <= GRAPH_PLAIN_RUNS) return false;
    bool is_quicker = graph->graph_ns == 0 || graph->graph_ns < graph->plain_ns;
    return graph->runs % TRY_AGAIN == 0 ? !is_quicker : is_quicker;
}

static enum err launch_found(struct graphs *graphs, struct graph *graph, struct error *err) {
    graph->last_run = ++graphs->runs;
    graph->runs++;
    if (prefers_graph(graph)) {
        enum err code = launch_as_graph(graphs, graph, err);
        if (code == ERR_OK || err_is_sticky(code)) return code;
        destroy(graphs, graph);
        graph->is_refused = true;
        graphs->telemetry->graphs_refused++;
    }
    uint64_t from_ns = clock_ns();
    enum err code = launch_each(graphs, err);
    learn(&graph->plain_ns, clock_ns() - from_ns);
    return code;
}

enum err graphs_flush(struct graphs *graphs, struct error *err) {
    enum err code = graphs->gathered->count < GRAPH_LAUNCHES_MIN
                        ? launch_each(graphs, err)
                        : launch_found(graphs, find(graphs), err);
    launch_list_clear(graphs->gathered);
    return code;
}

enum err graphs_add(struct graphs *graphs, const struct kernel_launch *launch, struct error *err) {
    if (launch_list_add(graphs->gathered, launch)) return ERR_OK;
    enum err code = graphs_flush(graphs, err);
    if (code != ERR_OK) return code;
    bool has_room = launch_list_add(graphs->gathered, launch);
    INVARIANT(has_room, "an empty list has room for a launch");
    return ERR_OK;
}
