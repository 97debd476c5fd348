#include "blobs/cache.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

enum { TABLE_BUCKETS = 4096 };

struct cache_entry {
    struct digest digest;
    uint64_t bytes;
    uint64_t used_unix_ns; /* of what was found at start */
    bool is_loading;       /* claimed; not in the list of uses */
    bool is_charged;       /* its bytes count, and the file is kept */
    bool is_checked;       /* fetched by this process: `bytes` is what the digest stands for */
    struct cache_entry *next_in_bucket;
    struct cache_entry *older, *newer; /* by last use */
};

/* Files are renamed and removed under the lock, so that they and the books never differ. Only
 * threads that do cold work ever wait for it. */
struct cache {
    struct folder folder;
    uint64_t budget_bytes;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t settled;
    struct cache_entry *buckets[TABLE_BUCKETS];
    struct cache_entry *oldest, *newest;
    uint64_t bytes;         /* of all charged entries, at most the budget */
    uint64_t loading_bytes; /* of those that cannot leave now */
};

const struct folder *cache_folder(const struct cache *cache) {
    return &cache->folder;
}

uint64_t cache_bytes(struct cache *cache) {
    pthread_mutex_lock(&cache->lock);
    uint64_t bytes = cache->bytes;
    pthread_mutex_unlock(&cache->lock);
    return bytes;
}

static struct cache_entry **bucket_of(struct cache *cache, const struct digest *digest) {
    size_t hash;
    memcpy(&hash, digest->bytes, sizeof hash); /* a digest is as good a hash as there is */
    return &cache->buckets[hash % TABLE_BUCKETS];
}

static struct cache_entry *table_find(struct cache *cache, const struct digest *digest) {
    struct cache_entry *entry = *bucket_of(cache, digest);
    while (entry != NULL && !digest_equal(&entry->digest, digest)) entry = entry->next_in_bucket;
    return entry;
}

static void table_add(struct cache *cache, struct cache_entry *entry) {
    struct cache_entry **bucket = bucket_of(cache, &entry->digest);
    entry->next_in_bucket = *bucket;
    *bucket = entry;
}

static void table_remove(struct cache *cache, struct cache_entry *entry) {
    struct cache_entry **link = bucket_of(cache, &entry->digest);
    while (*link != entry) link = &(*link)->next_in_bucket;
    *link = entry->next_in_bucket;
}

static void use_list_remove(struct cache *cache, struct cache_entry *entry) {
    *(entry->older != NULL ? &entry->older->newer : &cache->oldest) = entry->newer;
    *(entry->newer != NULL ? &entry->newer->older : &cache->newest) = entry->older;
    entry->older = entry->newer = NULL;
}

static void use_list_append(struct cache *cache, struct cache_entry *entry) {
    entry->older = cache->newest;
    *(cache->newest != NULL ? &cache->newest->newer : &cache->oldest) = entry;
    cache->newest = entry;
}

/* Ends an entry that is not loading, and its file. */
static void drop(struct cache *cache, struct cache_entry *entry) {
    table_remove(cache, entry);
    use_list_remove(cache, entry);
    cache->bytes -= entry->bytes;
    folder_remove(&cache->folder, &entry->digest);
    free(entry);
}

/* Drops the oldest until `bytes` more fit; false, and nothing dropped, where they never would. */
static bool make_room(struct cache *cache, uint64_t bytes) {
    if (bytes > cache->budget_bytes - cache->loading_bytes) return false;
    while (cache->bytes > cache->budget_bytes - bytes) drop(cache, cache->oldest);
    return true;
}

static void claim(struct cache *cache, struct cache_entry *entry) {
    entry->is_charged = make_room(cache, entry->bytes);
    if (entry->is_charged) {
        cache->bytes += entry->bytes;
        cache->loading_bytes += entry->bytes;
    }
    table_add(cache, entry);
}

enum err cache_claim(struct cache *cache, const struct digest *digest, uint64_t bytes,
    struct cache_entry **ret, struct error *err) {
    struct cache_entry *fresh = calloc(1, sizeof *fresh);
    if (fresh == NULL)
        return error_set(
            err, ERR_NO_MEMORY, 0, "give the process more memory", "no memory to fetch a blob");
    *fresh = (struct cache_entry){.digest = *digest, .bytes = bytes, .is_loading = true};
    pthread_mutex_lock(&cache->lock);
    struct cache_entry *entry = table_find(cache, digest);
    while (entry != NULL && entry->is_loading) {
        pthread_cond_wait(&cache->settled, &cache->lock);
        entry = table_find(cache, digest);
    }
    if (entry == NULL) {
        claim(cache, fresh);
    } else {
        use_list_remove(cache, entry);
        use_list_append(cache, entry);
    }
    uint64_t found_bytes = entry != NULL && entry->is_checked ? entry->bytes : bytes;
    pthread_mutex_unlock(&cache->lock);
    *ret = entry == NULL ? fresh : NULL;
    if (entry != NULL) free(fresh);
    if (found_bytes == bytes) return ERR_OK;
    return error_set(err, ERR_DIGEST_MISMATCH, 0, "give the buffer the size of the payload",
        "the blob has %" PRIu64 " bytes, and the job says %" PRIu64, found_bytes, bytes);
}

