#include "blobs/cache.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/eviction.h"
#include "base/hash_table.h"

enum { CHARGE_BYTES_MIN = 4096 };

struct cache_entry {
    struct eviction_item item; /* first member: the entry is found from it */
    struct hash_node node;
    struct digest digest;
    uint64_t bytes;
    uint64_t used_unix_ns; /* of files found at the start */
    bool is_loading;       /* claimed; it cannot be evicted yet */
    bool is_checked;       /* fetched by this process, so `bytes` is right for this digest */
};

/* Files are renamed and removed under the lock, so that they and the entries always agree. Only
 * threads for slow work ever wait for it. */
struct cache {
    struct folder folder;
    uint64_t budget_bytes;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t settled;
    struct hash_table entries;
    struct eviction eviction;
    uint64_t charge; /* of all that can be evicted */
};

const struct folder *cache_folder(const struct cache *cache) {
    return &cache->folder;
}

/* A file takes whole blocks of the disk, and its entry memory. */
static void describe(struct cache_entry *entry, const struct digest *digest, uint64_t bytes) {
    entry->digest = *digest;
    entry->bytes = bytes;
    entry->item.name = digest_hash(digest);
    entry->item.charge = bytes > CHARGE_BYTES_MIN ? bytes : CHARGE_BYTES_MIN;
}

static struct cache_entry *table_find(struct cache *cache, const struct digest *digest) {
    struct hash_node *node = hash_table_find(&cache->entries, digest_hash(digest));
    for (; node != NULL; node = hash_node_next(node)) {
        struct cache_entry *entry = HASH_ITEM(node, struct cache_entry, node);
        if (digest_equal(&entry->digest, digest)) return entry;
    }
    return NULL;
}

static void table_add(struct cache *cache, struct cache_entry *entry) {
    hash_table_add(&cache->entries, &entry->node, digest_hash(&entry->digest));
}

static void add(struct cache *cache, struct cache_entry *entry) {
    eviction_add(&cache->eviction, &entry->item);
    cache->charge += entry->item.charge;
}

/* Removes an entry that cannot be evicted any more, and its file. */
static void drop(struct cache *cache, struct cache_entry *entry) {
    hash_table_remove(&cache->entries, &entry->node);
    cache->charge -= entry->item.charge;
    folder_remove(&cache->folder, &entry->digest);
    free(entry);
}

/* False: not so much may leave for this claim. */
static bool evict(struct cache *cache, uint64_t charge_max, enum eviction_claim claim) {
    while (cache->charge > charge_max) {
        struct eviction_item *item = eviction_take(&cache->eviction, claim);
        if (item == NULL) return false;
        drop(cache, (struct cache_entry *)item);
    }
    return true;
}

enum err cache_claim(struct cache *cache, const struct digest *digest, uint64_t bytes,
    struct cache_entry **ret, struct error *err) {
    struct cache_entry *fresh = calloc(1, sizeof *fresh);
    if (fresh == NULL) return error_no_memory(err, "no memory to fetch a blob");
    describe(fresh, digest, bytes);
    fresh->is_loading = true;
    pthread_mutex_lock(&cache->lock);
    struct cache_entry *entry = table_find(cache, digest);
    while (entry != NULL && entry->is_loading) {
        pthread_cond_wait(&cache->settled, &cache->lock);
        entry = table_find(cache, digest);
    }
    if (entry == NULL) table_add(cache, fresh);
    else eviction_use(&entry->item);
    uint64_t found_bytes = entry != NULL && entry->is_checked ? entry->bytes : bytes;
    pthread_mutex_unlock(&cache->lock);
    *ret = entry == NULL ? fresh : NULL;
    if (entry != NULL) free(fresh);
    if (found_bytes == bytes) return ERR_OK;
    return error_set(err, ERR_DIGEST_MISMATCH, 0, "give the buffer the size of the payload",
        "the blob has %" PRIu64 " bytes, and the job says %" PRIu64, found_bytes, bytes);
}

