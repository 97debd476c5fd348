/**
 * One tenant at a time (prepare/tenant.h). A kernel can read all that its process has on the
 * device, whoever it was given to: so while jobs of one tenant run, no slab, block of a pool or
 * staging holds a byte of another's jobs.
 *
 * A batch enters with its jobs' tenant and leaves when its outputs are taken and its memory is
 * given back. Others of the same tenant enter beside it; another tenant waits until all have left.
 * Those who wait take their turns in the order in which they came. Whoever enters first wipes what
 * the last tenant left in the slabs: as much as was used, and only where the tenant is another.
 * Blocks of the pools are wiped by these (gpu/pool.h).
 *
 * It is not for what outlives a job: statics and residents are on the device all the time.
 *
 * Units: bytes. Lifetime: tenancy_create() to tenancy_destroy(); slabs are removed before. Threads:
 * any bound one. NULL is no isolation: everybody enters at once, and nothing is wiped.
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

/** From now on they are wiped between tenants; they are zero now. */
void tenancy_add(struct tenancy *tenancy, struct tenancy_slabs *slabs);

/** The end of that; who was not added is fine. */
void tenancy_remove(struct tenancy *tenancy, const struct tenancy_slabs *slabs);

/**
 * Waits for the tenant's turn. What is enqueued on `stream` from then on finds the slabs wiped.
 * After an error, which is that of a driver's call or ERR_NO_MEMORY, nobody has entered.
 *
 * Who has entered with one tenant does not wait with another: it would wait for itself.
 */
MUST_CHECK enum err tenancy_enter(
    struct tenancy *tenancy, struct slice tenant, CUstream stream, struct error *err);

/** The same without waiting: `ret_entered` is false where others come first. */
MUST_CHECK enum err tenancy_try_enter(struct tenancy *tenancy, struct slice tenant, CUstream stream,
    bool *ret_entered, struct error *err);

void tenancy_leave(struct tenancy *tenancy);

#endif
