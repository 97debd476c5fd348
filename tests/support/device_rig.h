/** What lives on one device of the CPU driver, with the programs that the build made. */
#ifndef TESTS_SUPPORT_DEVICE_RIG_H
#define TESTS_SUPPORT_DEVICE_RIG_H

#include "gpu/modules.h"
#include "gpu/residents.h"
#include "plan/plan.h"

struct device_rig {
    struct device device;
    struct budget device_budget, pinned_budget;
    struct pool *device_pool, *pinned_pool;
    struct pool_counters device_counters, pinned_counters; /* the test's thread's */
    struct lease_pool *leases;
    struct statics *statics;
    struct residents *residents;
    struct registry *registry;
    struct modules *modules;
    struct module_set *set;
};

/** `faults` as the CPU driver's script; NULL for none. */
void device_rig_init(struct device_rig *rig, const char *faults);

/** The test fails where something of a job is still on the device. */
void device_rig_fini(struct device_rig *rig);

/** A valid job's plan. */
const struct plan *device_rig_plan(const struct device_rig *rig, struct job *job);

/** Whether a static is on the device, and nobody uses it: it is gone then. */
bool device_rig_shed_static(struct device_rig *rig, const struct digest *digest);

#endif
