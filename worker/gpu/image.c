#include "gpu/image.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "program/params.h"

enum { COMPILER_LOG_BYTES = 4096 };

/* The end of the compiler's log is most useful; an error has room for a few lines of it. */
static void append_log(struct error *err, const char *log) {
    size_t used = strlen(err->message), room = sizeof err->message - used, size = strlen(log);
    size_t most = room - sizeof "; ";
    if (size == 0 || room < 16) return;
    if (size > most) log += size - most;
    text_format(err->message + used, room, "; %s", log);
}

enum err image_load(
    const struct device *device, const struct image *image, CUmodule *ret, struct error *err) {
    char log[COMPILER_LOG_BYTES] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)(sizeof log - 1)};
    enum err code =
        GPU_TRY(device->driver, module_load(ret, image->bytes.data, 2, options, values), err);
    if (code == ERR_MODULE_REJECTED) append_log(err, log);
    if (code != ERR_OK || *ret != NULL) return code;
    return error_set(err, ERR_DRIVER, 0, "update the GPU driver",
        "the driver reported success with a null module");
}

void image_unload(const struct device *device, CUmodule module) {
    (void)device->driver->module_unload(module);
}

static enum err find_function(const struct device *device, CUmodule module, const char *name,
    CUfunction *ret, struct error *err) {
    enum err code = GPU_TRY(device->driver, module_function(ret, module, name), err);
    if (code == ERR_OK && *ret == NULL)
        return error_set(err, ERR_DRIVER, 0, "update the GPU driver",
            "the driver reported success with a null function for '%s'", name);
    if (code != ERR_MODULE_REJECTED) return code;
    return error_set(err, ERR_MODULE_REJECTED, err->native,
        "name in program.yaml only kernels that the image has", "the image has no kernel '%s'",
        name);
}

/* Allows all shared memory of the device, once. Planning keeps each launch within the limit. */
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

/* 0: there is no such parameter. */
static enum err read_param_bytes(const struct device *device, CUfunction function, size_t index,
    size_t *ret, struct error *err) {
    size_t offset;
    *ret = 0;
    enum err code = GPU_TRY(device->driver, function_param(function, index, &offset, ret), err);
    if (code != ERR_DRIVER || err->native != CUDA_ERROR_INVALID_VALUE) return code;
    *ret = 0;
    return ERR_OK;
}

/* What a launch passes: an entry's own kernel, or its batched one. */
struct wanted_params {
    const struct entry *entry;
    bool is_batched;
};

static size_t wanted_count(const struct wanted_params *wanted) {
    return wanted->is_batched ? (size_t)BATCHED_PARAMS : wanted->entry->arg_count;
}

/* 0: there is no such parameter. */
static size_t wanted_bytes(const struct wanted_params *wanted, size_t index) {
    if (index >= wanted_count(wanted)) return 0;
    return wanted->is_batched ? batched_param(index).bytes
                              : entry_param(wanted->entry, index).bytes;
}

static enum err reject_params(
    const struct wanted_params *wanted, size_t index, size_t bytes, struct error *err) {
    static const char fix[] = "declare the arguments in program.yaml as the kernel has them";
    const struct entry *entry = wanted->entry;
    const char *kernel = wanted->is_batched ? entry->batched : entry->symbol;
    if (index == wanted_count(wanted) || bytes == 0)
        return error_set(err, ERR_MODULE_REJECTED, 0, fix,
            "program.yaml: kernel '%s' must take %zu parameters, but the image's kernel takes %s",
            kernel, wanted_count(wanted), bytes == 0 ? "fewer" : "more");
    char place[160];
    if (wanted->is_batched)
        snprintf(place, sizeof place, "program.yaml: parameter %zu of a batched kernel", index + 1);
    else
        snprintf(place, sizeof place, "program.yaml:%d:%d: argument '%s'", entry->args[index].line,
            entry->args[index].column, entry->args[index].name);
    return error_set(err, ERR_MODULE_REJECTED, 0, fix,
        "%s has %zu bytes, but parameter %zu of kernel '%s' of the image has %zu", place,
        wanted_bytes(wanted, index), index + 1, kernel, bytes);
}

/* Only the driver knows the parameters of a cubin. If it cannot tell, they are not checked. */
static enum err check_params(const struct device *device, CUfunction function,
    const struct wanted_params *wanted, struct error *err) {
    if (device->driver->function_param == NULL) return ERR_OK;
    for (size_t i = 0; i <= wanted_count(wanted); i++) {
        size_t bytes;
        enum err code = read_param_bytes(device, function, i, &bytes, err);
        if (code == ERR_DRIVER && err->native == CUDA_ERROR_NOT_SUPPORTED) return ERR_OK;
        if (code == ERR_OK && bytes != wanted_bytes(wanted, i))
            code = reject_params(wanted, i, bytes, err);
        if (code != ERR_OK) return code;
    }
    return ERR_OK;
}

/* One of the two kernels of an entry. `limits` becomes what both can have. */
static enum err read_function(const struct device *device, CUmodule module,
    const struct wanted_params *wanted, CUfunction *ret, struct kernel *limits, struct error *err) {
    const struct entry *entry = wanted->entry;
    const char *name = wanted->is_batched ? entry->batched : entry->symbol;
    int threads = 0;
    uint32_t shared_bytes = 0;
    enum err code = find_function(device, module, name, ret, err);
    if (code == ERR_OK) code = check_params(device, *ret, wanted, err);
    if (code == ERR_OK)
        code = GPU_TRY(device->driver,
            function_attribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, *ret), err);
    if (code == ERR_OK) code = allow_shared_memory(device, *ret, &shared_bytes, err);
    if (code != ERR_OK) return code;
    if ((uint32_t)threads < limits->block_threads_max)
        limits->block_threads_max = (uint32_t)threads;
    if (shared_bytes > limits->static_shared_bytes) limits->static_shared_bytes = shared_bytes;
    return ERR_OK;
}

static enum err read_kernel(const struct device *device, CUmodule module, const struct entry *entry,
    struct kernel *ret, struct error *err) {
    struct wanted_params wanted = {.entry = entry};
    ret->block_threads_max = UINT32_MAX;
    ret->static_shared_bytes = 0;
    enum err code = read_function(device, module, &wanted, &ret->function, ret, err);
    if (code != ERR_OK || entry->batched == NULL) return code;
    wanted.is_batched = true;
    return read_function(device, module, &wanted, &ret->batched, ret, err);
}

enum err image_read_kernels(const struct device *device, CUmodule module,
    const struct program *program, struct kernel *ret, struct error *err) {
    enum err code = ERR_OK;
    for (size_t i = 0; i < program->entry_count && code == ERR_OK; i++)
        code = read_kernel(device, module, &program->entries[i], &ret[i], err);
    for (size_t i = 0; i < program->entry_count && code == ERR_OK; i++)
        for (size_t p = 0; p < program->entries[i].phase_count; p++)
            ret[i].phases[p] = &ret[program->entries[i].phases[p]];
    return code;
}
