#include "gpu/modules.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/invariant.h"
#include "base/pulse.h"
#include "program/params.h"

enum { COMPILER_LOG_BYTES = 4096 };

struct module {
    struct modules *modules;
    struct program program; /* held */
    const struct image *image;
    CUmodule handle;
    struct kernel *kernels; /* as many as the program has entries */
    enum err code;          /* why it cannot be used; ERR_OK: it can */
    struct error err;
    bool is_default; /* loaded with a set, and kept by it; references are not counted */
    /* under the lock */
    uint32_t sets; /* defaults: how many sets have it */
    bool is_loading;
    uint32_t references;
    struct module *older; /* by last use */
};

struct module_set {
    struct modules *modules;
    const struct registry *registry;
    struct module *defaults[]; /* by index as its programs; NULL: loaded when asked for */
};

struct modules {
    const struct device *device;
    size_t count_max;
    atomic_uint_fast64_t hits;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t settled;
    struct module *newest; /* of those that are not defaults */
    size_t count;          /* of all modules */
    uint64_t compilations, evictions;
};

/* The end of the compiler's log is most useful; an error has room for a few lines of it. */
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
    if (code != ERR_OK || *ret != NULL) return code;
    return error_set(err, ERR_DRIVER, 0, "update the GPU driver",
        "the driver reported success with a null module");
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

static enum err read_kernel(const struct device *device, CUmodule module, const struct entry *entry,
    struct kernel *ret, struct error *err) {
    int threads = 0;
    enum err code = find_function(device, module, entry->symbol, &ret->function, err);
    if (code == ERR_OK)
        code = check_params(device, ret->function, &(struct wanted_params){.entry = entry}, err);
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
    if (code == ERR_OK)
        code = check_params(
            device, ret->batched, &(struct wanted_params){.entry = entry, .is_batched = true}, err);
    if (code != ERR_OK) return code;
    return allow_shared_memory(device, ret->batched, &static_bytes, err);
}

/* ---- one module ---- */

static void unload(struct module *module) {
    if (module->handle != NULL)
        (void)module->modules->device->driver->module_unload(module->handle);
    module->handle = NULL;
}

static void module_destroy(struct module *module) {
    if (module == NULL) return;
    unload(module);
    program_release(&module->program);
    free(module->kernels);
    free(module);
}

static enum err module_create(struct modules *modules, const struct program *program,
    const struct image *image, struct module **ret, struct error *err) {
    struct module *module = calloc(1, sizeof *module);
    struct kernel *kernels = calloc(program->entry_count, sizeof kernels[0]);
    if (module == NULL || kernels == NULL) {
        free(module);
        free(kernels);
        return error_set(
            err, ERR_NO_MEMORY, 0, "give the process more memory", "no memory for a module");
    }
    program_hold(program);
    *module = (struct module){
        .modules = modules, .program = *program, .image = image, .kernels = kernels};
    *ret = module;
    return ERR_OK;
}

/* ERR_OK also for an image that the driver rejects: module_kernel() returns that error. */
static enum err module_load(struct module *module, struct error *err) {
    const struct device *device = module->modules->device;
    const struct program *program = &module->program;
    enum err code = load_image(device, module->image, &module->handle, err);
    for (size_t i = 0; i < program->entry_count && code == ERR_OK; i++)
        code = read_kernel(device, module->handle, &program->entries[i], &module->kernels[i], err);
    for (size_t i = 0; i < program->entry_count && code == ERR_OK; i++)
        for (size_t p = 0; p < program->entries[i].phase_count; p++)
            module->kernels[i].phases[p] = &module->kernels[program->entries[i].phases[p]];
    if (code != ERR_MODULE_REJECTED) return code;
    unload(module);
    module->code = code;
    module->err = *err;
    return ERR_OK;
}

enum err module_kernel(const struct module *module, const struct entry *entry,
    const struct kernel **ret, struct error *err) {
    if (module->code != ERR_OK) {
        *err = module->err;
        return module->code;
    }
    *ret = &module->kernels[entry - module->program.entries];
    return ERR_OK;
}

/* ---- the table ---- */

static struct module *default_of(const struct module_set *set, const struct program *program) {
    return set->defaults[program - registry_at(set->registry, 0)];
}

static const struct image *image_of(
    const struct modules *modules, const struct program *program, const struct digest *pinned) {
    const struct device *device = modules->device;
    return program_image(program, device->on_cpu, device->limits.architecture, pinned);
}

static void remove_at(struct module **link) {
    struct module *module = *link;
    *link = module->older;
    module->modules->count--;
}

static void insert(struct modules *modules, struct module *module) {
    module->older = modules->newest;
    modules->newest = module;
    modules->count++;
}

static struct module **link_of(struct modules *modules, const struct module *module) {
    struct module **link = &modules->newest;
    while (*link != module) link = &(*link)->older;
    return link;
}

/* A module that is found becomes the newest. */
static struct module *look_up(
    struct modules *modules, const struct program *program, const struct image *image) {
    struct module *module = modules->newest;
    while (module != NULL && (!program_is_same(&module->program, program) ||
                                 !digest_equal(&module->image->digest, &image->digest)))
        module = module->older;
    if (module == NULL) return NULL;
    remove_at(link_of(modules, module));
    insert(modules, module);
    return module;
}

