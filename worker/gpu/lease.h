/**
 * Streams and events, lent: a shared lock-free cache of 128 streams, 128 fences (completion events:
 * timing disabled, waiting blocks) and 128 timing events. What does not fit is destroyed.
 *
 * Who borrows holds the only copy. Giving back clears it, so that a second time, like any use in
 * between (gpu/event.h), meets a null handle: ERR_INTERNAL, never a crash.
 *
 * Lifetime: everything is given back, or dropped for good, before lease_pool_destroy(). A stream
 * comes back when its work is fenced; where the wait failed it is dropped, not given back.
 * Threads: any bound one; a lease, one at a time.
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
    CUstream stream;           /* non-blocking; NULL when it was given back */
    bool is_timed;             /* `timing` is there */
    struct timing_pair timing; /* on request */
};

/** How many of each are cached; exact while nobody borrows or gives back. */
struct lease_counts {
    size_t streams, fences, timing_events;
};

MUST_CHECK enum err lease_pool_create(
    const struct device *device, struct lease_pool **ret, struct error *err);

/** NULL is fine. */
void lease_pool_destroy(struct lease_pool *pool);

struct lease_counts lease_pool_counts(const struct lease_pool *pool);

/** A stream, and a pair of timing events where `is_timed`. After an error nothing is taken. */
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
