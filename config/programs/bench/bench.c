/** What `gpu-worker bench` runs: nothing at all, and z = x + y with and without coalescing. */
#include "kernel.h"

KERNEL(nothing, (uint32_t)word) {
    (void)word; /* a kernel has a parameter at least */
}

DEVICE void add_elements(const float *x, const float *y, float *z, uint32_t n) {
    uint32_t i = global_x();
    if (i < n) z[i] = x[i] + y[i];
}

KERNEL(add, (const float *)x, (const float *)y, (float *)z, (uint32_t)n) {
    add_elements(x, y, z, n);
}

KERNEL(add_coalesced, (const float *)x, (const float *)y, (float *)z, (uint32_t)n) {
    add_elements(x, y, z, n);
}

struct add_row {
    ROW_FIELD const float *x;
    ROW_FIELD const float *y;
    ROW_FIELD float *z;
    ROW_FIELD uint32_t n;
};

KERNEL(add_batched, (const struct add_row *)rows, (uint32_t)jobs) {
    if (block_y() >= jobs) return;
    const struct add_row *row = &rows[block_y()];
    add_elements(row->x, row->y, row->z, row->n);
}
