/**
 * The cache of modules: kernel images that are loaded into one device, found by program and digest.
 *
 * The programs of a registry form a set. Loading a set loads each program's image that fits the
 * device best, because a load compiles, and can hold the context's lock until the GPU is idle.
 * What was not loaded then, the first job that needs it loads. These modules stay as long as a set
 * has them, and are found without the lock; programs that two registries share (program.h) share a
 * module. They have at most half of the places. Others, and images that jobs pin, are loaded when
 * they are first asked for, only once, and unloaded when others need their place and they are the
 * ones unused for longest, but never while a reference is held.
 *
 * Lifetime: give references back before their set is unloaded, and unload sets before
 * modules_destroy(). Threads: any bound thread. No driver call happens under the lock.
 */
#ifndef GPU_MODULES_H
#define GPU_MODULES_H

#include "gpu/image.h"

/** Loading takes long: those beyond MODULES_AT_START_MAX wait for a job that needs them. */
enum { MODULES_MAX = 16384, MODULES_AT_START_MAX = 1024 };

struct modules;
struct module_set;
struct module;

struct modules_counts {
    uint64_t hits;         /* found loaded, or loaded by another thread meanwhile */
    uint64_t compilations; /* images given to the driver, including those it rejected */
    uint64_t evictions;
};

/** Keeps at most `count_max` modules. Errors: ERR_NO_MEMORY. */
MUST_CHECK enum err modules_create(
    const struct device *device, size_t count_max, struct modules **ret, struct error *err);
void modules_destroy(struct modules *modules); /* NULL is fine */

/**
 * Loads the programs of `registry`, which must outlive the set, except those that `earlier` has too
 * (another set, or NULL). An image that the driver rejects is not an error here; module_set_check()
 * reports it. Errors: ERR_NO_MEMORY, or a sticky code.
 */
MUST_CHECK enum err module_set_load(struct modules *modules, const struct registry *registry,
    const struct module_set *earlier, struct module_set **ret, struct error *err);
void module_set_unload(struct module_set *set); /* NULL is fine */

/**
 * Errors: ERR_CONFIG with the first program whose image for the device the driver rejected, and
 * why.
 */
MUST_CHECK enum err module_set_check(const struct module_set *set, struct error *err);

/** Unloads pinned images of programs that no registry has any more. */
void modules_forget_removed(struct modules *modules);

/**
 * Adds a reference to the module of a program's image: the `pinned` one or, with NULL, the one that
 * fits the device best. NULL if it is not loaded. Never waits.
 */
struct module *modules_find(
    const struct module_set *set, const struct program *program, const struct digest *pinned);

/**
 * The same, but loads the module if needed, or waits for another thread that does. An image that
 * the driver rejects gives a module without usable kernels, so that it is compiled only once; after
 * other failures, which may pass, the next call tries again. Errors: ERR_UNSUPPORTED, if the
 * program has no such image for this device; ERR_DEVICE_MEMORY, while `count_max` modules are all
 * in use.
 */
MUST_CHECK enum err modules_get(const struct module_set *set, const struct program *program,
    const struct digest *pinned, struct module **ret, struct error *err);

void module_unref(struct module *module); /* NULL is fine */

/**
 * Keeps a module loaded without keeping it in the cache: what was made of its kernels (a graph) is
 * valid until the release. The caller of module_hold() has a reference. The last release unloads
 * it, and comes before modules_destroy(). Threads: bound ones.
 */
void module_hold(struct module *module);
void module_release(struct module *module);

/**
 * Valid while the reference is held. Errors: ERR_MODULE_REJECTED with the compiler's log, if the
 * driver rejected the image.
 */
MUST_CHECK enum err module_kernel(const struct module *module, const struct entry *entry,
    const struct kernel **ret, struct error *err);

struct modules_counts modules_read_counts(struct modules *modules);

#endif
