/**
 * The cache of statics: immutable payloads on the device, found by digest, shared by all jobs.
 *
 * A payload is uploaded once, however many threads ask for it: the first uploads, the others wait.
 * So only threads that may wait (prepare/) call statics_upload(). A payload is ready for all once
 * its copy is enqueued and followed by a fence. A stream that uses it first waits for that fence
 * (static_entry_await()), until the copy is known to be done.
 *
 * An entry is pinned while a reference is held. Unpinned ones leave in the order of eviction.h when
 * the budget needs room, or when device memory is short. A payload for which the budget has no room
 * lives only as long as its references: a payload that is used for the first time takes no room
 * from those that are in use.
 *
 * Each entry is charged the device memory that it takes, but at least 4 KiB, because it also takes
 * host memory. There are at most `entries_max` entries.
 *
 * Units: bytes; cached_bytes counts device memory taken, in size classes of the pool. Lifetime:
 * give references back before statics_destroy(). Threads: any bound one. All functions may call the
 * driver, except statics_find() and statics_unref() of a cached entry; no lock is held meanwhile.
 */
#ifndef GPU_STATICS_H
#define GPU_STATICS_H

#include "base/digest.h"
#include "gpu/upload.h"

struct statics;
struct static_entry;

struct statics_options {
    const struct device *device;
    struct lease_pool *leases;
    struct pool *device_pool, *pinned_pool;
    uint64_t budget_bytes;
    uint64_t entries_max;   /* at least 1 */
    uint32_t staging_count; /* staging blocks, of STAGING_BYTES each */
};

struct statics_counts {
    uint64_t hits, misses, evictions;
    uint64_t saved_bytes;    /* of hits: bytes of payloads that were not moved */
    uint64_t uploaded_bytes; /* of misses */
    uint64_t cached_bytes;   /* on the device now, including entries in use */
    uint64_t cached_count;
};

MUST_CHECK enum err statics_create(
    const struct statics_options *options, struct statics **ret, struct error *err);
void statics_destroy(struct statics *statics); /* NULL is fine */

/** Adds a reference to a payload that is ready; NULL if it is not. Never waits. */
struct static_entry *statics_find(struct statics *statics, const struct digest *digest);

/** Adds a reference. The caller must hold one. */
struct static_entry *statics_ref(struct statics *statics, struct static_entry *entry);

/**
 * Adds a reference to `payload`, which has this digest. Uploads it unless it is there, or another
 * thread is uploading it. `ret_uploaded` tells whether this call moved it. A failed upload leaves
 * nothing behind; threads that waited for it try themselves. Errors: ERR_DEVICE_MEMORY, if there
 * would be no room even without all unpinned statics.
 */
MUST_CHECK enum err statics_upload(struct statics *statics, const struct digest *digest,
    const struct payload *payload, struct static_entry **ret, bool *ret_uploaded,
    struct error *err);

/** Releases a reference, after all work that uses the entry is over. */
void statics_unref(struct statics *statics, struct static_entry *entry);

/**
 * Evicts unpinned entries of `bytes`, or all there are, and returns how many bytes went back to the
 * pool. `counters` are the calling thread's counters of the device pool.
 */
uint64_t statics_shed(struct statics *statics, struct pool_counters *counters, uint64_t bytes);

/** pool_acquire() from the device pool, evicting statics as long as that helps. */
MUST_CHECK enum err statics_acquire_memory(struct statics *statics, struct pool_counters *counters,
    size_t bytes, struct pool_block *ret, struct error *err);

/** Makes work that is enqueued on `stream` from now on wait until the payload is there. */
MUST_CHECK enum err static_entry_await(
    const struct device *device, struct static_entry *entry, CUstream stream, struct error *err);

CUdeviceptr static_entry_address(const struct static_entry *entry);
size_t static_entry_bytes(const struct static_entry *entry); /* of the payload */

/** Each number is exact, but they are not read at the same instant. */
struct statics_counts statics_read_counts(struct statics *statics);

/** What the uploads moved. */
struct upload_counts statics_upload_counts(const struct statics *statics);

/** The statics' counters of both pools, for pool_usage_sum(). */
const struct pool_counters *statics_device_counters(const struct statics *statics, size_t *count);
const struct pool_counters *statics_pinned_counters(const struct statics *statics, size_t *count);

#endif
