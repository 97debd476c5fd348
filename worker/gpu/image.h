/**
 * Loads a program's image into the context, and asks the driver for what launches of its kernels
 * need. An image whose kernels are not as the program's manifest says is rejected.
 *
 * Lifetime: kernels are valid until their module is unloaded. Threads: any bound thread.
 */
#ifndef GPU_IMAGE_H
#define GPU_IMAGE_H

#include "gpu/device.h"
#include "program/program.h"

struct kernel {
    CUfunction function;
    CUfunction batched;         /* (rows, jobs): many jobs in one launch; NULL if there is none */
    uint32_t block_threads_max; /* of both: registers can make it less than the device's */
    uint32_t static_shared_bytes;
    const struct kernel *phases[ENTRY_PHASES_MAX]; /* as many as the entry has phases */
};

/** Errors: ERR_MODULE_REJECTED with the end of the compiler's log. */
MUST_CHECK enum err image_load(
    const struct device *device, const struct image *image, CUmodule *ret, struct error *err);
void image_unload(const struct device *device, CUmodule module);

/** Fills a kernel for each of the program's entries. Errors: ERR_MODULE_REJECTED. */
MUST_CHECK enum err image_read_kernels(const struct device *device, CUmodule module,
    const struct program *program, struct kernel *ret, struct error *err);

#endif
