/**
 * y = {3 x + 1, REVISION}, after `milliseconds` in which the device is busy and the CPU is not. For the CPU driver alone;
 * the exercise compiles it once for each revision.
 */
#define _POSIX_C_SOURCE 200809L
#include <time.h>

#include "kernel.h"

KERNEL(stamp, (const uint32_t *)x, (uint32_t *)y, (uint32_t)milliseconds) {
    const struct timespec pause = {
        .tv_sec = milliseconds / 1000, .tv_nsec = (long)(milliseconds % 1000) * 1000000};
    nanosleep(&pause, NULL);
    y[0] = 3 * x[0] + 1;
    y[1] = REVISION;
}
