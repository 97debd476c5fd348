#include "gpu/modules.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/hash_table.h"
#include "base/invariant.h"
#include "base/list.h"
#include "base/pulse.h"
#include "base/shared.h"

struct module {
    struct shared shared; /* held by the cache, and by graphs of its kernels */
    struct modules *modules;
    struct program program; /* held */
    const struct image *image;
    CUmodule handle;
    struct kernel *kernels; /* as many as the program has entries */
    enum err code;          /* why it cannot be used; ERR_OK: it can */
    struct error err;
    bool is_default; /* kept by sets; references are not counted */
    /* under the lock */
    uint32_t sets; /* defaults: how many sets have it */
    bool is_loading;
    uint32_t references;
    struct hash_node node;   /* of those that are not defaults */
    struct list_node by_use; /* the same */
};

struct module_set {
    struct modules *modules;
    const struct registry *registry;
    struct module *_Atomic *defaults; /* by index as its programs; NULL: see the others */
};

struct modules {
    const struct device *device;
    size_t count_max;
    atomic_uint_fast64_t hits;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t settled;
    struct hash_table by_image; /* those that are not defaults */
    struct list by_use;         /* the same, the one unused for longest first */
    size_t count;               /* of all modules */
    uint64_t compilations, evictions;
};

/* ---- one module ---- */

static void unload(struct module *module) {
    if (module->handle != NULL) image_unload(module->modules->device, module->handle);
    module->handle = NULL;
}

static void on_end(struct shared *shared) {
    struct module *module = (struct module *)shared;
    unload(module);
    program_release(&module->program);
    free(module->kernels);
    free(module);
}

void module_hold(struct module *module) {
    shared_hold(&module->shared);
}

void module_release(struct module *module) {
    shared_release(&module->shared);
}

/* The cache has the module no more. */
static void module_forget(struct module *module) {
    if (module != NULL) module_release(module);
}

static enum err module_create(struct modules *modules, const struct program *program,
    const struct image *image, struct module **ret, struct error *err) {
    struct module *module = calloc(1, sizeof *module);
    struct kernel *kernels = calloc(program->entry_count, sizeof kernels[0]);
    if (module == NULL || kernels == NULL) {
        free(module);
        free(kernels);
        return error_no_memory(err, "no memory for a module");
    }
    program_hold(program);
    *module = (struct module){
        .modules = modules, .program = *program, .image = image, .kernels = kernels};
    shared_init(&module->shared, on_end);
    *ret = module;
    return ERR_OK;
}

/* ERR_OK also for an image that the driver rejects: module_kernel() returns that error. */
static enum err load(struct module *module, struct error *err) {
    const struct device *device = module->modules->device;
    enum err code = image_load(device, module->image, &module->handle, err);
    if (code == ERR_OK)
        code = image_read_kernels(device, module->handle, &module->program, module->kernels, err);
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
    /* acquire: pairs with the release in set_default() */
    return atomic_load_explicit(
        &set->defaults[program - registry_at(set->registry, 0)], memory_order_acquire);
}

static void set_default(
    const struct module_set *set, const struct program *program, struct module *module) {
    /* release: pairs with the acquire in default_of() */
    atomic_store_explicit(
        &set->defaults[program - registry_at(set->registry, 0)], module, memory_order_release);
}

/* At most half of all, so that there is always one for a pinned image. */
static size_t default_places(const struct modules *modules) {
    return modules->count_max / 2;
}

static const struct image *image_of(
    const struct modules *modules, const struct program *program, const struct digest *pinned) {
    const struct device *device = modules->device;
    return program_image(program, device->on_cpu, device->limits.architecture, pinned);
}

/* Images are a program's own, and stay where they are as long as it is held. */
static uint64_t hash_of(const struct image *image) {
    return hash_more(HASH_START, slice_of(&image, sizeof(struct image *)));
}

static void insert(struct modules *modules, struct module *module) {
    hash_table_add(&modules->by_image, &module->node, hash_of(module->image));
    list_append(&modules->by_use, &module->by_use);
    modules->count++;
}

static void take_out(struct modules *modules, struct module *module) {
    hash_table_remove(&modules->by_image, &module->node);
    list_remove(&modules->by_use, &module->by_use);
    modules->count--;
}

static struct module *used_at(struct list_node *node) {
    return LIST_ITEM(node, struct module, by_use);
}

/* A module that is found is the one used last. */
static struct module *look_up(struct modules *modules, const struct image *image) {
    struct hash_node *node = hash_table_find(&modules->by_image, hash_of(image));
    for (; node != NULL; node = hash_node_next(node)) {
        struct module *module = HASH_ITEM(node, struct module, node);
        if (module->image != image) continue;
        list_remove(&modules->by_use, &module->by_use);
        list_append(&modules->by_use, &module->by_use);
        return module;
    }
    return NULL;
}

/* Takes out the module that was not used for longest, for the caller to destroy without the lock;
 * NULL where all are in use. */
static struct module *take_victim(struct modules *modules) {
    struct list_node *node = modules->by_use.first;
    while (node != NULL && used_at(node)->references > 0) node = node->after;
    if (node == NULL) return NULL;
    take_out(modules, used_at(node));
    modules->evictions++;
    return used_at(node);
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
        module = look_up(modules, image);
        if (module != NULL && module->is_loading) module = NULL;
        if (module != NULL) module->references++;
        pthread_mutex_unlock(&modules->lock);
    }
    if (module != NULL) count_hit(modules);
    return module;
}

