/** A blob store behind a server, and a cache of it on disk, for tests of the cache. */
#ifndef TESTS_BLOBS_CACHE_RIG_H
#define TESTS_BLOBS_CACHE_RIG_H

#include "blobs/blobs.h"
#include "support/blob_server.h"
#include "support/scratch.h"
#include "testing.h"

enum { BLOB_BYTES = 5000, SERVED_MAX = 100, HUGE_BYTES = 1 << 30 };

static uint8_t payloads[SERVED_MAX][BLOB_BYTES];
static struct digest digests[SERVED_MAX];
static char *dir;
static struct blob_server *server;
static struct blobs *blobs;
static struct error err;

/* As in struct blobs_options; a test may set it before it opens a store. */
static void (*on_not_cached)(void *context, const struct error *why);

static inline void open_store(uint64_t cache_bytes) {
    const struct blobs_options options = {.url = blob_server_url(server),
        .cache_dir = dir,
        .cache_bytes = cache_bytes,
        .bytes_max = HUGE_BYTES,
        .timeout_ms = 60000,
        .on_not_cached = on_not_cached};
    assert_int_equal(blobs_create(&options, &blobs, &err), ERR_OK);
}

/** A server with so many blobs, SERVED_MAX at most, and a cache with room for some of them. */
static inline void start_cache(size_t count, size_t room) {
    dir = scratch_create();
    server = blob_server_start();
    for (size_t i = 0; i < count; i++) {
        memset(payloads[i], (int)i + 1, BLOB_BYTES);
        digests[i] = blob_server_add(server, slice_of(payloads[i], BLOB_BYTES));
    }
    open_store(room * BLOB_BYTES);
}

static inline int end_cache(void **state) {
    blobs_destroy(blobs);
    blob_server_stop(server);
    scratch_remove(dir);
    return 0;
}

/** Reads a blob, which must be right; true where that took a request. */
static inline bool is_fetched(size_t index) {
    struct blob blob;
    unsigned before = blob_server_gets(server);
    assert_int_equal(blob_open(blobs, &digests[index], BLOB_BYTES, &blob, &err), ERR_OK);
    assert_memory_equal(blob.bytes.data, payloads[index], BLOB_BYTES);
    blob_fini(&blob);
    return blob_server_gets(server) > before;
}

#endif
