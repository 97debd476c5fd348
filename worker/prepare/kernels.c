#include "prepare/kernels.h"

#include <inttypes.h>

bool kernels_pin(struct job *job) {
    const struct plan *plan = job->plan;
    bool is_warm = true;
    for (size_t i = 0; i < plan->launch_count; i++) {
        const struct plan_launch *launch = &plan->launches[i];
        struct module *module = modules_find(job->modules, launch->program, launch->image);
        job->kernels[i].module = module;
        if (module == NULL) is_warm = false;
    }
    return is_warm;
}

static uint64_t block_threads(const struct plan_launch *launch) {
    return (uint64_t)launch->block[0] * launch->block[1] * launch->block[2];
}

static enum err check_kernel(const struct plan_launch *launch, const struct kernel *kernel,
    const struct device *device, struct error *err) {
    uint64_t threads = block_threads(launch);
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

static enum err choose_phases(struct job_kernel *chosen, const struct plan_launch *launch,
    const struct device *device, struct error *err) {
    enum err code = ERR_OK;
    chosen->is_in_phases = true;
    for (size_t i = 0; i < launch->entry->phase_count && code == ERR_OK; i++)
        code = check_kernel(launch, chosen->kernel->phases[i], device, err);
    return code;
}

/* Blocks that wait for each other must all run at once; where they cannot, phases do the same.
 * Planning refuses what has none where the device launches nothing cooperatively. */
static enum err choose_cooperation(struct job_kernel *chosen, const struct plan_launch *launch,
    const struct device *device, struct error *err) {
    if (!device->limits.cooperative) return choose_phases(chosen, launch, device, err);
    int each = 0; /* blocks on a multiprocessor */
    enum err code = GPU_TRY(device->driver,
        function_occupancy(
            &each, chosen->kernel->function, (int)block_threads(launch), launch->shared_bytes),
        err);
    if (code != ERR_OK) return code;
    uint64_t fitting = (uint64_t)each * device->limits.multiprocessors;
    /* Each side is below 2^31, 2^16 and 2^16 on every device so far: no overflow. */
    uint64_t asked = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
    if (asked <= fitting) return ERR_OK;
    if (launch->entry->phase_count > 0) return choose_phases(chosen, launch, device, err);
    return error_set(err, ERR_BAD_LAUNCH, 0,
        "use a smaller grid and let each thread do more, or give the entry `phases`",
        "'%s' is launched cooperatively with %" PRIu64 " blocks of %" PRIu64 " threads and %" PRIu32
        " bytes of shared memory, and the device runs %" PRIu64 " at once: %d on each of %" PRIu32
        " multiprocessors",
        launch->entry->name, asked, block_threads(launch), launch->shared_bytes, fitting, each,
        device->limits.multiprocessors);
}

static enum err load(const struct module_set *modules, const struct device *device,
    const struct plan_launch *launch, struct job_kernel *ret, struct error *err) {
    enum err code = ERR_OK;
    if (ret->module == NULL)
        code = modules_get(modules, launch->program, launch->image, &ret->module, err);
    if (code == ERR_OK) code = module_kernel(ret->module, launch->entry, &ret->kernel, err);
    if (code == ERR_OK) code = check_kernel(launch, ret->kernel, device, err);
    if (code == ERR_OK && launch->cooperative) code = choose_cooperation(ret, launch, device, err);
    return code;
}

enum err kernels_load(const struct device *device, struct job *job, struct error *err) {
    const struct plan *plan = job->plan;
    enum err code = ERR_OK;
    for (size_t i = 0; i < plan->launch_count && code == ERR_OK; i++)
        code = load(job->modules, device, &plan->launches[i], &job->kernels[i], err);
    return code;
}

void kernels_release(struct job *job) {
    for (size_t i = 0; i < job->plan->launch_count; i++) {
        module_unref(job->kernels[i].module);
        job->kernels[i].module = NULL;
    }
}
