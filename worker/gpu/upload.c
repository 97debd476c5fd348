#include "gpu/upload.h"

#include <stdlib.h>

#include "base/invariant.h"
#include "base/queue.h"
#include "gpu/event.h"
#include "gpu/pinned.h"

enum {
    /* Smaller payloads are copied by the host before the driver could register them: 4 MiB took
     * 0.25 ms against 0.4 ms, 1 MiB 0.14 ms against 0.1 ms (H200, driver 580). */
    REGISTERED_BYTES_MIN = 4 << 20
};

struct staging {
    struct pool_block block;
    CUevent fence;
    bool is_unfenced; /* recording the fence failed, so only the whole stream can be waited for */
};

struct upload_stream {
    struct upload_options options;
    struct stream_lease lease;
    struct queue *idle; /* free staging blocks, the one used longest ago first */
    atomic_uint_fast64_t bytes, copies, fences; /* relaxed: they publish no other memory */
    struct staging staging[];
};

static enum err staging_init(
    const struct upload_options *options, struct staging *staging, struct error *err) {
    enum err code = pool_acquire(
        options->pinned_pool, options->pinned_counters, STAGING_BYTES, &staging->block, err);
    if (code == ERR_OK) code = fence_take(options->leases, &staging->fence, err);
    return code;
}

static void staging_fini(const struct upload_options *options, struct staging *staging) {
    struct error err;
    pool_give_back(options->pinned_pool, options->pinned_counters, &staging->block);
    enum err code = ERR_OK;
    if (staging->fence != NULL) code = fence_release(options->leases, &staging->fence, &err);
    INVARIANT(code == ERR_OK, "a fence that was taken is given back once");
}

enum err upload_stream_create(
    const struct upload_options *options, struct upload_stream **ret, struct error *err) {
    struct upload_stream *upload =
        calloc(1, sizeof *upload + options->staging_count * sizeof upload->staging[0]);
    if (upload == NULL) goto no_memory;
    upload->options = *options;
    upload->idle = queue_create(options->staging_count);
    if (upload->idle == NULL) goto no_memory;
    enum err code = stream_lease_take(options->leases, false, &upload->lease, err);
    for (uint32_t i = 0; i < options->staging_count && code == ERR_OK; i++) {
        code = staging_init(options, &upload->staging[i], err);
        if (code == ERR_OK) queue_must_push(upload->idle, &upload->staging[i]);
    }
    if (code == ERR_OK) *ret = upload;
    else upload_stream_destroy(upload);
    return code;
no_memory:
    upload_stream_destroy(upload);
    return error_no_memory(err, "no memory for %u staging blocks", options->staging_count);
}

/* Memory that a lost context may still read is not released. */
void upload_stream_destroy(struct upload_stream *upload) {
    if (upload == NULL) return;
    struct error err;
    bool has_stream = upload->lease.stream != NULL;
    if (!has_stream || upload_drain(upload, &err) == ERR_OK) {
        for (uint32_t i = 0; i < upload->options.staging_count; i++)
            staging_fini(&upload->options, &upload->staging[i]);
        if (has_stream) (void)!stream_lease_release(upload->options.leases, &upload->lease, &err);
    }
    queue_destroy(upload->idle);
    free(upload);
}

enum err upload_drain(struct upload_stream *upload, struct error *err) {
    return stream_wait(upload->options.device, upload->lease.stream, err);
}

static enum err copy(
    struct upload_stream *upload, CUdeviceptr to, struct slice from, struct error *err) {
    enum err code = GPU_TRY(upload->options.device->driver,
        copy_to_device(to, from.data, from.size, upload->lease.stream), err);
    if (code != ERR_OK) return code;
    atomic_fetch_add_explicit(&upload->copies, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&upload->bytes, from.size, memory_order_relaxed);
    return ERR_OK;
}

/* Waits until the device has read what the block held before. */
static enum err staging_wait(
    struct upload_stream *upload, struct staging *staging, struct error *err) {
    if (!staging->is_unfenced) return event_wait(upload->options.device, staging->fence, err);
    enum err code = upload_drain(upload, err);
    if (code == ERR_OK) staging->is_unfenced = false;
    return code;
}

