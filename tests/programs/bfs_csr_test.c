#include <stdio.h>
#include <string.h>

#include "rig.h"

enum { VERTICES_MAX = 512, EDGES_MAX = 2048, NOT_REACHED = -1 };

struct graph {
    uint32_t vertex_count;
    uint32_t row_offsets[VERTICES_MAX + 1];
    uint32_t columns[EDGES_MAX];
};

/** Both directions of each of `count` pairs. */
static void graph_of_edges(
    struct graph *graph, uint32_t vertex_count, const uint32_t (*edges)[2], size_t count) {
    graph->vertex_count = vertex_count;
    uint32_t end = 0;
    for (uint32_t vertex = 0; vertex < vertex_count; vertex++) {
        graph->row_offsets[vertex] = end;
        for (size_t i = 0; i < count; i++)
            for (int side = 0; side < 2; side++)
                if (edges[i][side] == vertex) graph->columns[end++] = edges[i][1 - side];
    }
    graph->row_offsets[vertex_count] = end;
}

static void read_karate(struct graph *graph) {
    static uint32_t edges[EDGES_MAX / 2][2];
    size_t count = 0;
    FILE *file = fopen(DATA_FOLDER "/karate.edges", "r");
    assert_non_null(file);
    while (fscanf(file, "%u %u", &edges[count][0], &edges[count][1]) == 2) count++;
    fclose(file);
    assert_int_equal(78, count);
    graph_of_edges(graph, 34 + 1, edges, count); /* and a vertex that nothing leads to */
}

static void chain(struct graph *graph, uint32_t vertex_count) {
    static uint32_t edges[VERTICES_MAX][2];
    for (uint32_t i = 0; i + 1 < vertex_count; i++) {
        edges[i][0] = i;
        edges[i][1] = i + 1;
    }
    graph_of_edges(graph, vertex_count, edges, vertex_count - 1);
}

/** The textbook search with a queue. */
static void search(const struct graph *graph, uint32_t source, uint32_t *levels) {
    uint32_t queue[VERTICES_MAX], head = 0, tail = 0;
    memset(levels, NOT_REACHED, graph->vertex_count * sizeof *levels);
    levels[source] = 0;
    queue[tail++] = source;
    while (head < tail) {
        uint32_t vertex = queue[head++];
        for (uint32_t e = graph->row_offsets[vertex]; e < graph->row_offsets[vertex + 1]; e++) {
            uint32_t neighbour = graph->columns[e];
            if (levels[neighbour] != (uint32_t)NOT_REACHED) continue;
            levels[neighbour] = levels[vertex] + 1;
            queue[tail++] = neighbour;
        }
    }
}

static void run(const struct graph *graph, uint32_t source, uint32_t iterations, uint32_t block,
    uint32_t *levels) {
    uint32_t n = graph->vertex_count, edges = graph->row_offsets[n];
    size_t level_bytes = (n + 1) * sizeof *levels; /* one beyond the graph, to stay as it is */
    memset(levels, NOT_REACHED, level_bytes);
    levels[source] = 0;
    CUfunction kernel = rig_kernel(PROGRAMS_FOLDER, "bfs_csr", "bfs_csr");
    CUdeviceptr row_offsets = rig_buffer(graph->row_offsets, sizeof graph->row_offsets);
    CUdeviceptr columns = rig_buffer(graph->columns, sizeof graph->columns);
    CUdeviceptr device_levels = rig_buffer(levels, level_bytes);
    rig_launch(kernel,
        (struct rig_shape){
            .grid = (n + block - 1) / block, .block = block, .iterations = iterations},
        (void *[]){&row_offsets, &columns, &device_levels, &n, &edges});
    rig_read(device_levels, levels, level_bytes);
    rig_free_all();
    assert_int_equal((uint32_t)NOT_REACHED, levels[n]);
}

TEST(levels_of_the_karate_club_are_right_from_every_source) {
    static struct graph graph;
    read_karate(&graph);
    uint32_t expected[VERTICES_MAX], got[VERTICES_MAX];
    for (uint32_t source = 0; source < graph.vertex_count; source++) {
        search(&graph, source, expected);
        run(&graph, source, 34, 16, got);
        assert_memory_equal(expected, got, graph.vertex_count * sizeof *got);
    }
}

TEST(a_chain_needs_as_many_iterations_as_it_is_long_and_more_change_nothing) {
    static struct graph graph;
    chain(&graph, 300);
    uint32_t expected[VERTICES_MAX], got[VERTICES_MAX];
    search(&graph, 0, expected);
    run(&graph, 0, 299, 64, got);
    assert_memory_equal(expected, got, 300 * sizeof *got);
    run(&graph, 0, 400, 64, got);
    assert_memory_equal(expected, got, 300 * sizeof *got);
}

TEST(after_k_iterations_the_first_k_levels_are_final_and_none_is_too_small) {
    static struct graph graph;
    chain(&graph, 300);
    uint32_t expected[VERTICES_MAX], got[VERTICES_MAX];
    search(&graph, 299, expected);
    run(&graph, 299, 10, 64, got);
    for (uint32_t vertex = 0; vertex < 300; vertex++) {
        if (expected[vertex] <= 10) assert_int_equal(expected[vertex], got[vertex]);
        assert_true(got[vertex] >= expected[vertex]);
    }
}

TEST(an_edge_out_of_the_graph_is_ignored) {
    static struct graph graph;
    chain(&graph, 3);
    graph.columns[0] = 3; /* the first vertex leads outside */
    uint32_t levels[4];
    run(&graph, 0, 4, 32, levels);
    assert_memory_equal(
        ((uint32_t[]){0, UINT32_MAX, UINT32_MAX, UINT32_MAX}), levels, sizeof levels);
}

RUN_RIG_TESTS(T(levels_of_the_karate_club_are_right_from_every_source),
    T(a_chain_needs_as_many_iterations_as_it_is_long_and_more_change_nothing),
    T(after_k_iterations_the_first_k_levels_are_final_and_none_is_too_small),
    T(an_edge_out_of_the_graph_is_ignored))