bool cache_settle(struct cache *cache, struct cache_entry *entry, const struct temp_file *file) {
    struct error ignored; /* a blob that cannot be kept is used all the same */
    pthread_mutex_lock(&cache->lock);
    bool is_kept = entry->is_charged && file != NULL &&
                   temp_file_commit(file, &entry->digest, &ignored) == ERR_OK;
    if (entry->is_charged) cache->loading_bytes -= entry->bytes;
    if (is_kept) {
        entry->is_loading = false;
        entry->is_checked = true;
        use_list_append(cache, entry);
    } else {
        table_remove(cache, entry);
        if (entry->is_charged) cache->bytes -= entry->bytes;
        free(entry);
    }
    pthread_cond_broadcast(&cache->settled);
    pthread_mutex_unlock(&cache->lock);
    return is_kept;
}

void cache_forget(struct cache *cache, const struct digest *digest) {
    pthread_mutex_lock(&cache->lock);
    struct cache_entry *entry = table_find(cache, digest);
    if (entry != NULL && !entry->is_loading) drop(cache, entry);
    pthread_mutex_unlock(&cache->lock);
}

/* ---- start and end ---- */

struct scan {
    struct cache *cache;
    size_t count, max;
    struct cache_entry **entries;
    bool is_out_of_memory;
};

static void scan_file(void *context, const struct folder_file *file) {
    struct scan *scan = context;
    if (file->is_temp) { /* a fetch that did not end */
        folder_expire(&scan->cache->folder, file, UINT64_MAX);
        return;
    }
    if (scan->count == scan->max) {
        size_t max = 2 * scan->max + 64;
        struct cache_entry **grown = realloc(scan->entries, max * sizeof grown[0]);
        if (grown != NULL) {
            scan->entries = grown;
            scan->max = max;
        }
    }
    struct cache_entry *entry = scan->count < scan->max ? calloc(1, sizeof *entry) : NULL;
    if (entry == NULL) {
        scan->is_out_of_memory = true;
        return;
    }
    *entry = (struct cache_entry){.digest = file->digest,
        .bytes = file->bytes,
        .used_unix_ns = file->used_unix_ns,
        .is_charged = true};
    scan->entries[scan->count++] = entry;
}

static int compare_uses(const void *a, const void *b) {
    const struct cache_entry *first = *(struct cache_entry *const *)a;
    const struct cache_entry *second = *(struct cache_entry *const *)b;
    return (first->used_unix_ns > second->used_unix_ns) -
           (first->used_unix_ns < second->used_unix_ns);
}

/* Takes over what an earlier process left, as far as the budget goes. */
static enum err load(struct cache *cache, struct error *err) {
    struct scan scan = {.cache = cache};
    folder_visit(&cache->folder, scan_file, &scan);
    if (scan.count > 0) qsort(scan.entries, scan.count, sizeof scan.entries[0], compare_uses);
    for (size_t i = 0; i < scan.count; i++) {
        table_add(cache, scan.entries[i]);
        use_list_append(cache, scan.entries[i]);
        cache->bytes += scan.entries[i]->bytes;
    }
    free(scan.entries);
    while (cache->bytes > cache->budget_bytes) drop(cache, cache->oldest);
    if (!scan.is_out_of_memory) return ERR_OK;
    return error_set(err, ERR_NO_MEMORY, 0, "give the process more memory",
        "no memory for the list of cached blobs");
}

enum err cache_create(
    const char *path, uint64_t budget_bytes, struct cache **ret, struct error *err) {
    struct cache *cache = calloc(1, sizeof *cache);
    if (cache == NULL)
        return error_set(
            err, ERR_NO_MEMORY, 0, "give the process more memory", "no memory for the blob cache");
    cache->folder.fd = -1;
    cache->budget_bytes = budget_bytes;
    pthread_mutex_init(&cache->lock, NULL);
    pthread_cond_init(&cache->settled, NULL);
    enum err code = folder_open(&cache->folder, path, 0700, err);
    /* Held until the folder is closed, also by a crash. */
    if (code == ERR_OK && flock(cache->folder.fd, LOCK_EX | LOCK_NB) != 0)
        code = error_set(err, ERR_CONFIG, errno, "give each worker a blobs.cache_dir of its own",
            "another process uses the blob cache %s", path);
    if (code == ERR_OK) code = load(cache, err);
    if (code == ERR_OK) *ret = cache;
    else cache_destroy(cache);
    return code;
}

void cache_destroy(struct cache *cache) {
    if (cache == NULL) return;
    while (cache->oldest != NULL) {
        struct cache_entry *entry = cache->oldest;
        cache->oldest = entry->newer;
        free(entry);
    }
    folder_close(&cache->folder);
    pthread_cond_destroy(&cache->settled);
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}