static size_t pad_of(size_t bytes) {
    return -bytes & (UPLOAD_ALIGNMENT - 1);
}

static enum err send_staged(struct upload_stream *upload, struct staging *staging,
    struct slice piece, CUdeviceptr to, struct error *err) {
    static const uint8_t zeroes[UPLOAD_ALIGNMENT];
    struct pinned_block block = pool_block_pinned(&staging->block);
    size_t pad = pad_of(piece.size); /* only the last piece has one: the others are whole blocks */
    enum err code = staging_wait(upload, staging, err);
    if (code == ERR_OK) code = pinned_write(&block, 0, piece, err);
    if (code == ERR_OK) code = pinned_write(&block, piece.size, slice_of(zeroes, pad), err);
    if (code == ERR_OK) code = copy(upload, to, slice_of(block.data, piece.size + pad), err);
    if (code != ERR_OK) return code;
    code = event_record(upload->options.device, staging->fence, upload->lease.stream, err);
    staging->is_unfenced = code != ERR_OK;
    if (code == ERR_OK) atomic_fetch_add_explicit(&upload->fences, 1, memory_order_relaxed);
    if (code == ERR_OK && pool_wipes(upload->options.pinned_pool)) {
        code = staging_wait(upload, staging, err);
        if (code == ERR_OK) memset(block.data, 0, piece.size);
    }
    return code;
}

static enum err send_pieces(struct upload_stream *upload, struct slice bytes, CUdeviceptr to,
    CUevent *ret_fence, struct error *err) {
    struct slice piece;
    while (slice_take(&bytes, bytes.size < STAGING_BYTES ? bytes.size : STAGING_BYTES, &piece) &&
           piece.size > 0) {
        void *item;
        (void)queue_pop(upload->idle, &item, 1, -1);
        struct staging *staging = item;
        enum err code = send_staged(upload, staging, piece, to, err);
        *ret_fence = staging->fence;
        queue_must_push(upload->idle, staging);
        if (code != ERR_OK) return code;
        to += piece.size;
    }
    return ERR_OK;
}

/* Zeroes the pad after a payload that is copied directly, since the bytes after it are not its own.
 * */
static enum err clear_pad(
    struct upload_stream *upload, CUdeviceptr to, size_t bytes, struct error *err) {
    if (pad_of(bytes) == 0) return ERR_OK;
    return GPU_TRY(upload->options.device->driver,
        fill(to + bytes, 0, pad_of(bytes), upload->lease.stream), err);
}

/* False, with nothing done, if the driver does not register such memory. */
static bool register_payload(const struct upload_stream *upload, const struct payload *payload) {
    if (!payload->is_shared_mapping || payload->bytes.size < REGISTERED_BYTES_MIN) return false;
    return upload->options.device->driver->host_register((void *)(uintptr_t)payload->bytes.data,
               payload->bytes.size,
               CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_READ_ONLY) == CUDA_SUCCESS;
}

enum err upload_send(struct upload_stream *upload, const struct payload *payload, CUdeviceptr to,
    CUevent *ret_fence, struct error *err) {
    *ret_fence = NULL;
    if (!register_payload(upload, payload))
        return send_pieces(upload, payload->bytes, to, ret_fence, err);
    enum err code = copy(upload, to, payload->bytes, err);
    if (code == ERR_OK) code = clear_pad(upload, to, payload->bytes.size, err);
    if (code == ERR_OK) code = upload_drain(upload, err);
    /* Unregistering fails if the context is lost, which the drain has reported already. */
    (void)upload->options.device->driver->host_unregister((void *)(uintptr_t)payload->bytes.data);
    return code;
}

struct upload_counts upload_read_counts(const struct upload_stream *upload) {
    return (struct upload_counts){
        .bytes = atomic_load_explicit(&upload->bytes, memory_order_relaxed),
        .copies = atomic_load_explicit(&upload->copies, memory_order_relaxed),
        .fences = atomic_load_explicit(&upload->fences, memory_order_relaxed)};
}
