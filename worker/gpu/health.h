/**
 * Faults of a GPU that NVML reports. The library is opened at run time if it
 * is installed; its functions and results follow NVIDIA's "NVML API Reference". Threads: one at a
 * time.
 */
#ifndef GPU_HEALTH_H
#define GPU_HEALTH_H

#include <stddef.h>

/**
 * Writes why the GPU with this UUID should not be used: it has fallen off the bus, or failing
 * memory rows could not be replaced. Empty if no fault is known.
 */
void health_check(const char *uuid, char *fault, size_t size);

#endif
