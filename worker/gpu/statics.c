#include "gpu/statics.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/aligned.h"
#include "base/eviction.h"
#include "base/hash_table.h"
#include "base/invariant.h"
#include "base/queue.h"
#include "base/thread_number.h"
#include "gpu/event.h"
#include "gpu/size_class.h"
#include "gpu/stash.h"

enum {
    SHARD_COUNT = 64,
    CHARGE_MIN = 4096,      /* a small payload takes more memory for its entry than for itself */
    PINNED_PASSED_MAX = 64, /* how many entries in use are passed to make room for a new one */
    COUNTERS_COUNT = 16     /* threads that use the device pool at once; others wait */
};

struct static_entry {
    struct eviction_item item; /* first member: the entry is found from it */
    struct digest digest;
    size_t payload_bytes, block_bytes; /* the block's size class */
    struct pool_block block;
    CUevent fence;        /* owned by the upload stream */
    atomic_bool is_there; /* the fence is known to be done */
    bool is_cached;       /* set before the entry is ready; if false, only its references keep it */
    bool is_ready;        /* the fence is recorded; under the shard's lock */
    struct hash_node node;
    /* References that threads have stashed are counted too. In a cache line of its own: what stands
     * before is read by all threads, for each job. */
    _Alignas(STASH_ALIGNMENT) atomic_uint references;
};

/* A part of the table, chosen by digest. References are taken under its lock, or from the thread's
 * stash without it, and released without it. */
struct shard {
    pthread_mutex_t lock;
    pthread_cond_t settled; /* an upload of one of its entries has ended */
    struct hash_table entries;
};

/* What the threads of one number have found. */
struct hits {
    _Alignas(2 * STASH_ALIGNMENT) atomic_uint_fast64_t count, saved_bytes;
};

struct statics {
    struct statics_options options;
    struct upload_stream *upload;
    struct queue
        *idle_counters; /* of device_counters: a thread takes one for each use of the pool */
    struct pool_counters device_counters[COUNTERS_COUNT], pinned_counters;

    pthread_mutex_t lock; /* guards what follows; a shard's lock may be taken under it */
    struct eviction eviction;
    uint64_t charge; /* of cached entries, against the budget */
    uint64_t cached_bytes, cached_count, evictions, misses, uploaded_bytes;

    struct stash *stash;
    struct shard shards[SHARD_COUNT];
    struct hits hits[THREAD_NUMBERS];
};

/* ---- device memory ---- */

static struct pool_counters *counters_take(struct statics *statics) {
    void *counters;
    (void)queue_pop(statics->idle_counters, &counters, 1, -1);
    return counters;
}

static void counters_give(struct statics *statics, struct pool_counters *counters) {
    queue_must_push(statics->idle_counters, counters);
}

/* Waits for the copy into the block, which may be under way even if no job used it. */
static bool copy_is_over(struct statics *statics, const struct static_entry *entry) {
    struct error err;
    /* acquire: pairs with the release in static_entry_await() */
    if (atomic_load_explicit(&entry->is_there, memory_order_acquire)) return true;
    if (entry->fence != NULL && event_wait(statics->options.device, entry->fence, &err) == ERR_OK)
        return true;
    return upload_drain(statics->upload, &err) == ERR_OK; /* waits for all copies */
}

/* Memory that a lost context may still write to is not released. */
static void entry_destroy(
    struct statics *statics, struct pool_counters *counters, struct static_entry *entry) {
    if (entry->block.address != 0 && copy_is_over(statics, entry))
        pool_give_back(statics->options.device_pool, counters, &entry->block);
    free(entry);
}

/* For an entry outside the table. */
static void entry_drop(struct statics *statics, struct static_entry *entry) {
    struct pool_counters *counters = counters_take(statics);
    entry_destroy(statics, counters, entry);
    counters_give(statics, counters);
}

/* ---- the table ---- */

/* Chosen by the hash's upper bits; the lower ones choose the bucket in the shard. */
static struct shard *shard_of(struct statics *statics, uint64_t name) {
    return &statics->shards[name >> 32 & (SHARD_COUNT - 1)];
}

static struct static_entry *shard_find(
    struct shard *shard, uint64_t name, const struct digest *digest) {
    struct hash_node *node = hash_table_find(&shard->entries, name);
    for (; node != NULL; node = hash_node_next(node)) {
        struct static_entry *entry = HASH_ITEM(node, struct static_entry, node);
        if (digest_equal(&entry->digest, digest)) return entry;
    }
    return NULL;
}