/* Takes out the module that was not used for longest, for the caller to destroy without the lock;
 * NULL where all are in use. */
static struct module *take_victim(struct modules *modules) {
    struct module **found = NULL;
    for (struct module **link = &modules->newest; *link != NULL; link = &(*link)->older)
        if ((*link)->references == 0) found = link;
    if (found == NULL) return NULL;
    struct module *victim = *found;
    remove_at(found);
    modules->evictions++;
    return victim;
}

static void count_hit(struct modules *modules) {
    /* relaxed: a single number, which publishes nothing */
    atomic_fetch_add_explicit(&modules->hits, 1, memory_order_relaxed);
}

/* A default module also serves a job that pins the same image. */
static struct module *find_default(
    const struct module_set *set, const struct program *program, const struct image *image) {
    struct module *module = default_of(set, program);
    return module != NULL && module->image == image ? module : NULL;
}

struct module *modules_find(
    const struct module_set *set, const struct program *program, const struct digest *pinned) {
    struct modules *modules = set->modules;
    const struct image *image = image_of(modules, program, pinned);
    if (image == NULL) return NULL;
    struct module *module = find_default(set, program, image);
    if (module == NULL) {
        pthread_mutex_lock(&modules->lock);
        module = look_up(modules, program, image);
        if (module != NULL && module->is_loading) module = NULL;
        if (module != NULL) module->references++;
        pthread_mutex_unlock(&modules->lock);
    }
    if (module != NULL) count_hit(modules);
    return module;
}

/* Finds the module, waiting for a load under way; or inserts `fresh`, for whose load others wait.
 * NULL: no room. */
static struct module *find_or_insert(
    struct modules *modules, struct module *fresh, struct module **victim) {
    pthread_mutex_lock(&modules->lock);
    struct module *module = look_up(modules, &fresh->program, fresh->image);
    while (module != NULL && module->is_loading) {
        pthread_cond_wait(&modules->settled, &modules->lock);
        module = look_up(modules, &fresh->program, fresh->image);
    }
    if (module == NULL) {
        if (modules->count >= modules->count_max) *victim = take_victim(modules);
        if (modules->count < modules->count_max) {
            module = fresh;
            module->is_loading = true;
            modules->compilations++;
            insert(modules, module);
        }
    }
    if (module != NULL) module->references++;
    pthread_mutex_unlock(&modules->lock);
    return module;
}

/* Wakes threads that wait for the same module; they find it, or load it themselves. */
static void settle(struct modules *modules, struct module *module, bool stays) {
    pthread_mutex_lock(&modules->lock);
    module->is_loading = false;
    if (!stays) remove_at(link_of(modules, module));
    pthread_cond_broadcast(&modules->settled);
    pthread_mutex_unlock(&modules->lock);
}

enum err modules_get(const struct module_set *set, const struct program *program,
    const struct digest *pinned, struct module **ret, struct error *err) {
    struct modules *modules = set->modules;
    *ret = modules_find(set, program, pinned);
    if (*ret != NULL) return ERR_OK;
    const struct image *image = image_of(modules, program, pinned);
    if (image == NULL)
        return error_set(err, ERR_UNSUPPORTED, 0, "add such an image to its program.yaml",
            "program '%s' has no image for %s%s", program->name, modules->device->name,
            pinned != NULL ? " of the digest that the job pins" : "");
    struct module *fresh, *victim = NULL;
    enum err code = module_create(modules, program, image, &fresh, err);
    if (code != ERR_OK) return code;
    struct module *module = find_or_insert(modules, fresh, &victim);
    module_destroy(victim);
    if (module == fresh) {
        code = module_load(fresh, err);
        settle(modules, fresh, code == ERR_OK);
    } else if (module != NULL) {
        count_hit(modules);
    } else {
        code = error_set(err, ERR_DEVICE_MEMORY, 0, "pin fewer images at once",
            "%zu modules are in use, and no more are kept", modules->count_max);
    }
    if (module != fresh || code != ERR_OK) module_destroy(fresh);
    *ret = code == ERR_OK ? module : NULL;
    return code;
}

void module_unref(struct module *module) {
    if (module == NULL || module->is_default) return;
    struct modules *modules = module->modules;
    pthread_mutex_lock(&modules->lock);
    INVARIANT(module->references > 0, "a reference to a module is given back only once");
    module->references--;
    pthread_mutex_unlock(&modules->lock);
}

/* ---- sets ---- */

/* If a failure may pass, loading is left to the first job that needs the module. */
static enum err load_default(struct module_set *set, size_t index, struct error *err) {
    struct modules *modules = set->modules;
    const struct program *program = registry_at(set->registry, index);
    const struct image *image = image_of(modules, program, NULL);
    struct module *module;
    pulse_busy(); /* each may take long to compile */
    if (image == NULL) return ERR_OK;
    enum err code = module_create(modules, program, image, &module, err);
    if (code != ERR_OK) return code;
    module->is_default = true;
    module->sets = 1;
    code = module_load(module, err);
    pthread_mutex_lock(&modules->lock);
    modules->compilations++;
    modules->count += code == ERR_OK;
    pthread_mutex_unlock(&modules->lock);
    if (code == ERR_OK) {
        set->defaults[index] = module;
        return ERR_OK;
    }
    module_destroy(module);
    return err_is_sticky(code) ? code : ERR_OK;
}