/* Finds the module, waiting for a load under way; or inserts `fresh`, for whose load others wait.
 * NULL: no room. */
static struct module *find_or_insert(const struct module_set *set, const struct program *program,
    struct module *fresh, struct module **victim) {
    struct modules *modules = set->modules;
    pthread_mutex_lock(&modules->lock);
    struct module *module = look_up(modules, fresh->image);
    while (module != NULL && module->is_loading) {
        pthread_cond_wait(&modules->settled, &modules->lock);
        module = look_up(modules, fresh->image);
    }
    /* Another thread may have loaded it since we last looked. */
    if (module == NULL) module = find_default(set, program, fresh->image);
    if (module == NULL) {
        if (modules->count >= modules->count_max) *victim = take_victim(modules);
        if (modules->count < modules->count_max) {
            module = fresh;
            module->is_loading = true;
            modules->compilations++;
            insert(modules, module);
        }
    }
    if (module != NULL && !module->is_default) module->references++;
    pthread_mutex_unlock(&modules->lock);
    return module;
}

/* Jobs find it without the lock from now on. Its only reference is of the thread that loaded it. */
static void become_default(
    const struct module_set *set, const struct program *program, struct module *module) {
    struct modules *modules = set->modules;
    take_out(modules, module);
    modules->count++;
    module->is_default = true;
    module->sets = 1;
    set_default(set, program, module);
}

/* Wakes threads that wait for the same module; they find it, or load it themselves. */
static void settle(const struct module_set *set, const struct program *program,
    struct module *module, bool stays) {
    struct modules *modules = set->modules;
    bool is_best = module->image == image_of(modules, program, NULL);
    pthread_mutex_lock(&modules->lock);
    module->is_loading = false;
    if (!stays) take_out(modules, module);
    else if (is_best && module->code == ERR_OK && modules->count <= default_places(modules))
        become_default(set, program, module);
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
    struct module *module = find_or_insert(set, program, fresh, &victim);
    module_forget(victim);
    if (module == fresh) {
        code = load(fresh, err);
        settle(set, program, fresh, code == ERR_OK);
    } else if (module != NULL) {
        count_hit(modules);
    } else {
        code = error_set(err, ERR_DEVICE_MEMORY, 0, "pin fewer images at once",
            "%zu modules are in use, and no more are kept", modules->count_max);
    }
    if (module != fresh || code != ERR_OK) module_forget(fresh);
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
    code = load(module, err);
    pthread_mutex_lock(&modules->lock);
    modules->compilations++;
    modules->count += code == ERR_OK;
    pthread_mutex_unlock(&modules->lock);
    if (code == ERR_OK) {
        set_default(set, program, module);
        return ERR_OK;
    }
    module_forget(module);
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
    set_default(set, program, module);
    return true;
}

static bool has_room(struct modules *modules) {
    pthread_mutex_lock(&modules->lock);
    bool ret = modules->count < default_places(modules) && modules->count < MODULES_AT_START_MAX;
    pthread_mutex_unlock(&modules->lock);
    return ret;
}

enum err module_set_load(struct modules *modules, const struct registry *registry,
    const struct module_set *earlier, struct module_set **ret, struct error *err) {
    size_t programs = registry_count(registry);
    struct module_set *set = calloc(1, sizeof *set);
    struct module *_Atomic *defaults = calloc(programs, sizeof defaults[0]);
    if (set == NULL || defaults == NULL) {
        free(set);
        free(defaults);
        return error_no_memory(err, "no memory for the modules");
    }
    set->defaults = defaults;
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
        const struct module *module = default_of(set, registry_at(set->registry, i));
        if (module != NULL && module->code != ERR_OK)
            return error_set(err, ERR_CONFIG, module->err.native, fix,
                "program '%s' cannot be loaded: %s", module->program.name, module->err.message);
    }
    return ERR_OK;
}

void module_set_unload(struct module_set *set) {
    if (set == NULL) return;
    for (size_t i = 0; i < registry_count(set->registry); i++)
        module_forget(leave_default(set->modules, default_of(set, registry_at(set->registry, i))));
    free(set->defaults);
    free(set);
}

/* NULL: there is none. */
static struct module *take_removed(struct modules *modules) {
    pthread_mutex_lock(&modules->lock);
    struct list_node *node = modules->by_use.first;
    while (node != NULL &&
           (used_at(node)->references > 0 || program_is_installed(&used_at(node)->program)))
        node = node->after;
    struct module *module = node != NULL ? used_at(node) : NULL;
    if (module != NULL) take_out(modules, module);
    pthread_mutex_unlock(&modules->lock);
    return module;
}

void modules_forget_removed(struct modules *modules) {
    struct module *module;
    while ((module = take_removed(modules)) != NULL) module_forget(module);
}

/* ---- the whole ---- */

enum err modules_create(
    const struct device *device, size_t count_max, struct modules **ret, struct error *err) {
    struct modules *modules = calloc(1, sizeof *modules);
    if (modules == NULL) return error_no_memory(err, "no memory for the modules");
    pthread_mutex_init(&modules->lock, NULL);
    pthread_cond_init(&modules->settled, NULL);
    modules->device = device;
    modules->count_max = count_max;
    *ret = modules;
    return ERR_OK;
}

void modules_destroy(struct modules *modules) {
    if (modules == NULL) return;
    while (modules->by_use.first != NULL) {
        struct module *module = used_at(modules->by_use.first);
        INVARIANT(module->references == 0, "no module is in use when all are unloaded");
        take_out(modules, module);
        module_forget(module);
    }
    hash_table_fini(&modules->by_image);
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
