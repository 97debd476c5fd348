#include "gpu/lease.h"

#include <stdlib.h>

#include "base/ring.h"

enum handle_kind { HANDLE_STREAM, HANDLE_FENCE, HANDLE_TIMING_EVENT, HANDLE_KIND_COUNT };

enum { HANDLES_CACHED_MAX = 128 }; /* of each kind */

struct lease_pool {
    const struct device *device;
    struct ring *free_handles[HANDLE_KIND_COUNT];
};

static const char *const handle_names[] = {
    [HANDLE_STREAM] = "stream", [HANDLE_FENCE] = "fence", [HANDLE_TIMING_EVENT] = "timing event"};

enum err lease_pool_create(
    const struct device *device, struct lease_pool **ret, struct error *err) {
    struct lease_pool *pool = calloc(1, sizeof *pool);
    if (pool == NULL) goto no_memory;
    pool->device = device;
    for (int kind = 0; kind < HANDLE_KIND_COUNT; kind++) {
        pool->free_handles[kind] = ring_create(HANDLES_CACHED_MAX);
        if (pool->free_handles[kind] == NULL) goto no_memory;
    }
    *ret = pool;
    return ERR_OK;
no_memory:
    lease_pool_destroy(pool);
    return error_no_memory(err, "no memory for the rings of streams and events");
}

static enum err handle_create(
    const struct lease_pool *pool, enum handle_kind kind, void **ret, struct error *err) {
    const struct gpu_driver *gpu = pool->device->driver;
    const unsigned fence_flags = CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC;
    CUstream stream = NULL;
    CUevent event = NULL;
    enum err code = ERR_OK;
    switch (kind) {
    case HANDLE_STREAM:
        code = GPU_TRY(gpu, stream_create(&stream, CU_STREAM_NON_BLOCKING), err);
        break;
    case HANDLE_FENCE: code = GPU_TRY(gpu, event_create(&event, fence_flags), err); break;
    default: code = GPU_TRY(gpu, event_create(&event, CU_EVENT_DEFAULT), err); break;
    }
    if (code != ERR_OK) return code;
    *ret = kind == HANDLE_STREAM ? (void *)stream : (void *)event;
    if (*ret == NULL)
        return error_set(err, ERR_DRIVER, 0, "update the GPU driver",
            "the driver reported success with a null %s", handle_names[kind]);
    return ERR_OK;
}

static void handle_destroy(const struct lease_pool *pool, enum handle_kind kind, void *handle) {
    /* Destroying fails only if the context is lost, and the handle with it. */
    if (kind == HANDLE_STREAM) (void)pool->device->driver->stream_destroy(handle);
    else (void)pool->device->driver->event_destroy(handle);
}

void lease_pool_destroy(struct lease_pool *pool) {
    if (pool == NULL) return;
    for (enum handle_kind kind = 0; kind < HANDLE_KIND_COUNT; kind++) {
        struct ring *ring = pool->free_handles[kind];
        uint64_t handle;
        while (ring != NULL && ring_pop(ring, &handle))
            handle_destroy(pool, kind, (void *)(uintptr_t)handle);
        ring_destroy(ring);
    }
    free(pool);
}

struct lease_counts lease_pool_counts(const struct lease_pool *pool) {
    return (struct lease_counts){.streams = ring_length(pool->free_handles[HANDLE_STREAM]),
        .fences = ring_length(pool->free_handles[HANDLE_FENCE]),
        .timing_events = ring_length(pool->free_handles[HANDLE_TIMING_EVENT])};
}

static enum err handle_take(
    struct lease_pool *pool, enum handle_kind kind, void **ret, struct error *err) {
    *ret = NULL;
    uint64_t cached;
    if (!ring_pop(pool->free_handles[kind], &cached)) return handle_create(pool, kind, ret, err);
    *ret = (void *)(uintptr_t)cached;
    return ERR_OK;
}

static enum err handle_release(
    struct lease_pool *pool, enum handle_kind kind, void *handle, struct error *err) {
    if (handle == NULL)
        return error_set(err, ERR_INTERNAL, 0, "report this as a bug of the worker",
            "a %s was given back twice", handle_names[kind]);
    if (!ring_push(pool->free_handles[kind], (uintptr_t)handle)) handle_destroy(pool, kind, handle);
    return ERR_OK;
}

enum err timing_pair_take(struct lease_pool *pool, struct timing_pair *ret, struct error *err) {
    void *started, *stopped;
    *ret = (struct timing_pair){0};
    enum err code = handle_take(pool, HANDLE_TIMING_EVENT, &started, err);
    if (code != ERR_OK) return code;
    code = handle_take(pool, HANDLE_TIMING_EVENT, &stopped, err);
    if (code != ERR_OK) {
        struct error none;
        (void)!handle_release(pool, HANDLE_TIMING_EVENT, started, &none);
        return code;
    }
    *ret = (struct timing_pair){.started = started, .stopped = stopped};
    return ERR_OK;
}

enum err timing_pair_release(struct lease_pool *pool, struct timing_pair *pair, struct error *err) {
    struct timing_pair released = *pair;
    *pair = (struct timing_pair){0};
    enum err code = handle_release(pool, HANDLE_TIMING_EVENT, released.started, err);
    if (code != ERR_OK) return code;
    return handle_release(pool, HANDLE_TIMING_EVENT, released.stopped, err);
}

enum err stream_lease_take(
    struct lease_pool *pool, bool is_timed, struct stream_lease *ret, struct error *err) {
    void *stream;
    *ret = (struct stream_lease){0};
    struct timing_pair timing = {0};
    enum err code = handle_take(pool, HANDLE_STREAM, &stream, err);
    if (code != ERR_OK) return code;
    if (is_timed) code = timing_pair_take(pool, &timing, err);
    if (code != ERR_OK) {
        struct error none;
        (void)!handle_release(pool, HANDLE_STREAM, stream, &none);
        return code;
    }
    *ret = (struct stream_lease){.stream = stream, .is_timed = is_timed, .timing = timing};
    return ERR_OK;
}

enum err stream_lease_release(
    struct lease_pool *pool, struct stream_lease *lease, struct error *err) {
    struct stream_lease released = *lease;
    *lease = (struct stream_lease){0};
    enum err code = handle_release(pool, HANDLE_STREAM, released.stream, err);
    if (code != ERR_OK || !released.is_timed) return code;
    return timing_pair_release(pool, &released.timing, err);
}

enum err fence_take(struct lease_pool *pool, CUevent *ret, struct error *err) {
    void *event;
    enum err code = handle_take(pool, HANDLE_FENCE, &event, err);
    *ret = event;
    return code;
}

enum err fence_release(struct lease_pool *pool, CUevent *fence, struct error *err) {
    void *released = *fence;
    *fence = NULL;
    return handle_release(pool, HANDLE_FENCE, released, err);
}
