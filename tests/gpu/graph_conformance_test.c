/* What the worker relies on where a driver has graphs, of either driver. */
#include "gpu/driver_harness.h"

enum { NODES = 3, N = 4 };

static CUstream stream;
static CUdeviceptr memory;
static uint32_t *values; /* pinned */
static CUfunction add, rotate;

static int set_up(void **state) {
    const struct gpu_cpu_options cpu = {.device_count = 1, .memory_bytes = HARNESS_MEMORY_BYTES};
    harness_open(&cpu);
    if (driver->graph_launch == NULL) return 0;
    stream = harness_stream();
    memory = harness_memory(N * sizeof values[0]);
    values = harness_pinned(N * sizeof values[0]);
    add = harness_probe("probe_add");
    rotate = harness_probe("probe_rotate");
    for (uint32_t i = 0; i < N; i++) values[i] = i;
    WORKS(copy_to_device(memory, values, N * sizeof values[0], stream));
    return 0;
}

static int tear_down(void **state) {
    harness_close();
    return 0;
}

struct graph {
    CUgraph source;
    CUgraphExec exec;
    CUgraphNode nodes[NODES];
};

static CUDA_KERNEL_NODE_PARAMS adding(void **args) {
    return (CUDA_KERNEL_NODE_PARAMS){.func = add,
        .gridDimX = 1,
        .gridDimY = 1,
        .gridDimZ = 1,
        .blockDimX = N,
        .blockDimY = 1,
        .blockDimZ = 1,
        .kernelParams = args};
}

static CUDA_KERNEL_NODE_PARAMS rotating(void **args) {
    CUDA_KERNEL_NODE_PARAMS ret = adding(args);
    ret.func = rotate;
    ret.sharedMemBytes = N * sizeof values[0];
    return ret;
}

/* Adds 10 to the first two of four values, rotates all by one place, and adds 10 to two again; the
 * arguments need not outlive the calls. */
static struct graph make(void) {
    struct graph graph;
    uint32_t ten = 10, two = 2, one = 1;
    const CUDA_KERNEL_NODE_PARAMS first = adding((void *[]){&memory, &ten, &two}),
                                  second = rotating((void *[]){&memory, &one});
    WORKS(graph_create(&graph.source, 0));
    WORKS(graph_add_kernel(&graph.nodes[0], graph.source, NULL, 0, &first));
    WORKS(graph_add_kernel(&graph.nodes[1], graph.source, &graph.nodes[0], 1, &second));
    WORKS(graph_add_kernel(&graph.nodes[2], graph.source, &graph.nodes[1], 1, &first));
    WORKS(graph_instantiate(&graph.exec, graph.source, 0));
    return graph;
}

static void destroy(struct graph *graph) {
    WORKS(graph_exec_destroy(graph->exec));
    WORKS(graph_destroy(graph->source));
}

static void assert_values(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    const uint32_t expected[N] = {a, b, c, d};
    WORKS(copy_to_host(values, memory, sizeof expected, stream));
    WORKS(stream_synchronize(stream));
    assert_memory_equal(expected, values, sizeof expected);
}

TEST(the_kernels_of_a_graph_run_in_their_order_each_time) {
    if (driver->graph_launch == NULL) skip();
    struct graph graph = make();
    assert_values(0, 1, 2, 3); /* nothing runs before the launch */
    WORKS(graph_launch(graph.exec, stream));
    WORKS(graph_launch(graph.exec, stream));
    /* 10 11 2 3; 11 2 3 10; 21 12 3 10; 31 22 3 10; 22 3 10 31 */
    assert_values(32, 13, 10, 31);
    destroy(&graph);
}

TEST(a_changed_node_is_another_in_later_launches_alone) {
    if (driver->graph_launch == NULL) skip();
    struct graph graph = make();
    uint32_t hundred = 100, four = 4;
    const CUDA_KERNEL_NODE_PARAMS all = adding((void *[]){&memory, &hundred, &four});
    harness_close_gate(stream);
    WORKS(graph_launch(graph.exec, stream));
    WORKS(graph_exec_set_kernel(graph.exec, graph.nodes[0], &all));
    WORKS(graph_launch(graph.exec, stream));
    harness_open_gate();
    /* 21 12 3 10; 121 112 103 110; 112 103 110 121 */
    assert_values(122, 113, 110, 121);
    destroy(&graph);
}

TEST(a_graph_that_is_destroyed_while_it_waits_still_runs) {
    if (driver->graph_launch == NULL) skip();
    struct graph graph = make();
    harness_close_gate(stream);
    WORKS(graph_launch(graph.exec, stream));
    destroy(&graph);
    harness_open_gate();
    assert_values(21, 12, 3, 10);
}

TEST(what_a_launch_may_not_be_no_node_may_be) {
    if (driver->graph_launch == NULL) skip();
    struct graph graph = make();
    CUDA_KERNEL_NODE_PARAMS wide = adding((void *[]){&memory, &(uint32_t){1}, &(uint32_t){1}});
    CUgraphNode node;
    wide.blockDimX = 1025;
    GIVES(
        CUDA_ERROR_INVALID_VALUE, graph_add_kernel(&node, graph.source, &graph.nodes[2], 1, &wide));
    destroy(&graph);
}

#define G(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

TEST_MAIN() {
    const struct CMUnitTest tests[] = {G(the_kernels_of_a_graph_run_in_their_order_each_time),
        G(a_changed_node_is_another_in_later_launches_alone),
        G(a_graph_that_is_destroyed_while_it_waits_still_runs),
        G(what_a_launch_may_not_be_no_node_may_be)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
