#include "gpu/statics.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "gpu/memory.h"

enum {
    TABLE_BUCKETS = 4096,
    STAGING_BYTES = 4 << 20 /* an upload goes through one pinned block of this size */
};

enum entry_state { ENTRY_LOADING, ENTRY_READY };

struct static_entry {
    struct digest digest;
    struct device_block block;
    enum entry_state state;
    bool is_cached; /* found through the table; else it belongs to its references alone */
    uint32_t references;
    struct static_entry *next_in_bucket;
    struct static_entry *older, *newer; /* cached and ready: by last use */
};

struct statics {
    const struct device *device;
    uint64_t budget_bytes;
    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t loaded;
    struct static_entry *buckets[TABLE_BUCKETS];
    struct static_entry *oldest, *newest;
    struct statics_counts counts;

    pthread_mutex_t upload_lock; /* guards the stream and its staging; never taken under `lock` */
    CUstream stream;
    struct pinned_block staging;
};

enum err statics_create(
    const struct device *device, uint64_t budget_bytes, struct statics **ret, struct error *err) {
    struct statics *statics = calloc(1, sizeof *statics);
    if (statics == NULL)
        return error_set(err, ERR_NO_MEMORY, 0, "give the process more memory",
            "no memory for the table of statics");
    statics->device = device;
    statics->budget_bytes = budget_bytes;
    pthread_mutex_init(&statics->lock, NULL);
    pthread_mutex_init(&statics->upload_lock, NULL);
    pthread_cond_init(&statics->loaded, NULL);
    enum err code =
        GPU_TRY(device->driver, stream_create(&statics->stream, CU_STREAM_NON_BLOCKING), err);
    if (code == ERR_OK) code = pinned_block_alloc(device, STAGING_BYTES, &statics->staging, err);
    if (code != ERR_OK) {
        statics_destroy(statics);
        return code;
    }
    *ret = statics;
    return ERR_OK;
}

static void entry_destroy(struct statics *statics, struct static_entry *entry) {
    device_block_free(statics->device, &entry->block);
    free(entry);
}

void statics_destroy(struct statics *statics) {
    if (statics == NULL) return;
    while (statics->oldest != NULL) {
        struct static_entry *entry = statics->oldest;
        assert(entry->references == 0);
        statics->oldest = entry->newer;
        entry_destroy(statics, entry);
    }
    pinned_block_free(statics->device, &statics->staging);
    if (statics->stream != NULL) (void)statics->device->driver->stream_destroy(statics->stream);
    pthread_cond_destroy(&statics->loaded);
    pthread_mutex_destroy(&statics->upload_lock);
    pthread_mutex_destroy(&statics->lock);
    free(statics);
}

static struct static_entry **bucket_of(struct statics *statics, const struct digest *digest) {
    size_t hash;
    memcpy(&hash, digest->bytes, sizeof hash); /* a digest is as good a hash as there is */
    return &statics->buckets[hash % TABLE_BUCKETS];
}

static struct static_entry *table_find(struct statics *statics, const struct digest *digest) {
    struct static_entry *entry = *bucket_of(statics, digest);
    while (entry != NULL && !digest_equal(&entry->digest, digest)) entry = entry->next_in_bucket;
    return entry;
}

static void table_remove(struct statics *statics, struct static_entry *entry) {
    struct static_entry **link = bucket_of(statics, &entry->digest);
    while (*link != entry) link = &(*link)->next_in_bucket;
    *link = entry->next_in_bucket;
}

static void use_list_remove(struct statics *statics, struct static_entry *entry) {
    *(entry->older != NULL ? &entry->older->newer : &statics->oldest) = entry->newer;
    *(entry->newer != NULL ? &entry->newer->older : &statics->newest) = entry->older;
    entry->older = entry->newer = NULL;
}

static void use_list_append(struct statics *statics, struct static_entry *entry) {
    entry->older = statics->newest;
    *(statics->newest != NULL ? &statics->newest->newer : &statics->oldest) = entry;
    statics->newest = entry;
}

struct static_entry *statics_find(struct statics *statics, const struct digest *digest) {
    pthread_mutex_lock(&statics->lock);
    struct static_entry *entry = table_find(statics, digest);
    if (entry != NULL && entry->state == ENTRY_READY) {
        entry->references++;
        statics->counts.hits++;
        use_list_remove(statics, entry);
        use_list_append(statics, entry);
    } else {
        entry = NULL;
    }
    pthread_mutex_unlock(&statics->lock);
    return entry;
}

/*
 * Takes unpinned entries out of the cache, oldest first, until `bytes` more fit; false where they
 * cannot. Returns them as a list through `newer`, for the caller to free outside the lock.
 */