bool cache_wants(struct cache *cache, struct cache_entry *entry) {
    uint64_t bytes = entry->item.charge;
    if (bytes > cache->budget_bytes) return false;
    pthread_mutex_lock(&cache->lock);
    enum eviction_claim claim = eviction_claim_of(&cache->eviction, entry->item.name);
    bool wants =
        cache->charge <= cache->budget_bytes - bytes || eviction_may_take(&cache->eviction, claim);
    if (!wants) eviction_remember(&cache->eviction, entry->item.name);
    pthread_mutex_unlock(&cache->lock);
    return wants;
}

/* False, and then it is known when it comes again: there is none. */
static bool make_room(struct cache *cache, const struct cache_entry *entry) {
    uint64_t bytes = entry->item.charge;
    enum eviction_claim claim = eviction_claim_of(&cache->eviction, entry->item.name);
    bool has_room =
        bytes <= cache->budget_bytes && evict(cache, cache->budget_bytes - bytes, claim);
    if (!has_room) eviction_remember(&cache->eviction, entry->item.name);
    return has_room;
}

enum err cache_settle(struct cache *cache, struct cache_entry *entry, struct temp_file *file,
    bool *ret_is_kept, struct error *err) {
    enum err code = ERR_OK;
    pthread_mutex_lock(&cache->lock);
    *ret_is_kept = false;
    if (file != NULL && make_room(cache, entry)) {
        code = temp_file_commit(file, err);
        *ret_is_kept = code == ERR_OK;
    }
    if (*ret_is_kept) {
        entry->is_loading = false;
        entry->is_checked = true;
        add(cache, entry);
    } else {
        hash_table_remove(&cache->entries, &entry->node);
        free(entry);
    }
    pthread_cond_broadcast(&cache->settled);
    pthread_mutex_unlock(&cache->lock);
    return code;
}

void cache_forget(struct cache *cache, const struct digest *digest) {
    pthread_mutex_lock(&cache->lock);
    struct cache_entry *entry = table_find(cache, digest);
    if (entry != NULL && !entry->is_loading) {
        eviction_remove(&cache->eviction, &entry->item);
        drop(cache, entry);
    }
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
    if (file->is_temp) { /* left by an unfinished fetch */
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
    describe(entry, &file->digest, file->bytes);
    entry->used_unix_ns = file->used_unix_ns;
    scan->entries[scan->count++] = entry;
}

static int compare_uses(const void *a, const void *b) {
    const struct cache_entry *first = *(struct cache_entry *const *)a;
    const struct cache_entry *second = *(struct cache_entry *const *)b;
    return (first->used_unix_ns > second->used_unix_ns) -
           (first->used_unix_ns < second->used_unix_ns);
}

/* Loads what an earlier process left, within the budget. */
static enum err load(struct cache *cache, struct error *err) {
    struct scan scan = {.cache = cache};
    folder_visit(&cache->folder, scan_file, &scan);
    if (scan.count > 0) qsort(scan.entries, scan.count, sizeof scan.entries[0], compare_uses);
    for (size_t i = 0; i < scan.count; i++) {
        table_add(cache, scan.entries[i]);
        add(cache, scan.entries[i]);
    }
    free(scan.entries);
    (void)evict(cache, cache->budget_bytes, EVICTION_FOR_OTHERS);
    if (!scan.is_out_of_memory) return ERR_OK;
    return error_no_memory(err, "no memory for the list of cached blobs");
}

enum err cache_create(
    const char *path, uint64_t budget_bytes, struct cache **ret, struct error *err) {
    struct cache *cache = calloc(1, sizeof *cache);
    if (cache == NULL) return error_no_memory(err, "no memory for the blob cache");
    cache->folder.fd = -1;
    cache->budget_bytes = budget_bytes;
    eviction_init(&cache->eviction, budget_bytes);
    pthread_mutex_init(&cache->lock, NULL);
    pthread_cond_init(&cache->settled, NULL);
    enum err code = folder_open(&cache->folder, "blobs.cache_dir", path, 0700, err);
    /* the lock is held until the folder is closed, also by a crash */
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
    struct eviction_item *item;
    while ((item = eviction_take(&cache->eviction, EVICTION_FOR_OTHERS)) != NULL) free(item);
    hash_table_fini(&cache->entries);
    folder_close(&cache->folder);
    pthread_cond_destroy(&cache->settled);
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}
