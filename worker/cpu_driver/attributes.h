/** What never changes: device attributes, and the names of results. Threads: any; needs no lock. */
#ifndef CPU_DRIVER_ATTRIBUTES_H
#define CPU_DRIVER_ATTRIBUTES_H

#include <cuda.h>

CUresult cpu_device_attribute(int *ret, CUdevice_attribute attribute);

/** "CUDA_ERROR_OUT_OF_MEMORY" and "out of memory"; INVALID_VALUE for an unknown result. */
CUresult cpu_result_name(CUresult result, const char **ret);
CUresult cpu_result_text(CUresult result, const char **ret);

/** How many blocks of this shape fit on a multiprocessor at once. */
int cpu_occupancy(int block_threads, size_t shared_bytes);

#endif