static bool make_room(struct statics *statics, size_t bytes, struct static_entry **evicted) {
    *evicted = NULL;
    if (bytes > statics->budget_bytes) return false;
    struct static_entry *entry = statics->oldest;
    while (statics->counts.cached_bytes > statics->budget_bytes - bytes && entry != NULL) {
        struct static_entry *newer = entry->newer;
        if (entry->references == 0) {
            table_remove(statics, entry);
            use_list_remove(statics, entry);
            statics->counts.cached_bytes -= entry->block.bytes;
            statics->counts.evictions++;
            entry->newer = *evicted;
            *evicted = entry;
        }
        entry = newer;
    }
    return statics->counts.cached_bytes <= statics->budget_bytes - bytes;
}

/* Copies through the staging block, piece by piece; one upload at a time. */
static enum err copy_payload(
    struct statics *statics, struct slice payload, CUdeviceptr address, struct error *err) {
    const struct gpu_driver *gpu = statics->device->driver;
    enum err code = ERR_OK;
    pthread_mutex_lock(&statics->upload_lock);
    while (payload.size > 0 && code == ERR_OK) {
        struct slice piece;
        size_t size = payload.size < STAGING_BYTES ? payload.size : STAGING_BYTES;
        if (!slice_take(&payload, size, &piece)) break;
        memcpy(statics->staging.data, piece.data, piece.size);
        code = GPU_TRY(
            gpu, copy_to_device(address, statics->staging.data, piece.size, statics->stream), err);
        if (code == ERR_OK) code = GPU_TRY(gpu, stream_synchronize(statics->stream), err);
        address += piece.size;
    }
    pthread_mutex_unlock(&statics->upload_lock);
    return code;
}

static enum err entry_load(
    struct statics *statics, struct static_entry *entry, struct slice payload, struct error *err) {
    enum err code = device_block_alloc(statics->device, payload.size, &entry->block, err);
    if (code != ERR_OK) return code;
    return copy_payload(statics, payload, entry->block.address, err);
}

/* Puts a loading entry into the table and charges its bytes, evicting for them. */
static void reserve(struct statics *statics, struct static_entry *entry, size_t bytes,
    struct static_entry **evicted) {
    entry->is_cached = make_room(statics, bytes, evicted);
    if (!entry->is_cached) return;
    struct static_entry **bucket = bucket_of(statics, &entry->digest);
    entry->next_in_bucket = *bucket;
    *bucket = entry;
    statics->counts.cached_bytes += bytes;
}

static void settle(
    struct statics *statics, struct static_entry *entry, size_t bytes, bool is_loaded) {
    pthread_mutex_lock(&statics->lock);
    entry->state = ENTRY_READY;
    if (entry->is_cached && is_loaded) {
        use_list_append(statics, entry);
    } else if (entry->is_cached) {
        table_remove(statics, entry);
        statics->counts.cached_bytes -= bytes;
    }
    pthread_cond_broadcast(&statics->loaded);
    pthread_mutex_unlock(&statics->lock);
}

enum err statics_upload(struct statics *statics, const struct digest *digest, struct slice payload,
    struct static_entry **ret, bool *uploaded, struct error *err) {
    struct static_entry *fresh = calloc(1, sizeof *fresh), *evicted = NULL;
    if (fresh == NULL)
        return error_set(err, ERR_NO_MEMORY, 0, "give the process more memory",
            "no memory for a static of %zu bytes", payload.size);
    *fresh = (struct static_entry){.digest = *digest, .references = 1};

    pthread_mutex_lock(&statics->lock);
    struct static_entry *entry = table_find(statics, digest);
    while (entry != NULL && entry->state == ENTRY_LOADING) {
        pthread_cond_wait(&statics->loaded, &statics->lock);
        entry = table_find(statics, digest);
    }
    if (entry != NULL) {
        entry->references++;
        statics->counts.hits++;
    } else {
        statics->counts.misses++;
        reserve(statics, fresh, payload.size, &evicted);
    }
    pthread_mutex_unlock(&statics->lock);

    *uploaded = entry == NULL;
    if (entry != NULL) {
        free(fresh);
        *ret = entry;
        return ERR_OK;
    }
    while (evicted != NULL) {
        struct static_entry *next = evicted->newer;
        entry_destroy(statics, evicted);
        evicted = next;
    }
    enum err code = entry_load(statics, fresh, payload, err);
    settle(statics, fresh, payload.size, code == ERR_OK);
    if (code == ERR_OK) *ret = fresh;
    else entry_destroy(statics, fresh);
    return code;
}

void statics_unref(struct statics *statics, struct static_entry *entry) {
    pthread_mutex_lock(&statics->lock);
    assert(entry->references > 0);
    entry->references--;
    bool is_last = entry->references == 0 && !entry->is_cached;
    pthread_mutex_unlock(&statics->lock);
    if (is_last) entry_destroy(statics, entry);
}

CUdeviceptr static_entry_address(const struct static_entry *entry) {
    return entry->block.address;
}

size_t static_entry_bytes(const struct static_entry *entry) {
    return entry->block.bytes;
}

struct statics_counts statics_read_counts(struct statics *statics) {
    pthread_mutex_lock(&statics->lock);
    struct statics_counts counts = statics->counts;
    pthread_mutex_unlock(&statics->lock);
    return counts;
}
