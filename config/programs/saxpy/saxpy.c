/** y = a x + y */
#include "kernel.h"

DEVICE void add_scaled(float a, const float *x, float *y, uint32_t n) {
    uint32_t i = global_x();
    if (i < n) y[i] = a * x[i] + y[i];
}

KERNEL(saxpy, (float)a, (const float *)x, (float *)y, (uint32_t)n) {
    add_scaled(a, x, y, n);
}

struct saxpy_row {
    ROW_FIELD float a;
    ROW_FIELD const float *x;
    ROW_FIELD float *y;
    ROW_FIELD uint32_t n;
};

KERNEL(saxpy_batched, (const struct saxpy_row *)rows, (uint32_t)jobs) {
    if (block_y() >= jobs) return;
    const struct saxpy_row *row = &rows[block_y()];
    add_scaled(row->a, row->x, row->y, row->n);
}