/* False if `earlier` does not have this program, or has not loaded it. */
static bool share_default(struct module_set *set, const struct module_set *earlier, size_t index) {
    const struct program *program = registry_at(set->registry, index);
    const struct program *other =
        earlier != NULL ? registry_find(earlier->registry, slice_of_text(program->name)) : NULL;
    if (other == NULL || !program_is_same(program, other)) return false;
    struct module *module = default_of(earlier, other);
    if (module == NULL) return false;
    pthread_mutex_lock(&set->modules->lock);
    module->sets++;
    pthread_mutex_unlock(&set->modules->lock);
    set->defaults[index] = module;
    return true;
}

/* Defaults get at most half of the places, so that there is always one for a pinned image. */
static bool has_room(struct modules *modules) {
    pthread_mutex_lock(&modules->lock);
    bool ret = modules->count < modules->count_max / 2;
    pthread_mutex_unlock(&modules->lock);
    return ret;
}

enum err module_set_load(struct modules *modules, const struct registry *registry,
    const struct module_set *earlier, struct module_set **ret, struct error *err) {
    size_t programs = registry_count(registry);
    struct module_set *set = calloc(1, sizeof *set + programs * sizeof set->defaults[0]);
    if (set == NULL)
        return error_set(
            err, ERR_NO_MEMORY, 0, "give the process more memory", "no memory for the modules");
    set->modules = modules;
    set->registry = registry;
    enum err code = ERR_OK;
    for (size_t i = 0; i < programs && code == ERR_OK; i++)
        if (!share_default(set, earlier, i) && has_room(modules)) code = load_default(set, i, err);
    if (code == ERR_OK) *ret = set;
    else module_set_unload(set);
    return code;
}

/* NULL, or the module if no other set has it: the caller's to destroy. */
static struct module *leave_default(struct modules *modules, struct module *module) {
    if (module == NULL) return NULL;
    pthread_mutex_lock(&modules->lock);
    bool is_last = --module->sets == 0;
    modules->count -= is_last;
    pthread_mutex_unlock(&modules->lock);
    return is_last ? module : NULL;
}

enum err module_set_check(const struct module_set *set, struct error *err) {
    static const char fix[] = "add an image for this device, or take it out of programs.dir";
    for (size_t i = 0; i < registry_count(set->registry); i++) {
        const struct module *module = set->defaults[i];
        if (module != NULL && module->code != ERR_OK)
            return error_set(err, ERR_CONFIG, module->err.native, fix,
                "program '%s' cannot be loaded: %s", module->program.name, module->err.message);
    }
    return ERR_OK;
}

void module_set_unload(struct module_set *set) {
    if (set == NULL) return;
    for (size_t i = 0; i < registry_count(set->registry); i++)
        module_destroy(leave_default(set->modules, set->defaults[i]));
    free(set);
}

/* NULL: there is none. */
static struct module *take_removed(struct modules *modules) {
    pthread_mutex_lock(&modules->lock);
    struct module **link = &modules->newest;
    while (*link != NULL && ((*link)->references > 0 || program_is_installed(&(*link)->program)))
        link = &(*link)->older;
    struct module *module = *link;
    if (module != NULL) remove_at(link);
    pthread_mutex_unlock(&modules->lock);
    return module;
}

void modules_forget_removed(struct modules *modules) {
    struct module *module;
    while ((module = take_removed(modules)) != NULL) module_destroy(module);
}

/* ---- the whole ---- */

enum err modules_create(
    const struct device *device, size_t count_max, struct modules **ret, struct error *err) {
    struct modules *modules = calloc(1, sizeof *modules);
    if (modules == NULL)
        return error_set(
            err, ERR_NO_MEMORY, 0, "give the process more memory", "no memory for the modules");
    pthread_mutex_init(&modules->lock, NULL);
    pthread_cond_init(&modules->settled, NULL);
    modules->device = device;
    modules->count_max = count_max;
    *ret = modules;
    return ERR_OK;
}

void modules_destroy(struct modules *modules) {
    if (modules == NULL) return;
    while (modules->newest != NULL) {
        struct module *module = modules->newest;
        INVARIANT(module->references == 0, "no module is in use when all are unloaded");
        modules->newest = module->older;
        module_destroy(module);
    }
    pthread_cond_destroy(&modules->settled);
    pthread_mutex_destroy(&modules->lock);
    free(modules);
}

struct modules_counts modules_read_counts(struct modules *modules) {
    pthread_mutex_lock(&modules->lock);
    struct modules_counts counts = {
        .compilations = modules->compilations, .evictions = modules->evictions};
    pthread_mutex_unlock(&modules->lock);
    /* relaxed: as in count_hit() */
    counts.hits = atomic_load_explicit(&modules->hits, memory_order_relaxed);
    return counts;
}
