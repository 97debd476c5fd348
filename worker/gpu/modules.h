/**
 * The kernels of all registered programs, loaded into one device at start: a load can hold the
 * context's lock until the GPU is idle, so none happens while jobs run.
 *
 * Lifetime: kernels live as long as the modules. Threads: read-only once loaded.
 */
#ifndef GPU_MODULES_H
#define GPU_MODULES_H

#include "gpu/device.h"
#include "program/program.h"

struct kernel {
    CUfunction function;
    CUfunction batched;         /* (rows, jobs): many jobs in one launch; NULL if there is none */
    uint32_t block_threads_max; /* of this kernel: registers can make it less than the device's */
    uint32_t static_shared_bytes;
};

struct modules;

/**
 * Loads the image that fits the device for every program of the registry. A program that cannot be
 * loaded fails its own jobs, not the worker: modules_kernel() returns why. NULL with ERR_NO_MEMORY.
 */
MUST_CHECK enum err modules_load(const struct device *device, const struct registry *registry,
    struct modules **ret, struct error *err);
void modules_unload(struct modules *modules); /* NULL is fine */

/**
 * ERR_MODULE_REJECTED with the compiler's log where the image does not load; ERR_UNSUPPORTED where
 * the program has no image for this device.
 */
MUST_CHECK enum err modules_kernel(const struct modules *modules, const struct program *program,
    const struct entry *entry, const struct kernel **ret, struct error *err);

#endif
