/**
 * Lends streams and events: a shared lock-free cache of 128 streams, 128 fences (completion events:
 * timing disabled, waits block) and 128 timing events. Those that do not fit are destroyed.
 *
 * The borrower holds the only copy of the handle. Giving it back clears that copy, so that giving
 * it back twice, or using it afterwards (gpu/event.h), is ERR_INTERNAL and never a crash.
 *
 * Lifetime: give everything back, or drop it, before lease_pool_destroy(). A stream is given back
 * when its work is fenced; if that wait failed, it is dropped instead. Threads: any bound one; one
 * at a time for a lease.
 */
#ifndef GPU_LEASE_H
#define GPU_LEASE_H

#include "gpu/device.h"

struct lease_pool;

/** Around the launches of a timed job: event_record(), event_elapsed_ns(). */
struct timing_pair {
    CUevent started, stopped;
};

struct stream_lease {
    CUstream stream;           /* non-blocking; NULL after it was given back */
    bool is_timed;             /* `timing` is set */
    struct timing_pair timing; /* on request */
};

/** How many of each are cached; exact only while no lease is taken or given back. */
struct lease_counts {
    size_t streams, fences, timing_events;
};

MUST_CHECK enum err lease_pool_create(
    const struct device *device, struct lease_pool **ret, struct error *err);

/** NULL is fine. */
void lease_pool_destroy(struct lease_pool *pool);

struct lease_counts lease_pool_counts(const struct lease_pool *pool);

/** Takes a stream and, if `is_timed`, a pair of timing events. After an error nothing is taken. */
MUST_CHECK enum err stream_lease_take(
    struct lease_pool *pool, bool is_timed, struct stream_lease *ret, struct error *err);
MUST_CHECK enum err stream_lease_release(
    struct lease_pool *pool, struct stream_lease *lease, struct error *err);

MUST_CHECK enum err timing_pair_take(
    struct lease_pool *pool, struct timing_pair *ret, struct error *err);
MUST_CHECK enum err timing_pair_release(
    struct lease_pool *pool, struct timing_pair *pair, struct error *err);

MUST_CHECK enum err fence_take(struct lease_pool *pool, CUevent *ret, struct error *err);
MUST_CHECK enum err fence_release(struct lease_pool *pool, CUevent *fence, struct error *err);

#endif