/* The caller has the reference already. */
static struct static_entry *hit(struct statics *statics, struct static_entry *entry) {
    struct hits *hits = &statics->hits[thread_number() % THREAD_NUMBERS];
    eviction_use(&entry->item);
    /* relaxed: sums, which order nothing */
    atomic_fetch_add_explicit(&hits->count, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&hits->saved_bytes, entry->payload_bytes, memory_order_relaxed);
    return entry;
}

/* Under the shard's lock, which orders it against remove_unpinned(). */
static void add_references(struct static_entry *entry, unsigned count) {
    /* relaxed: for that reason */
    atomic_fetch_add_explicit(&entry->references, count, memory_order_relaxed);
}

/* Of references that are the caller's; they are counted as long as the entry is there. */
static void release(struct statics *statics, struct static_entry *entry, unsigned count) {
    if (count == 0) return;
    /* Once the last one is released, a cached entry may be evicted at any time, so it must not be
     * used again. */
    bool is_cached = entry->is_cached;
    /* release: pairs with the acquire in remove_unpinned(), and of the last one here; acquire: what
     * other threads did with the entry happens before its end */
    unsigned before = atomic_fetch_sub_explicit(&entry->references, count, memory_order_acq_rel);
    INVARIANT(before >= count, "a reference to a static is released only once");
    if (before == count && !is_cached) entry_drop(statics, entry);
}

/* One of the thread's stashed references; NULL: it has none to this static. */
static struct static_entry *find_stashed(
    struct statics *statics, uint64_t name, const struct digest *digest) {
    struct static_entry *entry = stash_take(statics->stash, name);
    if (entry == NULL || digest_equal(&entry->digest, digest)) return entry;
    release(statics, entry, 1); /* another static's: its place becomes free for this one */
    return NULL;
}

/* A reference from the table, with as many to stash as the thread may use soon. */
static struct static_entry *find_in_table(
    struct statics *statics, uint64_t name, const struct digest *digest) {
    struct shard *shard = shard_of(statics, name);
    unsigned extra = 0;
    pthread_mutex_lock(&shard->lock);
    struct static_entry *entry = shard_find(shard, name, digest);
    if (entry != NULL && !entry->is_ready) entry = NULL;
    if (entry != NULL) {
        extra = stash_wanted(statics->stash, name, entry);
        add_references(entry, 1 + extra);
    }
    pthread_mutex_unlock(&shard->lock);
    if (entry != NULL) release(statics, entry, stash_keep(statics->stash, name, entry, extra));
    return entry;
}

struct static_entry *statics_find(struct statics *statics, const struct digest *digest) {
    uint64_t name = digest_hash(digest);
    struct static_entry *entry = find_stashed(statics, name, digest);
    if (entry == NULL) entry = find_in_table(statics, name, digest);
    return entry != NULL ? hit(statics, entry) : NULL;
}

struct static_entry *statics_ref(struct statics *statics, struct static_entry *entry) {
    struct shard *shard = shard_of(statics, entry->item.name);
    pthread_mutex_lock(&shard->lock);
    add_references(entry, 1);
    pthread_mutex_unlock(&shard->lock);
    return hit(statics, entry);
}

/* Finds the entry and adds a reference, waiting for an upload under way; or inserts `fresh`, for
 * whose upload others wait. */
static struct static_entry *find_or_insert(struct statics *statics, struct static_entry *fresh) {
    struct shard *shard = shard_of(statics, fresh->item.name);
    pthread_mutex_lock(&shard->lock);
    struct static_entry *entry = shard_find(shard, fresh->item.name, &fresh->digest);
    while (entry != NULL && !entry->is_ready) {
        pthread_cond_wait(&shard->settled, &shard->lock);
        entry = shard_find(shard, fresh->item.name, &fresh->digest);
    }
    if (entry != NULL) add_references(entry, 1);
    else if (fresh->is_cached) hash_table_add(&shard->entries, &fresh->node, fresh->item.name);
    pthread_mutex_unlock(&shard->lock);
    return entry != NULL ? hit(statics, entry) : fresh;
}

/* Wakes threads that wait for the same payload; they find `entry`, or upload it themselves. */
static void settle(struct statics *statics, struct static_entry *entry, bool stays) {
    struct shard *shard = shard_of(statics, entry->item.name);
    pthread_mutex_lock(&shard->lock);
    if (stays) entry->is_ready = true;
    else hash_table_remove(&shard->entries, &entry->node);
    pthread_cond_broadcast(&shard->settled);
    pthread_mutex_unlock(&shard->lock);
}

