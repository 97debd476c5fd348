/**
 * Opens a library of NVIDIA's driver at run time, as the loader finds it, or else where nodes with
 * Container-Optimized OS mount the driver, which no path of the loader names.
 *
 * The driver itself looks for its compiler of PTX by the loader's paths alone: our image names that
 * folder in LD_LIBRARY_PATH.
 *
 * Lifetime: dlclose(). Threads: any.
 */
#ifndef GPU_NVIDIA_LIBRARY_H
#define GPU_NVIDIA_LIBRARY_H

#include "base/error.h"

/** NULL, with ERR_NO_DEVICE and both places in `err`, if there is none that can be opened. */
void *nvidia_library_open(const char *name, struct error *err);

#endif
