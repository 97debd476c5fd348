/**
 * Breadth-first levels in a graph of compressed sparse rows, as a fixpoint: the job seeds
 * levels[source] = 0 and all others with 0xffffffff (not reached), and asks for at least as many
 * iterations as the greatest level it wants; more of them change nothing.
 *
 * A launch relaxes every edge of every vertex reached so far, so it needs neither its own number
 * nor a look back from the host. By induction, all levels up to k are final after k launches. A
 * launch may also see levels that it wrote itself; those are lengths of real paths, hence never too
 * small, and the minimum makes the order of threads irrelevant to the final levels.
 */
#include "kernel.h"

#define NOT_REACHED 0xffffffffu

KERNEL(bfs_csr, (const uint32_t *)row_offsets, (const uint32_t *)columns, (uint32_t *)levels,
    (uint32_t)n_vertices, (uint32_t)n_edges) {
    uint32_t vertex = global_x();
    if (vertex >= n_vertices) return;
    uint32_t level = atomic_load_u32(&levels[vertex]);
    if (level == NOT_REACHED) return;

    /* A broken graph must not lead out of its own columns and levels. */
    uint32_t end = row_offsets[vertex + 1] < n_edges ? row_offsets[vertex + 1] : n_edges;
    for (uint32_t edge = row_offsets[vertex]; edge < end; edge++) {
        uint32_t neighbour = columns[edge];
        /* Most neighbours need no atomic. */
        if (neighbour < n_vertices && level + 1 < atomic_load_u32(&levels[neighbour]))
            atomic_min_u32(&levels[neighbour], level + 1);
    }
}
