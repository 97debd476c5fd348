#include "executor/cancels.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/hash.h"

enum { BUCKETS_MIN = 16 };

struct cancel {
    struct cancel *next_in_bucket, *newer;
    uint64_t hash, expires_ms;
    size_t id_size;
    uint8_t id[];
};

struct cancels {
    uint32_t ids_max, ttl_ms;
    atomic_size_t count;  /* changed under the lock */
    pthread_mutex_t lock; /* guards what follows */
    struct cancel *oldest, *newest;
    size_t bucket_count; /* a power of two */
    struct cancel *buckets[];
};

struct cancels *cancels_create(uint32_t ids_max, uint32_t ttl_ms) {
    size_t bucket_count = BUCKETS_MIN;
    while (bucket_count < ids_max) bucket_count *= 2;
    struct cancels *cancels =
        calloc(1, sizeof *cancels + bucket_count * sizeof cancels->buckets[0]);
    if (cancels == NULL) return NULL;
    cancels->ids_max = ids_max;
    cancels->ttl_ms = ttl_ms;
    cancels->bucket_count = bucket_count;
    atomic_init(&cancels->count, 0);
    pthread_mutex_init(&cancels->lock, NULL);
    return cancels;
}

static struct cancel **link_of(struct cancels *cancels, uint64_t hash, struct slice id) {
    struct cancel **link = &cancels->buckets[hash & (cancels->bucket_count - 1)];
    while (*link != NULL &&
           ((*link)->hash != hash || !slice_equal(slice_of((*link)->id, (*link)->id_size), id)))
        link = &(*link)->next_in_bucket;
    return link;
}

static void count(struct cancels *cancels, int change) {
    /* relaxed: as cancels_has() reads it */
    atomic_fetch_add_explicit(&cancels->count, (size_t)change, memory_order_relaxed);
}

static void forget_oldest(struct cancels *cancels) {
    struct cancel *cancel = cancels->oldest;
    *link_of(cancels, cancel->hash, slice_of(cancel->id, cancel->id_size)) = cancel->next_in_bucket;
    cancels->oldest = cancel->newer;
    if (cancels->oldest == NULL) cancels->newest = NULL;
    count(cancels, -1);
    free(cancel);
}

/* One that was cancelled again, and lives longer, only delays the end of those behind it. */
static void forget_expired(struct cancels *cancels, uint64_t now_ms) {
    while (cancels->oldest != NULL && cancels->oldest->expires_ms <= now_ms) forget_oldest(cancels);
}

static bool append(
    struct cancels *cancels, struct cancel **link, uint64_t hash, struct slice id, uint64_t ends) {
    struct cancel *cancel = malloc(sizeof *cancel + id.size);
    if (cancel == NULL) return false;
    *cancel = (struct cancel){.hash = hash, .expires_ms = ends, .id_size = id.size};
    if (id.size > 0) memcpy(cancel->id, id.data, id.size);
    *link = cancel;
    if (cancels->newest != NULL) cancels->newest->newer = cancel;
    else cancels->oldest = cancel;
    cancels->newest = cancel;
    count(cancels, 1);
    return true;
}

enum err cancels_add(struct cancels *cancels, struct slice id, uint64_t at_ms, uint64_t now_ms,
    bool *forgot, struct error *err) {
    uint64_t hash = hash_more(HASH_START, id), expires_ms = at_ms + cancels->ttl_ms;
    bool is_added = true;
    *forgot = false;
    if (expires_ms <= now_ms) return ERR_OK;
    pthread_mutex_lock(&cancels->lock);
    forget_expired(cancels, now_ms);
    struct cancel **link = link_of(cancels, hash, id);
    if (*link != NULL) {
        if ((*link)->expires_ms < expires_ms) (*link)->expires_ms = expires_ms;
    } else {
        *forgot = cancels_count(cancels) == cancels->ids_max;
        if (*forgot) forget_oldest(cancels);
        is_added = append(cancels, link_of(cancels, hash, id), hash, id, expires_ms);
    }
    pthread_mutex_unlock(&cancels->lock);
    if (is_added) return ERR_OK;
    return error_set(err, ERR_NO_MEMORY, 0,
        "give the process more memory, or lower cancels.ids_max", "no memory for a cancel");
}

bool cancels_has(struct cancels *cancels, struct slice id, uint64_t now_ms) {
    /* relaxed: a cancel that comes this moment may be met or not; the lock orders the rest */
    if (cancels_count(cancels) == 0) return false;
    uint64_t hash = hash_more(HASH_START, id);
    pthread_mutex_lock(&cancels->lock);
    const struct cancel *cancel = *link_of(cancels, hash, id);
    bool has = cancel != NULL && cancel->expires_ms > now_ms;
    pthread_mutex_unlock(&cancels->lock);
    return has;
}

size_t cancels_count(struct cancels *cancels) {
    return atomic_load_explicit(&cancels->count, memory_order_relaxed);
}

void cancels_destroy(struct cancels *cancels) {
    if (cancels == NULL) return;
    while (cancels->oldest != NULL) forget_oldest(cancels);
    pthread_mutex_destroy(&cancels->lock);
    free(cancels);
}
