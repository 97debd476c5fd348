/** Kernels that show what a driver does: when it runs them, and how their threads wait. */
#include "kernel.h"

/* Ends when the host writes to `open`, which is pinned memory. */
KERNEL(probe_gate, (const volatile uint32_t *)open) {
    while (*open == 0) {
    }
}

KERNEL(probe_store, (uint32_t *)to, (uint32_t)index, (uint32_t)value) {
    to[index] = value;
}

KERNEL(probe_add, (uint32_t *)data, (uint32_t)value, (uint32_t)n) {
    uint32_t i = global_x();
    if (i < n) data[i] += value;
}

/* Each block passes its values round its threads, one place a round. */
KERNEL(probe_rotate, (uint32_t *)data, (uint32_t)rounds) {
    SHARED(uint32_t, values);
    uint32_t i = thread_x(), n = block_dim_x();
    uint32_t *own = data + block_x() * n;
    values[i] = own[i];
    for (uint32_t round = 0; round < rounds; round++) {
        barrier();
        uint32_t value = values[(i + 1) % n];
        barrier();
        values[i] = value;
    }
    own[i] = values[i];
}

/* Thread i waits at i barriers and returns: who is left must not wait for who has gone. */
KERNEL(probe_leave, (uint32_t *)left) {
    uint32_t i = thread_x();
    for (uint32_t round = 0; round < i; round++) barrier();
    left[block_x() * block_dim_x() + i] = i;
}

/* Blocks of one thread pass their values round the grid, one place a round. */
KERNEL(probe_rotate_grid, (uint32_t *)data, (uint32_t *)word, (uint32_t)rounds) {
    uint32_t i = block_x(), n = grid_dim_x();
    for (uint32_t round = 0; round < rounds; round++) {
        uint32_t value = atomic_load_u32(&data[(i + 1) % n]);
        grid_barrier(word);
        data[i] = value;
        grid_barrier(word);
    }
}

/* What shared memory holds before anybody writes to it. */
KERNEL(probe_shared, (uint32_t *)seen) {
    SHARED(uint32_t, values);
    seen[block_x()] = values[0];
    values[0] = 1;
}
