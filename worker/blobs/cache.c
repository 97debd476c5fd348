#include "blobs/cache.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/hash_table.h"
#include "base/list.h"

enum {
    FETCHED_PLACES = 8192,
    CHARGE_BYTES_MIN = 4096,
    EPOCH_CLAIMS = 4096, /* after this many claims, earlier uses count half */
    VICTIMS_MAX = 64     /* how many blobs are compared with a new one */
};

/* Uses over time. */
struct tally {
    uint32_t count, epoch;
};

struct cache_entry {
    struct hash_node node;
    struct digest digest;
    uint64_t bytes;
    uint64_t used_unix_ns; /* of files found at the start */
    bool is_loading;       /* claimed; in no list of uses */
    bool is_checked;       /* fetched by this process, so `bytes` is right for this digest */
    struct tally tally;
    struct uses *uses; /* the list that it is in */
    struct list_node by_use;
};

struct uses {
    struct list by_use; /* the one unused for longest first */
    uint64_t bytes;     /* charged for them */
};

/* Files are renamed and removed under the lock, so that they and the entries always agree. Only
 * threads for slow work ever wait for it. */
struct cache {
    struct folder folder;
    uint64_t budget_bytes;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t settled;
    struct hash_table entries;
    /* Blobs that were fetched and not used since are removed first, so a blob that is used once
     * cannot replace one that is used again. Both together are within the budget. */
    struct uses once, again;
    /* Recent fetches: one part of the digest, at an index given by another part. */
    struct {
        uint64_t part;
        struct tally tally;
    } fetched[FETCHED_PLACES];
    uint32_t epoch, claims; /* of this epoch */
};

const struct folder *cache_folder(const struct cache *cache) {
    return &cache->folder;
}

