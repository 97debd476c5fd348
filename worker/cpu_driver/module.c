#include "cpu_driver/module.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cpu_driver/handle.h"
#include "cpu_driver/limits.h"

static bool is_shared_object(const void *image) {
    const ElfW(Ehdr) *header = image;
    const unsigned char class = sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32;
    /* strncmp: text, such as PTX, may be shorter than the magic and ends with a NUL. */
    return strncmp(image, ELFMAG, SELFMAG) == 0 && header->e_ident[EI_CLASS] == class &&
           header->e_type == ET_DYN && header->e_shoff != 0 &&
           header->e_shentsize == sizeof(ElfW(Shdr));
}

/* A linker writes either the section headers or some section last. */
static size_t shared_object_bytes(const void *image) {
    const ElfW(Ehdr) *header = image;
    const ElfW(Shdr) *sections = (const void *)((const char *)image + header->e_shoff);
    size_t end = header->e_shoff + header->e_shnum * sizeof *sections;
    for (size_t i = 0; i < header->e_shnum; i++) {
        if (sections[i].sh_type == SHT_NOBITS) continue;
        size_t section_end = sections[i].sh_offset + sections[i].sh_size;
        if (section_end > end) end = section_end;
    }
    return end;
}

static bool write_all(int descriptor, const char *data, size_t bytes) {
    while (bytes > 0) {
        ssize_t written = write(descriptor, data, bytes);
        if (written <= 0) return false;
        data += written;
        bytes -= (size_t)written;
    }
    return true;
}

static void log_write(const struct cpu_module_log *log, const char *text) {
    if (log->bytes > 0) snprintf(log->text, log->bytes, "%s", text == NULL ? "unknown" : text);
}

static void module_destroy(struct cpu_module *module) {
    if (module->object != NULL) dlclose(module->object);
    if (module->descriptor >= 0) close(module->descriptor);
    free(module);
}

/*
 * The file is known by its name under /proc, which holds the descriptor's number, and dlopen()
 * takes equal names for the same library. So the descriptor stays open, and its number taken, until
 * the module is closed.
 */
static CUresult open_image(
    struct cpu_module *module, const void *image, const struct cpu_module_log *log) {
    if (!is_shared_object(image)) {
        log_write(log, "the image is not a shared object for this machine");
        return CUDA_ERROR_INVALID_IMAGE;
    }
    module->descriptor = memfd_create("gpu-worker-module", MFD_CLOEXEC);
    if (module->descriptor < 0 || !write_all(module->descriptor, image, shared_object_bytes(image)))
        return CUDA_ERROR_OUT_OF_MEMORY;
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", module->descriptor);
    module->object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (module->object != NULL) return CUDA_SUCCESS;
    log_write(log, dlerror());
    return CUDA_ERROR_INVALID_IMAGE;
}

CUresult cpu_module_load(
    struct cpu_device *device, const void *image, const struct cpu_module_log *log, CUmodule *ret) {
    struct cpu_module *module = calloc(1, sizeof *module);
    if (module == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    module->device = device;
    module->descriptor = -1;

    pthread_mutex_unlock(&cpu.lock);
    CUresult result = open_image(module, image, log);
    pthread_mutex_lock(&cpu.lock);

    CUmodule handle = NULL;
    if (result == CUDA_SUCCESS) {
        handle = cpu_handle_create(CPU_HANDLE_MODULE, module);
        if (handle == NULL) result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (result != CUDA_SUCCESS) {
        module_destroy(module);
        return result;
    }
    cpu.counters.modules_live++;
    *ret = handle;
    return CUDA_SUCCESS;
}

void cpu_module_unuse(struct cpu_module *module) {
    module->users--;
    if (module->is_unloaded && module->users == 0) module_destroy(module);
}

void cpu_module_unload(CUmodule handle) {
    struct cpu_module *module = cpu_handle_find(CPU_HANDLE_MODULE, handle);
    cpu_handle_drop(handle);
    cpu.counters.modules_live--;
    while (module->functions != NULL) {
        struct cpu_function *function = module->functions;
        module->functions = function->next;
        cpu_handle_drop(function->handle);
        free(function);
    }
    module->is_unloaded = true;
    if (module->users == 0) module_destroy(module);
    else cpu.counters.freed_in_use++;
}

struct cpu_module *cpu_module_find(const struct cpu_device *device, CUmodule handle) {
    struct cpu_module *module = cpu_handle_find(CPU_HANDLE_MODULE, handle);
    return module != NULL && module->device == device ? module : NULL;
}

static const struct kernel_info *find_kernel(const struct cpu_module *module, const char *name) {
    char symbol[256];
    int length = snprintf(symbol, sizeof symbol, "kernel_%s", name);
    if (length < 0 || (size_t)length >= sizeof symbol) return NULL;
    return dlsym(module->object, symbol);
}

static bool kernel_is_usable(const struct kernel_info *kernel) {
    if (kernel->entry == NULL || kernel->param_count > KERNEL_PARAMS_MAX) return false;
    size_t bytes = 0;
    for (uint32_t i = 0; i < kernel->param_count; i++) bytes += kernel->param_bytes[i];
    return bytes <= CPU_PARAM_BYTES_MAX;
}

static struct cpu_function *function_create(
    struct cpu_module *module, const struct kernel_info *kernel, const char *name) {
    struct cpu_function *function = calloc(1, sizeof *function + strlen(name) + 1);
    if (function == NULL) return NULL;
    function->module = module;
    function->kernel = kernel;
    function->shared_bytes_max = CPU_SHARED_BYTES_DEFAULT;
    strcpy(function->name, name);
    function->handle = cpu_handle_create(CPU_HANDLE_FUNCTION, function);
    if (function->handle == NULL) {
        free(function);
        return NULL;
    }
    function->next = module->functions;
    module->functions = function;
    return function;
}

CUresult cpu_module_function(struct cpu_module *module, const char *name, CUfunction *ret) {
    struct cpu_function *function = module->functions;
    while (function != NULL && strcmp(function->name, name) != 0) function = function->next;
    if (function == NULL) {
        const struct kernel_info *kernel = find_kernel(module, name);
        if (kernel == NULL) return CUDA_ERROR_NOT_FOUND;
        if (!kernel_is_usable(kernel)) return CUDA_ERROR_INVALID_IMAGE;
        function = function_create(module, kernel, name);
        if (function == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *ret = function->handle;
    return CUDA_SUCCESS;
}

struct cpu_function *cpu_function_find(const struct cpu_device *device, CUfunction handle) {
    struct cpu_function *function = cpu_handle_find(CPU_HANDLE_FUNCTION, handle);
    return function != NULL && function->module->device == device ? function : NULL;
}

CUresult cpu_function_param(
    const struct cpu_function *function, size_t index, size_t *ret_offset, size_t *ret_size) {
    const struct kernel_info *kernel = function->kernel;
    size_t end = 0;
    if (index >= kernel->param_count) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i <= index; i++) {
        size_t bytes = kernel->param_bytes[i];
        size_t alignment = bytes % 8 == 0 ? 8 : bytes % 4 == 0 ? 4 : bytes % 2 == 0 ? 2 : 1;
        *ret_offset = (end + alignment - 1) / alignment * alignment;
        end = *ret_offset + bytes;
    }
    if (ret_size != NULL) *ret_size = kernel->param_bytes[index];
    return CUDA_SUCCESS;
}
