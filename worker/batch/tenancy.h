/**
 * One tenant at a time (prepare/tenant.h). A kernel can read all that its process has on the
 * device. So while jobs of one tenant run, no slab, pool block or staging memory holds a byte of
 * another tenant's jobs.
 *
 * A batch enters with the tenant of its jobs, and leaves when its outputs are taken and its memory
 * is given back. Batches of the same tenant enter beside it. Another tenant waits until all have
 * left; tenants take turns in the order in which they came. The first batch to enter wipes what the
 * last tenant left in the slabs: only the used part, and only if the tenant changes. The pools wipe
 * their blocks themselves (gpu/pool.h).
 *
 * Statics and residents are not covered: they outlive jobs and stay on the device.
 *
 * Units: bytes. Lifetime: tenancy_create() to tenancy_destroy(); slabs are removed first. Threads:
 * any that is bound to the device. NULL means no isolation: every batch enters at once, and nothing
 * is wiped.
 */
#ifndef BATCH_TENANCY_H
#define BATCH_TENANCY_H

#include "base/slice.h"
#include "gpu/lease.h"
#include "gpu/pool.h"

struct tenancy;

/** A part of a slab that was used since it was wiped: the first `bytes` of `block`. */
struct slab_use {
    struct pool_block block;
    uint64_t bytes; /* written between entering and leaving */
};

/** The slabs that a batch keeps for its next jobs. */
struct tenancy_slabs {
    struct tenancy_slabs *next;
    struct slab_use device, upload, readback;
};

MUST_CHECK enum err tenancy_create(const struct device *device, struct lease_pool *leases,
    struct tenancy **ret, struct error *err);
void tenancy_destroy(struct tenancy *tenancy); /* NULL is fine */

/** Adds slabs, which are zero now; from now on they are wiped between tenants. */
void tenancy_add(struct tenancy *tenancy, struct tenancy_slabs *slabs);

/** Removes slabs; those that were never added are fine. */
void tenancy_remove(struct tenancy *tenancy, const struct tenancy_slabs *slabs);

/**
 * Waits for the tenant's turn. Work that is enqueued on `stream` from then on finds the slabs
 * wiped. After an error (of a driver call, or ERR_NO_MEMORY) the caller has not entered.
 *
 * A caller that has entered with one tenant must not wait with another: it would wait for itself.
 */
MUST_CHECK enum err tenancy_enter(
    struct tenancy *tenancy, struct slice tenant, CUstream stream, struct error *err);

/** As tenancy_enter(), without waiting: `ret_entered` is false if others come first. */
MUST_CHECK enum err tenancy_try_enter(struct tenancy *tenancy, struct slice tenant, CUstream stream,
    bool *ret_entered, struct error *err);

void tenancy_leave(struct tenancy *tenancy);

#endif