/* A file takes whole blocks of the disk, and its entry memory. */
static uint64_t charge_of(uint64_t bytes) {
    return bytes > CHARGE_BYTES_MIN ? bytes : CHARGE_BYTES_MIN;
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

/* NULL: there is none. */
static struct cache_entry *entry_at(struct list_node *node) {
    return node != NULL ? LIST_ITEM(node, struct cache_entry, by_use) : NULL;
}

static void uses_remove(struct cache_entry *entry) {
    list_remove(&entry->uses->by_use, &entry->by_use);
    entry->uses->bytes -= charge_of(entry->bytes);
    entry->uses = NULL;
}

static void uses_append(struct uses *uses, struct cache_entry *entry) {
    entry->uses = uses;
    list_append(&uses->by_use, &entry->by_use);
    uses->bytes += charge_of(entry->bytes);
}

/* Removes an entry that is not loading, and its file. */
static void drop(struct cache *cache, struct cache_entry *entry) {
    hash_table_remove(&cache->entries, &entry->node);
    uses_remove(entry);
    folder_remove(&cache->folder, &entry->digest);
    free(entry);
}

/* ---- use over time ---- */

static uint32_t tally_now(const struct cache *cache, const struct tally *tally) {
    uint32_t age = cache->epoch - tally->epoch;
    return age < 32 ? tally->count >> age : 0;
}

static void tally_add(const struct cache *cache, struct tally *tally) {
    *tally = (struct tally){.count = tally_now(cache, tally) + 1, .epoch = cache->epoch};
}

static void count_claim(struct cache *cache) {
    if (++cache->claims < EPOCH_CLAIMS) return;
    cache->claims = 0;
    cache->epoch++;
}

/* Counts a fetch, in addition to remembered fetches of this blob. */
static void count_fetch(struct cache *cache, struct cache_entry *entry) {
    uint64_t place, part;
    memcpy(&place, entry->digest.bytes + 8, sizeof place);
    memcpy(&part, entry->digest.bytes + 16, sizeof part);
    place %= FETCHED_PLACES;
    if (cache->fetched[place].part != part) cache->fetched[place].tally = (struct tally){0};
    cache->fetched[place].part = part;
    tally_add(cache, &cache->fetched[place].tally);
    entry->tally = cache->fetched[place].tally;
}

/* ---- room ---- */

/* The next blob, from `from` on, that has been used less than the new one. */
static struct cache_entry *find_less_used(
    const struct cache *cache, struct cache_entry *from, uint32_t count, int *looks) {
    while (from != NULL && tally_now(cache, &from->tally) >= count && ++*looks < VICTIMS_MAX)
        from = entry_at(from->by_use.after);
    return *looks < VICTIMS_MAX ? from : NULL;
}

/* Whether there would be room for `entry`: next to blobs that are used again, or instead of some
 * that are used less. */
static bool has_room(struct cache *cache, const struct cache_entry *entry) {
    uint64_t charge = charge_of(entry->bytes), left = cache->budget_bytes - cache->again.bytes;
    uint32_t count = tally_now(cache, &entry->tally);
    int looks = 0;
    struct cache_entry *victim = entry_at(cache->again.by_use.first);
    while (left < charge && (victim = find_less_used(cache, victim, count, &looks)) != NULL) {
        left += charge_of(victim->bytes);
        victim = entry_at(victim->by_use.after);
    }
    return charge <= left;
}

static bool is_over(const struct cache *cache, uint64_t charge) {
    return cache->once.bytes + cache->again.bytes > cache->budget_bytes - charge;
}

/* After has_room(). */
static void make_room(struct cache *cache, uint64_t charge, uint32_t count) {
    int looks = 0;
    while (is_over(cache, charge) && cache->once.by_use.first != NULL)
        drop(cache, entry_at(cache->once.by_use.first));
    struct cache_entry *victim = entry_at(cache->again.by_use.first);
    while (
        is_over(cache, charge) && (victim = find_less_used(cache, victim, count, &looks)) != NULL) {
        struct cache_entry *next = entry_at(victim->by_use.after);
        drop(cache, victim);
        victim = next;
    }
}

enum err cache_claim(struct cache *cache, const struct digest *digest, uint64_t bytes,
    struct cache_entry **ret, struct error *err) {
    struct cache_entry *fresh = calloc(1, sizeof *fresh);
    if (fresh == NULL) return error_no_memory(err, "no memory to fetch a blob");
    *fresh = (struct cache_entry){.digest = *digest, .bytes = bytes, .is_loading = true};
    pthread_mutex_lock(&cache->lock);
    struct cache_entry *entry = table_find(cache, digest);
    while (entry != NULL && entry->is_loading) {
        pthread_cond_wait(&cache->settled, &cache->lock);
        entry = table_find(cache, digest);
    }
    if (entry == NULL) {
        table_add(cache, fresh);
    } else {
        uses_remove(entry);
        uses_append(&cache->again, entry);
        tally_add(cache, &entry->tally);
    }
    count_claim(cache);
    uint64_t found_bytes = entry != NULL && entry->is_checked ? entry->bytes : bytes;
    pthread_mutex_unlock(&cache->lock);
    *ret = entry == NULL ? fresh : NULL;
    if (entry != NULL) free(fresh);
    if (found_bytes == bytes) return ERR_OK;
    return error_set(err, ERR_DIGEST_MISMATCH, 0, "give the buffer the size of the payload",
        "the blob has %" PRIu64 " bytes, and the job says %" PRIu64, found_bytes, bytes);
}

bool cache_wants(struct cache *cache, struct cache_entry *entry) {
    pthread_mutex_lock(&cache->lock);
    count_fetch(cache, entry);
    bool wants = has_room(cache, entry);
    pthread_mutex_unlock(&cache->lock);
    return wants;
}

enum err cache_settle(struct cache *cache, struct cache_entry *entry, struct temp_file *file,
    bool *ret_is_kept, struct error *err) {
    enum err code = ERR_OK;
    pthread_mutex_lock(&cache->lock);
    *ret_is_kept = false;
    if (file != NULL && has_room(cache, entry)) {
        make_room(cache, charge_of(entry->bytes), tally_now(cache, &entry->tally));
        code = temp_file_commit(file, err);
        *ret_is_kept = code == ERR_OK;
    }
    if (*ret_is_kept) {
        entry->is_loading = false;
        entry->is_checked = true;
        uses_append(tally_now(cache, &entry->tally) > 1 ? &cache->again : &cache->once, entry);
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
    *entry = (struct cache_entry){
        .digest = file->digest, .bytes = file->bytes, .used_unix_ns = file->used_unix_ns};
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
        uses_append(&cache->once, scan.entries[i]);
    }
    free(scan.entries);
    make_room(cache, 0, 0);
    if (!scan.is_out_of_memory) return ERR_OK;
    return error_no_memory(err, "no memory for the list of cached blobs");
}

enum err cache_create(
    const char *path, uint64_t budget_bytes, struct cache **ret, struct error *err) {
    struct cache *cache = calloc(1, sizeof *cache);
    if (cache == NULL) return error_no_memory(err, "no memory for the blob cache");
    cache->folder.fd = -1;
    cache->budget_bytes = budget_bytes;
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

static void free_uses(struct uses *uses) {
    while (uses->by_use.first != NULL) {
        struct cache_entry *entry = entry_at(uses->by_use.first);
        list_remove(&uses->by_use, &entry->by_use);
        free(entry);
    }
}

void cache_destroy(struct cache *cache) {
    if (cache == NULL) return;
    free_uses(&cache->once);
    free_uses(&cache->again);
    hash_table_fini(&cache->entries);
    folder_close(&cache->folder);
    pthread_cond_destroy(&cache->settled);
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}
