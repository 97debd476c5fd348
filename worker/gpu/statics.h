/**
 * The cache of statics: immutable payloads on the device, found by digest, shared by all jobs.
 *
 * A payload is uploaded once, however many threads ask for it: the first uploads, the others wait.
 * So only threads that may wait (prepare/) call statics_upload(). A payload is ready for all once
 * its copy is enqueued and fenced. A stream that uses it waits for the fence first
 * (static_entry_await()), until the copy is known to be done.
 *
 * An entry is pinned while a reference is held. Unpinned ones leave in the order of eviction.h when
 * the budget needs room, or when device memory is short. A payload for which the budget has no room
 * lives for its references alone: one that is wanted for the first time takes no room from those
 * that are in use.
 *
 * Each entry is charged what it takes of the device, 4 KiB at least, for it has notes in host
 * memory as well; and there are `entries_max` at most.
 *
 * Units: bytes; cached_bytes are what is taken of the device, size classes of the pool. Lifetime:
 * references are given back before statics_destroy(). Threads: any bound one. Everything but
 * statics_find() and statics_unref() of a cached entry may call the driver; no lock is held while
 * it does.
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
    uint64_t entries_max;   /* 1 at least */
    uint32_t staging_count; /* staging blocks, of STAGING_BYTES each */
};

struct statics_counts {
    uint64_t hits, misses, evictions;
    uint64_t saved_bytes;    /* of hits: payloads that did not move */
    uint64_t uploaded_bytes; /* of misses */
    uint64_t cached_bytes;   /* on the device now, entries in use included */
    uint64_t cached_count;
};

MUST_CHECK enum err statics_create(
    const struct statics_options *options, struct statics **ret, struct error *err);
void statics_destroy(struct statics *statics); /* NULL is fine */

/** +1 reference to a payload that is ready; NULL where it is not. Never waits. */
struct static_entry *statics_find(struct statics *statics, const struct digest *digest);

/** One more reference, for somebody else, where the caller holds one. */
struct static_entry *statics_ref(struct statics *statics, struct static_entry *entry);

/**
 * +1 reference to `payload`, which has this digest, uploading it unless somebody has or is.
 * `ret_uploaded` tells whether this call moved it. ERR_DEVICE_MEMORY: not even without all unpinned
 * statics is there room. A failed upload leaves nothing behind; those who waited for it try
 * themselves.
 */
MUST_CHECK enum err statics_upload(struct statics *statics, const struct digest *digest,
    const struct payload *payload, struct static_entry **ret, bool *ret_uploaded,
    struct error *err);

/** Not before all work that uses the entry is over. */
void statics_unref(struct statics *statics, struct static_entry *entry);

/**
 * Evicts unpinned entries, `bytes` or all there are, and says how many bytes went back to the pool.
 * `counters` are the calling thread's, of the device pool.
 */
uint64_t statics_shed(struct statics *statics, struct pool_counters *counters, uint64_t bytes);

/** pool_acquire() from the device pool, shedding statics as long as that helps. */
MUST_CHECK enum err statics_acquire_memory(struct statics *statics, struct pool_counters *counters,
    size_t bytes, struct pool_block *ret, struct error *err);

/** What is enqueued on `stream` from now on finds the payload in place. */
MUST_CHECK enum err static_entry_await(
    const struct device *device, struct static_entry *entry, CUstream stream, struct error *err);

CUdeviceptr static_entry_address(const struct static_entry *entry);
size_t static_entry_bytes(const struct static_entry *entry); /* of the payload */

/** Each number is exact; they are not read in the same instant. */
struct statics_counts statics_read_counts(struct statics *statics);

/** What the uploads really moved. */
struct upload_counts statics_upload_counts(const struct statics *statics);

/** The statics' part of the books of both pools, for pool_usage_sum(). */
const struct pool_counters *statics_device_counters(const struct statics *statics, size_t *count);
const struct pool_counters *statics_pinned_counters(const struct statics *statics, size_t *count);

#endif
