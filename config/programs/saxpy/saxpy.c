/** y = a x + y */
#include "kernel.h"

BATCHED_KERNEL(saxpy, (float)a, (const float *)x, (float *)y, (uint32_t)n) {
    uint32_t i = global_x();
    if (i < n) y[i] = a * x[i] + y[i];
}
