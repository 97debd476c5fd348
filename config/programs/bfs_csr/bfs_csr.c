/**
 * Breadth-first levels in a graph of compressed sparse rows. The job sets levels[source] to 0 and
 * all others to 0xffffffff, which means "not reached". It asks for at least as many iterations as
 * the greatest level that it wants. More iterations change nothing.
 *
 * Each launch follows every edge of every vertex that was reached so far. So a launch needs no
 * number, and the host need not look at the levels between launches. After k launches all levels up
 * to k are final (by induction). A launch may also read levels that it wrote itself. They are
 * lengths of real paths, so they are never too small. Threads write minima, so their order does not
 * matter.
 */
#include "kernel.h"

#define NOT_REACHED 0xffffffffu

KERNEL(bfs_csr, (const uint32_t *)row_offsets, (const uint32_t *)columns, (uint32_t *)levels,
    (uint32_t)n_vertices, (uint32_t)n_edges) {
    uint32_t vertex = global_x();
    if (vertex >= n_vertices) return;
    uint32_t level = atomic_load_u32(&levels[vertex]);
    if (level == NOT_REACHED) return;

    /* If the graph is broken, the kernel must still stay within columns and levels. */
    uint32_t end = row_offsets[vertex + 1] < n_edges ? row_offsets[vertex + 1] : n_edges;
    for (uint32_t edge = row_offsets[vertex]; edge < end; edge++) {
        uint32_t neighbour = columns[edge];
        /* Most neighbours have their level already, and need no atomic. */
        if (neighbour < n_vertices && level + 1 < atomic_load_u32(&levels[neighbour]))
            atomic_min_u32(&levels[neighbour], level + 1);
    }
}
