/** One kernel in two images, which tell them apart: y = ANSWER. */
#include "kernel.h"

KERNEL(answer, (uint32_t *)y, (uint32_t)n) {
    if (global_x() < n) y[global_x()] = ANSWER;
}
