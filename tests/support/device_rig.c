#include "support/device_rig.h"

#include "gpu/cpu_device.h"
#include "plan/planner.h"
#include "support/device_checks.h"
#include "support/jobs.h"

enum { POOL_BYTES = 16 << 20 };

#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) != ERR_OK) fail_msg("%s", err.message);                                         \
    } while (0)

void device_rig_init(struct device_rig *rig, const char *faults) {
    struct error err;
    *rig = (struct device_rig){.registry = test_registry()};
    cpu_device_open(&rig->device, faults);
    budget_init(&rig->device_budget, "device pool", ERR_DEVICE_MEMORY, POOL_BYTES);
    budget_init(&rig->pinned_budget, "pinned pool", ERR_NO_MEMORY, POOL_BYTES);
    OK(pool_create(&rig->device, POOL_DEVICE, &rig->device_budget, &rig->device_pool, &err));
    OK(pool_create(&rig->device, POOL_PINNED, &rig->pinned_budget, &rig->pinned_pool, &err));
    OK(lease_pool_create(&rig->device, &rig->leases, &err));
    const struct statics_options statics = {.device = &rig->device,
        .leases = rig->leases,
        .device_pool = rig->device_pool,
        .pinned_pool = rig->pinned_pool,
        .budget_bytes = POOL_BYTES,
        .entries_max = 1000,
        .staging_count = 1};
    OK(statics_create(&statics, &rig->statics, &err));
    const struct residents_options residents = {.device = &rig->device,
        .pool = rig->device_pool,
        .statics = rig->statics,
        .budget = &rig->device_budget,
        .idle_ns = UINT64_MAX / 2,
        .bytes_max = UINT64_MAX,
        .key_bytes_max = UINT64_MAX,
        .entries_max = 100,
        .key_entries_max = 100};
    OK(residents_create(&residents, &rig->residents, &err));
    OK(modules_create(&rig->device, MODULES_MAX, &rig->modules, &err));
    OK(module_set_load(rig->modules, rig->registry, NULL, &rig->set, &err));
}

void device_rig_fini(struct device_rig *rig) {
    module_set_unload(rig->set);
    modules_destroy(rig->modules);
    residents_destroy(rig->residents);
    statics_destroy(rig->statics);
    lease_pool_destroy(rig->leases);
    pool_destroy(rig->pinned_pool, &rig->pinned_counters);
    pool_destroy(rig->device_pool, &rig->device_counters);
    assert_int_equal(budget_charged(&rig->device_budget), 0);
    assert_int_equal(budget_charged(&rig->pinned_budget), 0);
    device_assert_nothing_left();
    device_close(&rig->device);
    registry_destroy(rig->registry);
    cpu_driver_reset();
}

const struct plan *device_rig_plan(const struct device_rig *rig, struct job *job) {
    struct error err;
    const struct plan *plan;
    const struct plan_limits limits = {.device = rig->device.limits,
        .job_bytes_max = 1 << 24,
        .array_bytes_max = 1 << 24,
        .result_bytes_max = 1 << 24,
        .has_key_order = true};
    OK(plan_job(job, rig->registry, &limits, &plan, &err));
    return plan;
}

bool device_rig_shed_static(struct device_rig *rig, const struct digest *digest) {
    struct static_entry *entry = statics_find(rig->statics, digest);
    if (entry == NULL) return false;
    statics_unref(rig->statics, entry);
    statics_shed(rig->statics, &rig->device_counters, SIZE_MAX);
    entry = statics_find(rig->statics, digest);
    if (entry != NULL) statics_unref(rig->statics, entry);
    return entry == NULL;
}
