/**
 * What NVIDIA's management library says against a GPU. The library is opened at run time, where it
 * is there; its functions and results are as NVIDIA's "NVML API Reference" has them.
 * Threads: one at a time.
 */
#ifndef GPU_HEALTH_H
#define GPU_HEALTH_H

#include <stddef.h>

/**
 * Writes why the GPU of this UUID should not be used: it has fallen off the bus, or memory rows
 * that fail could not be replaced. Empty where nothing is known against it, or nobody knows.
 */
void health_check(const char *uuid, char *fault, size_t size);

#endif
