/**
 * The cache of modules: kernel images, found by program and digest, loaded into one device.
 *
 * For the programs of a registry there is a set. The image that fits the device best is loaded with
 * the set for every program: a load compiles, and can hold the context's lock until the GPU is
 * idle. These stay as long as a set has them: programs that two registries share (program.h) have
 * one such module. An image that a job pins is loaded when the first one asks, once however many
 * ask, and stays until it is the one that was not used for longest and others need its place; never
 * while somebody holds a reference.
 *
 * Lifetime: references are given back before their set is unloaded, sets before
 * modules_destroy(). Threads: any bound thread. No driver call happens under the lock.
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
struct module_set;
struct module;

struct modules_counts {
    uint64_t hits;         /* found loaded, or loaded by somebody else meanwhile */
    uint64_t compilations; /* given to the driver, in vain too */
    uint64_t evictions;
};

/** Keeps at most `count_max` modules. ERR_NO_MEMORY. */
MUST_CHECK enum err modules_create(
    const struct device *device, size_t count_max, struct modules **ret, struct error *err);
void modules_destroy(struct modules *modules); /* NULL is fine */

/**
 * Loads the programs of `registry`, which outlives the set, but for those that `earlier`, a set of
 * the same modules or NULL, has as well. An image that the driver rejects is no error here:
 * module_set_check() says so. ERR_NO_MEMORY, or a sticky code.
 */
MUST_CHECK enum err module_set_load(struct modules *modules, const struct registry *registry,
    const struct module_set *earlier, struct module_set **ret, struct error *err);
void module_set_unload(struct module_set *set); /* NULL is fine */

/**
 * ERR_CONFIG with the first program whose image for the device the driver rejected, and why.
 */
MUST_CHECK enum err module_set_check(const struct module_set *set, struct error *err);

/** Unloads what jobs have pinned of programs that no registry has any more. */
void modules_forget_removed(struct modules *modules);

/**
 * +1 reference to the module of the image of a program of the set, `pinned` or, with NULL, the one
 * that fits the device best; NULL where it is not loaded. Never waits.
 */
struct module *modules_find(
    const struct module_set *set, const struct program *program, const struct digest *pinned);

/**
 * The same, loading it where nobody has or does; so it may wait. ERR_UNSUPPORTED where the program
 * has no such image for this device; ERR_DEVICE_MEMORY while `count_max` modules are all in use. An
 * image that the driver rejects is a module whose kernels cannot be had, so that it is compiled
 * once; after other failures, which may pass, the next one tries again.
 */
MUST_CHECK enum err modules_get(const struct module_set *set, const struct program *program,
    const struct digest *pinned, struct module **ret, struct error *err);

void module_unref(struct module *module); /* NULL is fine */

/** Valid for the reference. ERR_MODULE_REJECTED with the compiler's log: the image does not load.
 */
MUST_CHECK enum err module_kernel(const struct module *module, const struct entry *entry,
    const struct kernel **ret, struct error *err);

struct modules_counts modules_read_counts(struct modules *modules);

#endif
