#include "pipeline/cancels.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/hash_table.h"

struct cancel {
    struct hash_node node;
    struct cancel *newer;
    uint64_t expires_ms;
    enum control_action action;
    size_t id_size;
    uint8_t id[];
};

struct cancels {
    uint32_t ids_max, ttl_ms;
    atomic_size_t count;  /* changed under the lock */
    pthread_mutex_t lock; /* guards what follows */
    struct cancel *oldest, *newest;
    struct hash_table by_id;
};

struct cancels *cancels_create(uint32_t ids_max, uint32_t ttl_ms) {
    struct cancels *cancels = calloc(1, sizeof *cancels);
    if (cancels == NULL) return NULL;
    cancels->ids_max = ids_max;
    cancels->ttl_ms = ttl_ms;
    atomic_init(&cancels->count, 0);
    pthread_mutex_init(&cancels->lock, NULL);
    return cancels;
}

static struct cancel *find(const struct cancels *cancels, uint64_t hash, struct slice id) {
    struct hash_node *node = hash_table_find(&cancels->by_id, hash);
    for (; node != NULL; node = hash_node_next(node)) {
        struct cancel *cancel = HASH_ITEM(node, struct cancel, node);
        if (slice_equal(slice_of(cancel->id, cancel->id_size), id)) return cancel;
    }
    return NULL;
}

static void count(struct cancels *cancels, int change) {
    /* relaxed: as cancels_find() reads it */
    atomic_fetch_add_explicit(&cancels->count, (size_t)change, memory_order_relaxed);
}

static void forget_oldest(struct cancels *cancels) {
    struct cancel *cancel = cancels->oldest;
    hash_table_remove(&cancels->by_id, &cancel->node);
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
    struct cancels *cancels, uint64_t hash, const struct control_message *message, uint64_t ends) {
    struct slice id = message->id;
    struct cancel *cancel = malloc(sizeof *cancel + id.size);
    if (cancel == NULL) return false;
    *cancel = (struct cancel){.expires_ms = ends, .action = message->action, .id_size = id.size};
    if (id.size > 0) memcpy(cancel->id, id.data, id.size);
    hash_table_add(&cancels->by_id, &cancel->node, hash);
    if (cancels->newest != NULL) cancels->newest->newer = cancel;
    else cancels->oldest = cancel;
    cancels->newest = cancel;
    count(cancels, 1);
    return true;
}

enum err cancels_add(struct cancels *cancels, const struct control_message *message, uint64_t at_ms,
    uint64_t now_ms, bool *forgot, struct error *err) {
    uint64_t hash = hash_more(HASH_START, message->id), expires_ms = at_ms + cancels->ttl_ms;
    bool is_added = true;
    *forgot = false;
    if (expires_ms <= now_ms) return ERR_OK;
    pthread_mutex_lock(&cancels->lock);
    forget_expired(cancels, now_ms);
    struct cancel *cancel = find(cancels, hash, message->id);
    if (cancel != NULL) {
        if (cancel->action < message->action) cancel->action = message->action;
        if (cancel->expires_ms < expires_ms) cancel->expires_ms = expires_ms;
    } else {
        *forgot = cancels_count(cancels) == cancels->ids_max;
        if (*forgot) forget_oldest(cancels);
        is_added = append(cancels, hash, message, expires_ms);
    }
    pthread_mutex_unlock(&cancels->lock);
    if (is_added) return ERR_OK;
    return error_set(err, ERR_NO_MEMORY, 0,
        "give the process more memory, or lower cancels.ids_max", "no memory for a cancel");
}

enum control_action cancels_find(struct cancels *cancels, struct slice id, uint64_t now_ms) {
    /* relaxed: a cancel that comes this moment may be met or not; the lock orders the rest */
    if (cancels_count(cancels) == 0) return CONTROL_NONE;
    uint64_t hash = hash_more(HASH_START, id);
    pthread_mutex_lock(&cancels->lock);
    const struct cancel *cancel = find(cancels, hash, id);
    enum control_action action =
        cancel != NULL && cancel->expires_ms > now_ms ? cancel->action : CONTROL_NONE;
    pthread_mutex_unlock(&cancels->lock);
    return action;
}

size_t cancels_count(struct cancels *cancels) {
    return atomic_load_explicit(&cancels->count, memory_order_relaxed);
}

void cancels_destroy(struct cancels *cancels) {
    if (cancels == NULL) return;
    while (cancels->oldest != NULL) forget_oldest(cancels);
    hash_table_fini(&cancels->by_id);
    pthread_mutex_destroy(&cancels->lock);
    free(cancels);
}
