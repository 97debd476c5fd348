#include "prepare/kernels.h"

#include <inttypes.h>

bool kernels_pin(struct modules *modules, struct prepared *prepared) {
    const struct plan *plan = prepared->plan;
    bool is_warm = true;
    for (size_t i = 0; i < plan->launch_count; i++) {
        const struct plan_launch *launch = &plan->launches[i];
        prepared->modules[i] = modules_find(modules, launch->program, launch->image);
        if (prepared->modules[i] == NULL) is_warm = false;
    }
    return is_warm;
}

static enum err check_kernel(const struct plan_launch *launch, const struct kernel *kernel,
    const struct device *device, struct error *err) {
    uint64_t threads = (uint64_t)launch->block[0] * launch->block[1] * launch->block[2];
    if (threads > kernel->block_threads_max)
        return error_set(err, ERR_BAD_LAUNCH, 0, "use smaller blocks",
            "'%s' was compiled for blocks of up to %" PRIu32
            " threads, and the job asks for %" PRIu64,
            launch->entry->name, kernel->block_threads_max, threads);
    uint64_t shared = (uint64_t)launch->shared_bytes + kernel->static_shared_bytes;
    if (shared > device->limits.shared_bytes_max)
        return error_set(err, ERR_BAD_LAUNCH, 0, "ask for less dynamic shared memory",
            "'%s' needs %" PRIu64 " bytes of shared memory, and the device allows %" PRIu32,
            launch->entry->name, shared, device->limits.shared_bytes_max);
    return ERR_OK;
}

enum err kernels_load(struct modules *modules, const struct device *device,
    struct prepared *prepared, struct error *err) {
    const struct plan *plan = prepared->plan;
    enum err code = ERR_OK;
    for (size_t i = 0; i < plan->launch_count && code == ERR_OK; i++) {
        const struct plan_launch *launch = &plan->launches[i];
        if (prepared->modules[i] == NULL)
            code = modules_get(modules, launch->program, launch->image, &prepared->modules[i], err);
        if (code == ERR_OK)
            code = module_kernel(prepared->modules[i], launch->entry, &prepared->kernels[i], err);
        if (code == ERR_OK) code = check_kernel(launch, prepared->kernels[i], device, err);
    }
    return code;
}

void kernels_release(struct prepared *prepared) {
    for (size_t i = 0; i < prepared->plan->launch_count; i++) {
        module_unref(prepared->modules[i]);
        prepared->modules[i] = NULL;
    }
}
