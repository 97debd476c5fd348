/**
 * The cache of modules: kernel images, found by program and digest, loaded into one device.
 *
 * The image that fits the device best is loaded at start for every program: a load compiles, and
 * can hold the context's lock until the GPU is idle. These stay. An image that a job pins is loaded
 * when the first one asks, once however many ask, and stays until it is the one that was not used
 * for longest and others need its place; never while somebody holds a reference.
 *
 * Lifetime: references are given back before modules_unload(). Threads: any bound thread. No driver
 * call happens under the lock.
 */
#ifndef GPU_MODULES_H
#define GPU_MODULES_H

#include "gpu/device.h"
#include "program/program.h"

enum { MODULES_MAX = 2048 };

struct kernel {
    CUfunction function;
    CUfunction batched;         /* (rows, jobs): many jobs in one launch; NULL if there is none */
    uint32_t block_threads_max; /* of this kernel: registers can make it less than the device's */
    uint32_t static_shared_bytes;
    const struct kernel *phases[ENTRY_PHASES_MAX]; /* as many as the entry has */
};

struct modules;
struct module;

struct modules_counts {
    uint64_t hits;         /* found loaded, or loaded by somebody else meanwhile */
    uint64_t compilations; /* given to the driver, in vain too */
    uint64_t evictions;
};

/**
 * Loads the programs of `registry`, which outlives the modules, and keeps at most `count_max`
 * modules. A program that cannot be loaded fails its own jobs, not the worker. ERR_NO_MEMORY, or a
 * sticky code.
 */
MUST_CHECK enum err modules_load(const struct device *device, const struct registry *registry,
    size_t count_max, struct modules **ret, struct error *err);
void modules_unload(struct modules *modules); /* NULL is fine */

/**
 * +1 reference to the module of the program's image, `pinned` or, with NULL, the one that fits the
 * device best; NULL where it is not loaded. Never waits.
 */
struct module *modules_find(
    struct modules *modules, const struct program *program, const struct digest *pinned);

/**
 * The same, loading it where nobody has or does; so it may wait. ERR_UNSUPPORTED where the program
 * has no such image for this device; ERR_DEVICE_MEMORY while `count_max` modules are all in use. An
 * image that the driver rejects is a module whose kernels cannot be had, so that it is compiled
 * once; after other failures, which may pass, the next one tries again.
 */
MUST_CHECK enum err modules_get(struct modules *modules, const struct program *program,
    const struct digest *pinned, struct module **ret, struct error *err);

void module_unref(struct module *module); /* NULL is fine */

/** Valid for the reference. ERR_MODULE_REJECTED with the compiler's log: the image does not load.
 */
MUST_CHECK enum err module_kernel(const struct module *module, const struct entry *entry,
    const struct kernel **ret, struct error *err);

struct modules_counts modules_read_counts(struct modules *modules);

#endif
