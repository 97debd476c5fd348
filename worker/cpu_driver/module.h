/** Modules: shared objects in memory, and the kernels they export (kernel_cpu.h). */
#ifndef CPU_DRIVER_MODULE_H
#define CPU_DRIVER_MODULE_H

#include "cpu_driver/state.h"
#include "kernel_cpu.h"

struct cpu_function {
    struct cpu_module *module;
    const struct kernel_info *kernel;
    int shared_bytes_max; /* dynamic shared memory that a launch may ask for */
    CUfunction handle;
    struct cpu_function *next;
    char name[];
};

struct cpu_module {
    struct cpu_device *device;
    void *object;   /* of dlopen() */
    int descriptor; /* of its bytes; open for as long as it is loaded, see module.c */
    bool is_unloaded;
    unsigned users; /* launches that are not finished, and those of graphs */
    struct cpu_function *functions;
};

/** Where to write why loading failed; bytes 0: nowhere. */
struct cpu_module_log {
    char *text;
    size_t bytes;
};

/**
 * `image` must be complete: its size is read from its own header. Releases the lock while it loads.
 */
CUresult cpu_module_load(
    struct cpu_device *device, const void *image, const struct cpu_module_log *log, CUmodule *ret);

/** A module that launches still use is closed after them. */
void cpu_module_unload(CUmodule handle);

struct cpu_module *cpu_module_find(const struct cpu_device *device, CUmodule handle);

CUresult cpu_module_function(struct cpu_module *module, const char *name, CUfunction *ret);

/** The function of a module of this device, or NULL. */
struct cpu_function *cpu_function_find(const struct cpu_device *device, CUfunction handle);

/**
 * The offset of a parameter among the others, packed as on a GPU. INVALID_VALUE: there is no such
 * parameter.
 */
CUresult cpu_function_param(
    const struct cpu_function *function, size_t index, size_t *ret_offset, size_t *ret_size);

void cpu_module_unuse(struct cpu_module *module);

#endif