/* Whether no reference is in use. If so, no thread has a stashed one either, and since others are
 * taken under the shard's lock, which is held, that stays so. */
static bool take_back_stashed(struct statics *statics, struct static_entry *entry) {
    /* acquire: pairs with the release in release(); all uses of the entry are over */
    if (atomic_load_explicit(&entry->references, memory_order_acquire) == 0) return true;
    unsigned extra = stash_recall(statics->stash, entry->item.name, entry);
    return atomic_fetch_sub_explicit(&entry->references, extra, memory_order_acq_rel) == extra;
}

static bool remove_unpinned(struct statics *statics, struct static_entry *entry) {
    struct shard *shard = shard_of(statics, entry->item.name);
    pthread_mutex_lock(&shard->lock);
    bool is_unpinned = take_back_stashed(statics, entry);
    if (is_unpinned) hash_table_remove(&shard->entries, &entry->node);
    pthread_mutex_unlock(&shard->lock);
    return is_unpinned;
}

/* ---- room ---- */

/* How much has to be evicted. */
struct wanted {
    enum eviction_claim claim;
    uint64_t freed_bytes;           /* at least */
    uint64_t charge_max, count_max; /* of entries that stay */
    size_t pinned_max;              /* how many entries in use are passed */
};

static void uncharge(struct statics *statics, const struct static_entry *entry) {
    statics->charge -= entry->item.charge;
    statics->cached_bytes -= entry->block_bytes;
    statics->cached_count--;
}

/* Takes out unpinned entries, as many as wanted or as there are. Call it with the lock held;
 * destroy them without it. */
static struct static_entry *take_victims(struct statics *statics, const struct wanted *wanted) {
    struct eviction_item *victims = NULL, *pinned = NULL, *item;
    uint64_t freed_bytes = 0;
    size_t pinned_count = 0;
    while (freed_bytes < wanted->freed_bytes || statics->charge > wanted->charge_max ||
           statics->cached_count > wanted->count_max) {
        if (pinned_count > wanted->pinned_max) break;
        item = eviction_take(&statics->eviction, wanted->claim);
        if (item == NULL) break;
        struct static_entry *entry = (struct static_entry *)item;
        bool is_victim = remove_unpinned(statics, entry);
        struct eviction_item **list = is_victim ? &victims : &pinned;
        item->next = *list;
        *list = item;
        pinned_count += !is_victim;
        if (!is_victim) continue;
        freed_bytes += entry->block_bytes;
        uncharge(statics, entry);
        statics->evictions++;
    }
    while ((item = pinned) != NULL) {
        pinned = item->next;
        eviction_put_back(&statics->eviction, item);
    }
    return (struct static_entry *)victims;
}

static uint64_t destroy_victims(
    struct statics *statics, struct pool_counters *counters, struct static_entry *victims) {
    uint64_t bytes = 0;
    while (victims != NULL) {
        struct static_entry *next = (struct static_entry *)victims->item.next;
        bytes += victims->block_bytes;
        entry_destroy(statics, counters, victims);
        victims = next;
    }
    return bytes;
}

uint64_t statics_shed(struct statics *statics, struct pool_counters *counters, uint64_t bytes) {
    const struct wanted wanted = {.claim = EVICTION_FOR_OTHERS,
        .freed_bytes = bytes,
        .charge_max = UINT64_MAX,
        .count_max = UINT64_MAX,
        .pinned_max = SIZE_MAX};
    pthread_mutex_lock(&statics->lock);
    struct static_entry *victims = take_victims(statics, &wanted);
    pthread_mutex_unlock(&statics->lock);
    return destroy_victims(statics, counters, victims);
}

/* Whether there would be room for `bytes` without any statics. */
static bool shedding_could_help(struct statics *statics, uint64_t bytes) {
    pthread_mutex_lock(&statics->lock);
    uint64_t cached_bytes = statics->cached_bytes;
    pthread_mutex_unlock(&statics->lock);
    return bytes <= pool_room_bytes(statics->options.device_pool) + cached_bytes;
}

enum err statics_acquire_memory(struct statics *statics, struct pool_counters *counters,
    size_t bytes, struct pool_block *ret, struct error *err) {
    enum err code;
    do code = pool_acquire(statics->options.device_pool, counters, bytes, ret, err);
    while (code == ERR_DEVICE_MEMORY && shedding_could_help(statics, bytes) &&
           statics_shed(statics, counters, bytes) > 0);
    return code;
}

/* Charges the budget, evicting entries for it; false if entries that are in use, or worth more,
 * leave no room. */
