/**
 * The cache of statics: immutable payloads on the device, found by digest, shared by all jobs.
 *
 * A payload is uploaded once, however many ask for it at once: the first uploads, the others wait,
 * so only threads that may wait (prepare/) call statics_upload(). An entry is pinned while a
 * reference is held; unpinned entries leave in the order of their last use when the budget needs
 * room. A payload larger than the whole budget lives for its references alone.
 *
 * Units: bytes. Lifetime: references are given back before statics_destroy(). Threads: any bound
 * thread. No driver call happens under the lock.
 */
#ifndef GPU_STATICS_H
#define GPU_STATICS_H

#include "base/digest.h"
#include "gpu/device.h"

struct statics;
struct static_entry;

struct statics_counts {
    uint64_t hits, misses, evictions;
    uint64_t cached_bytes; /* on the device now, entries in use included */
};

MUST_CHECK enum err statics_create(
    const struct device *device, uint64_t budget_bytes, struct statics **ret, struct error *err);
void statics_destroy(struct statics *statics); /* NULL is fine */

/** +1 reference to a payload that is ready; NULL where it is not. Never waits. */
struct static_entry *statics_find(struct statics *statics, const struct digest *digest);

/**
 * +1 reference to `payload`, which has this digest, uploading it unless somebody has or is. Returns
 * when the bytes are on the device. `uploaded` tells whether this call moved them. A failed upload
 * leaves nothing behind; those who waited for it try themselves.
 */
MUST_CHECK enum err statics_upload(struct statics *statics, const struct digest *digest,
    struct slice payload, struct static_entry **ret, bool *uploaded, struct error *err);

void statics_unref(struct statics *statics, struct static_entry *entry);

CUdeviceptr static_entry_address(const struct static_entry *entry);
size_t static_entry_bytes(const struct static_entry *entry);

struct statics_counts statics_read_counts(struct statics *statics);

#endif
