/**
 * Uploads of large payloads on a stream of their own, from any number of threads at once.
 *
 * Bytes go through staging blocks that are used in turn, so that the host copies into one while the
 * device reads another. A payload that the driver can register is copied directly.
 *
 * All copies share one stream: an event recorded on it after a copy is done no earlier than that
 * copy, however often it is recorded again. So a payload borrows the event of its last staging
 * block, and thousands of payloads need no events of their own.
 *
 * If the pinned pool wipes, so does the upload: a staging block is zeroed before the next piece,
 * once the device has read it.
 *
 * Units: bytes. Lifetime: no call may be under way at upload_stream_destroy(). Threads: any bound
 * one.
 */
#ifndef GPU_UPLOAD_H
#define GPU_UPLOAD_H

#include "base/slice.h"
#include "gpu/lease.h"
#include "gpu/pool.h"

enum { STAGING_BYTES = 1 << 20, UPLOAD_ALIGNMENT = 16 };

struct upload_stream;

struct upload_options {
    const struct device *device;
    struct lease_pool *leases;
    struct pool *pinned_pool;
    struct pool_counters *pinned_counters; /* of the thread that creates and destroys it */
    uint32_t staging_count;                /* two for each uploading thread keep it busy */
};

struct payload {
    struct slice bytes;
    /**
     * A MAP_SHARED mapping, which the driver may register. A MAP_PRIVATE one must not be: its pages
     * are copied one by one, and registering a file of a few MiB on ext4 never came back (measured,
     * driver 580).
     */
    bool is_shared_mapping;
};

MUST_CHECK enum err upload_stream_create(
    const struct upload_options *options, struct upload_stream **ret, struct error *err);

/** NULL is fine. */
void upload_stream_destroy(struct upload_stream *upload);

/**
 * Copies `payload` to `to`, which must have room up to the next multiple of UPLOAD_ALIGNMENT: that
 * pad is zeroed, so that a kernel that reads in vectors finds no foreign bytes. The caller may
 * reuse the payload on return. The copy is done when the event in `ret_fence` is, which the upload
 * stream owns; no event: it is done already. After an error a part may still be under way, until
 * upload_drain().
 */
MUST_CHECK enum err upload_send(struct upload_stream *upload, const struct payload *payload,
    CUdeviceptr to, CUevent *ret_fence, struct error *err);

/** Waits until everything that was sent is on the device. */
MUST_CHECK enum err upload_drain(struct upload_stream *upload, struct error *err);

/** What was enqueued since the start; each number is exact. */
struct upload_counts {
    uint64_t bytes, copies, fences;
};

struct upload_counts upload_read_counts(const struct upload_stream *upload);

#endif