static bool charge(
    struct statics *statics, struct pool_counters *counters, struct static_entry *entry) {
    struct wanted wanted = {.charge_max = statics->options.budget_bytes - entry->item.charge,
        .count_max = statics->options.entries_max - 1,
        .pinned_max = PINNED_PASSED_MAX};
    pthread_mutex_lock(&statics->lock);
    wanted.claim = eviction_claim_of(&statics->eviction, entry->item.name);
    struct static_entry *victims = take_victims(statics, &wanted);
    bool has_room =
        statics->charge <= wanted.charge_max && statics->cached_count <= wanted.count_max;
    if (has_room) {
        statics->charge += entry->item.charge;
        statics->cached_bytes += entry->block_bytes;
        statics->cached_count++;
    } else {
        eviction_remember(&statics->eviction, entry->item.name);
    }
    pthread_mutex_unlock(&statics->lock);
    (void)destroy_victims(statics, counters, victims);
    return has_room;
}

static void refund(struct statics *statics, const struct static_entry *entry) {
    pthread_mutex_lock(&statics->lock);
    uncharge(statics, entry);
    pthread_mutex_unlock(&statics->lock);
}

/* ---- uploads ---- */

static enum err entry_create(struct statics *statics, const struct digest *digest, size_t bytes,
    struct static_entry **ret, struct error *err) {
    size_t class;
    enum err code = size_class_find(bytes, &class, err);
    if (code != ERR_OK) return code;
    struct static_entry *entry = aligned_alloc(_Alignof(struct static_entry), sizeof *entry);
    if (entry == NULL) return error_no_memory(err, "no memory for a static of %zu bytes", bytes);
    size_t block_bytes = size_class_bytes(class);
    *entry =
        (struct static_entry){.item = {.name = digest_hash(digest),
                                  .charge = block_bytes > CHARGE_MIN ? block_bytes : CHARGE_MIN},
            .digest = *digest,
            .payload_bytes = bytes,
            .block_bytes = block_bytes};
    entry->is_cached = entry->item.charge <= statics->options.budget_bytes;
    atomic_init(&entry->references, 1);
    *ret = entry;
    return ERR_OK;
}

/* Gets memory for the entry, and charges the budget if it has room. */
static enum err make_place(struct statics *statics, struct static_entry *entry, struct error *err) {
    struct pool_counters *counters = counters_take(statics);
    if (entry->is_cached && !charge(statics, counters, entry)) {
        entry->is_cached = false;
        settle(statics, entry, false);
    }
    enum err code =
        statics_acquire_memory(statics, counters, entry->payload_bytes, &entry->block, err);
    counters_give(statics, counters);
    return code;
}

static enum err send(struct statics *statics, struct static_entry *entry,
    const struct payload *payload, struct error *err) {
    enum err code = upload_send(statics->upload, payload, entry->block.address, &entry->fence, err);
    if (code != ERR_OK) entry->fence = NULL; /* the fence may be older than the last copy */
    else if (entry->fence == NULL)           /* relaxed: settle() publishes the entry */
        atomic_store_explicit(&entry->is_there, true, memory_order_relaxed);
    return code;
}

static void count_miss(struct statics *statics, struct static_entry *entry) {
    pthread_mutex_lock(&statics->lock);
    statics->misses++;
    statics->uploaded_bytes += entry->payload_bytes;
    if (entry->is_cached) eviction_add(&statics->eviction, &entry->item);
    pthread_mutex_unlock(&statics->lock);
}

static enum err load(struct statics *statics, struct static_entry *entry,
    const struct payload *payload, struct error *err) {
    enum err code = make_place(statics, entry, err);
    if (code == ERR_OK) code = send(statics, entry, payload, err);
    if (code == ERR_OK) count_miss(statics, entry);
    if (!entry->is_cached) return code;
    settle(statics, entry, code == ERR_OK);
    if (code != ERR_OK) refund(statics, entry);
    return code;
}

enum err statics_upload(struct statics *statics, const struct digest *digest,
    const struct payload *payload, struct static_entry **ret, bool *ret_uploaded,
    struct error *err) {
    struct static_entry *fresh = NULL;
    enum err code = entry_create(statics, digest, payload->bytes.size, &fresh, err);
    if (code != ERR_OK) return code;
    struct static_entry *entry = find_or_insert(statics, fresh);
    *ret_uploaded = entry == fresh;
    if (*ret_uploaded) code = load(statics, fresh, payload, err);
    if (entry != fresh || code != ERR_OK) entry_drop(statics, fresh);
    if (code == ERR_OK) *ret = entry;
    return code;
}

