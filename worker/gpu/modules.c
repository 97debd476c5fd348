#include "gpu/modules.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { COMPILER_LOG_BYTES = 4096 };

struct module {
    const struct program *program;
    CUmodule handle;
    struct kernel *kernels; /* as many as the program has entries */
    enum err code;          /* why it cannot be used, or ERR_OK */
    struct error err;
};

struct modules {
    const struct device *device;
    size_t count;
    struct module items[];
};

/* The end of the compiler's log says most; an error has room for a few lines of it. */
static void append_log(struct error *err, const char *log) {
    size_t used = strlen(err->message), room = sizeof err->message - used - 1;
    size_t size = strlen(log);
    if (size == 0 || room < 16) return;
    if (size > room - 2) log += size - (room - 2);
    strcat(err->message, "; ");
    strncat(err->message, log, room - 2);
}

static enum err load_image(
    const struct device *device, const struct image *image, CUmodule *ret, struct error *err) {
    char log[COMPILER_LOG_BYTES] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)(sizeof log - 1)};
    enum err code =
        GPU_TRY(device->driver, module_load(ret, image->bytes.data, 2, options, values), err);
    if (code == ERR_MODULE_REJECTED) append_log(err, log);
    return code;
}

static enum err read_kernel(const struct device *device, CUmodule module, const char *name,
    struct kernel *ret, struct error *err) {
    const struct gpu_driver *gpu = device->driver;
    int threads = 0, shared = 0;
    enum err code = GPU_TRY(gpu, module_function(&ret->function, module, name), err);
    if (code != ERR_OK)
        return error_set(err, ERR_MODULE_REJECTED, err->native,
            "name in program.yaml only kernels that the image has", "the image has no kernel '%s'",
            name);
    CUfunction function = ret->function;
    code = GPU_TRY(
        gpu, function_attribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function), err);
    if (code != ERR_OK) return code;
    code = GPU_TRY(
        gpu, function_attribute(&shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function), err);
    if (code != ERR_OK) return code;
    ret->block_threads_max = (uint32_t)threads;
    ret->static_shared_bytes = (uint32_t)shared;
    /* Allow what the device can give, once: planning holds each launch below it. */
    int shared_max = (int)device->limits.shared_bytes_max - shared;
    return GPU_TRY(gpu,
        function_set_attribute(
            function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared_max),
        err);
}

static enum err load_module(const struct device *device, struct module *module, struct error *err) {
    const struct program *program = module->program;
    const struct image *image =
        program_image(program, device->on_cpu, device->limits.architecture, NULL);
    if (image == NULL)
        return error_set(err, ERR_UNSUPPORTED, 0, "add such an image to its program.yaml",
            "program '%s' has no image for %s", program->name, device->name);
    enum err code = load_image(device, image, &module->handle, err);
    for (size_t i = 0; i < program->entry_count && code == ERR_OK; i++)
        code =
            read_kernel(device, module->handle, program->entries[i].name, &module->kernels[i], err);
    return code;
}

enum err modules_load(const struct device *device, const struct registry *registry,
    struct modules **ret, struct error *err) {
    size_t count = registry_count(registry);
    struct modules *modules = calloc(1, sizeof *modules + count * sizeof modules->items[0]);
    if (modules == NULL) goto no_memory;
    modules->device = device;
    for (; modules->count < count; modules->count++) {
        struct module *module = &modules->items[modules->count];
        module->program = registry_at(registry, modules->count);
        module->kernels = calloc(module->program->entry_count, sizeof module->kernels[0]);
        if (module->kernels == NULL) goto no_memory;
        module->code = load_module(device, module, &module->err);
        if (err_is_sticky(module->code)) {
            *err = module->err;
            modules_unload(modules);
            return err->code;
        }
    }
    *ret = modules;
    return ERR_OK;
no_memory:
    modules_unload(modules);
    return error_set(
        err, ERR_NO_MEMORY, 0, "give the process more memory", "no memory for the module table");
}

void modules_unload(struct modules *modules) {
    if (modules == NULL) return;
    for (size_t i = 0; i < modules->count; i++) {
        if (modules->items[i].handle != NULL)
            (void)modules->device->driver->module_unload(modules->items[i].handle);
        free(modules->items[i].kernels);
    }
    free(modules);
}

enum err modules_kernel(const struct modules *modules, const struct program *program,
    const struct entry *entry, const struct kernel **ret, struct error *err) {
    const struct module *module = modules->items;
    while (module->program != program) module++;
    assert(module < modules->items + modules->count);
    if (module->code != ERR_OK) {
        *err = module->err;
        return module->code;
    }
    *ret = &module->kernels[entry - program->entries];
    return ERR_OK;
}
