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

static enum err find_function(const struct device *device, CUmodule module, const char *name,
    CUfunction *ret, struct error *err) {
    enum err code = GPU_TRY(device->driver, module_function(ret, module, name), err);
    if (code == ERR_OK || err_is_sticky(code)) return code;
    return error_set(err, ERR_MODULE_REJECTED, err->native,
        "name in program.yaml only kernels that the image has", "the image has no kernel '%s'",
        name);
}

/* Allows what the device can give, once: planning holds each launch below it. */
static enum err allow_shared_memory(
    const struct device *device, CUfunction function, uint32_t *static_bytes, struct error *err) {
    const struct gpu_driver *gpu = device->driver;
    int bytes = 0;
    enum err code = GPU_TRY(
        gpu, function_attribute(&bytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function), err);
    if (code != ERR_OK) return code;
    *static_bytes = (uint32_t)bytes;
    return GPU_TRY(gpu,
        function_set_attribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
            (int)device->limits.shared_bytes_max - bytes),
        err);
}

static enum err read_kernel(const struct device *device, CUmodule module, const struct entry *entry,
    struct kernel *ret, struct error *err) {
    int threads = 0;
    enum err code = find_function(device, module, entry->name, &ret->function, err);
    if (code == ERR_OK)
        code = GPU_TRY(device->driver,
            function_attribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, ret->function),
            err);
    ret->block_threads_max = (uint32_t)threads;
    if (code == ERR_OK)
        code = allow_shared_memory(device, ret->function, &ret->static_shared_bytes, err);
    if (code != ERR_OK || entry->batched == NULL) return code;
    uint32_t static_bytes;
    code = find_function(device, module, entry->batched, &ret->batched, err);
    if (code != ERR_OK) return code;
    return allow_shared_memory(device, ret->batched, &static_bytes, err);
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
        code = read_kernel(device, module->handle, &program->entries[i], &module->kernels[i], err);
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