void statics_unref(struct statics *statics, struct static_entry *entry) {
    unsigned count = 1;
    if (entry->is_cached) count = stash_keep(statics->stash, entry->item.name, entry, count);
    release(statics, entry, count);
}

/* ---- entries ---- */

enum err static_entry_await(
    const struct device *device, struct static_entry *entry, CUstream stream, struct error *err) {
    /* acquire: pairs with the release below; if the copy is known to be done, the event need not be
     * checked */
    if (atomic_load_explicit(&entry->is_there, memory_order_acquire)) return ERR_OK;
    bool is_done;
    enum err code = event_poll(device, entry->fence, &is_done, err);
    if (code != ERR_OK) return code;
    if (!is_done) return stream_wait_event(device, stream, entry->fence, err);
    /* release: pairs with the acquire above and in copy_is_over() */
    atomic_store_explicit(&entry->is_there, true, memory_order_release);
    return ERR_OK;
}

CUdeviceptr static_entry_address(const struct static_entry *entry) {
    return pool_block_device(&entry->block);
}

size_t static_entry_bytes(const struct static_entry *entry) {
    return entry->payload_bytes;
}

/* ---- the whole ---- */

enum err statics_create(
    const struct statics_options *options, struct statics **ret, struct error *err) {
    struct statics *statics = aligned_calloc(_Alignof(struct statics), sizeof *statics);
    if (statics == NULL) goto no_memory;
    statics->options = *options;
    eviction_init(&statics->eviction, options->budget_bytes);
    pthread_mutex_init(&statics->lock, NULL);
    for (size_t i = 0; i < SHARD_COUNT; i++) {
        pthread_mutex_init(&statics->shards[i].lock, NULL);
        pthread_cond_init(&statics->shards[i].settled, NULL);
    }
    statics->stash = stash_create();
    statics->idle_counters = queue_create(COUNTERS_COUNT);
    if (statics->stash == NULL || statics->idle_counters == NULL) goto no_memory;
    for (size_t i = 0; i < COUNTERS_COUNT; i++)
        counters_give(statics, &statics->device_counters[i]);
    const struct upload_options upload = {.device = options->device,
        .leases = options->leases,
        .pinned_pool = options->pinned_pool,
        .pinned_counters = &statics->pinned_counters,
        .staging_count = options->staging_count};
    enum err code = upload_stream_create(&upload, &statics->upload, err);
    if (code == ERR_OK) *ret = statics;
    else statics_destroy(statics);
    return code;
no_memory:
    statics_destroy(statics);
    return error_no_memory(err, "no memory for the table of statics");
}

void statics_destroy(struct statics *statics) {
    if (statics == NULL) return;
    (void)statics_shed(statics, &statics->device_counters[0], UINT64_MAX);
    INVARIANT(statics->cached_bytes == 0, "no static is in use when all are dropped");
    upload_stream_destroy(statics->upload);
    queue_destroy(statics->idle_counters);
    stash_destroy(statics->stash);
    for (size_t i = 0; i < SHARD_COUNT; i++) {
        hash_table_fini(&statics->shards[i].entries);
        pthread_cond_destroy(&statics->shards[i].settled);
        pthread_mutex_destroy(&statics->shards[i].lock);
    }
    pthread_mutex_destroy(&statics->lock);
    free(statics);
}

struct statics_counts statics_read_counts(struct statics *statics) {
    pthread_mutex_lock(&statics->lock);
    struct statics_counts counts = {.misses = statics->misses,
        .evictions = statics->evictions,
        .uploaded_bytes = statics->uploaded_bytes,
        .cached_bytes = statics->cached_bytes,
        .cached_count = statics->cached_count};
    pthread_mutex_unlock(&statics->lock);
    for (size_t i = 0; i < THREAD_NUMBERS; i++) {
        const struct hits *hits = &statics->hits[i];
        /* relaxed: as in hit() */
        counts.hits += atomic_load_explicit(&hits->count, memory_order_relaxed);
        counts.saved_bytes += atomic_load_explicit(&hits->saved_bytes, memory_order_relaxed);
    }
    return counts;
}

const struct pool_counters *statics_device_counters(const struct statics *statics, size_t *count) {
    *count = COUNTERS_COUNT;
    return statics->device_counters;
}

const struct pool_counters *statics_pinned_counters(const struct statics *statics, size_t *count) {
    *count = 1;
    return &statics->pinned_counters;
}

struct upload_counts statics_upload_counts(const struct statics *statics) {
    return upload_read_counts(statics->upload);
}
