#include "gpu/residents.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/hash_table.h"
#include "base/invariant.h"
#include "base/list.h"
#include "gpu/size_class.h"

enum { NEVER_APPLIED = -1 };

/* The residents of a scope; it lives as long as there are any. Guarded by the lock. */
struct scope {
    struct hash_node node;
    uint64_t count, bytes; /* of the residents */
    const char *topic;
    int32_t partition;
    struct slice key; /* in `text` */
    uint8_t text[];
};

struct resident {
    /* guarded by the lock */
    struct hash_node node;
    struct list_node by_use; /* while not attached */
    struct resident *next_dropped;
    uint64_t used_ns;
    bool is_attached;
    bool is_revoked; /* while attached: it is dropped when it is detached */
    /* used by the job while it is attached */
    struct pool_block block;
    uint64_t bytes;
    uint64_t generation;
    int64_t applied_offset;
    bool is_fresh;
    bool is_update; /* of the job that it is attached to */
    int64_t offset; /* the same */
    /* never changes */
    struct scope *scope;
    struct slice name; /* in `text` */
    uint8_t text[];
};

/* A partition that was revoked, and when the last time was. */
struct revoked {
    struct revoked *next;
    uint64_t at_ns;
    int32_t partition;
    char topic[];
};

struct residents {
    struct residents_options options;
    pthread_mutex_t lock; /* guards what follows */
    struct hash_table table, scopes;
    struct list by_use; /* the one unused for longest first */
    struct revoked *revoked;
    struct residents_counts counts; /* `count` is not used here: the table has it */
    uint64_t pending_bytes; /* part of counts.bytes that is not charged to the pool's budget yet */

    pthread_mutex_t pool_lock; /* guards the counters, which one thread may use at a time */
    struct pool_counters counters;
};

enum err residents_create(
    const struct residents_options *options, struct residents **ret, struct error *err) {
    struct residents *residents = calloc(1, sizeof *residents);
    if (residents == NULL) return error_no_memory(err, "no memory for the table of residents");
    residents->options = *options;
    pthread_mutex_init(&residents->lock, NULL);
    pthread_mutex_init(&residents->pool_lock, NULL);
    *ret = residents;
    return ERR_OK;
}

/* --- the table and the order of use --- */

static uint64_t scope_hash(const struct resident_use *use) {
    uint64_t hash = hash_more(HASH_START, slice_of_text(use->topic));
    hash = hash_more(hash, slice_of(&use->partition, sizeof use->partition));
    hash = hash_more(hash, slice_of(&use->key.size, sizeof use->key.size)); /* ab+c is not a+bc */
    return hash_more(hash, use->key);
}

static struct resident *resident_of(struct hash_node *node) {
    return HASH_ITEM(node, struct resident, node);
}

static bool is_in(const char *topic, int32_t partition, const char *of_topic, int32_t of) {
    return partition == of && strcmp(topic, of_topic) == 0;
}

static struct scope *find_scope(
    const struct residents *residents, uint64_t hash, const struct resident_use *use) {
    struct hash_node *node = hash_table_find(&residents->scopes, hash);
    for (; node != NULL; node = hash_node_next(node)) {
        struct scope *scope = HASH_ITEM(node, struct scope, node);
        if (slice_equal(scope->key, use->key) &&
            is_in(scope->topic, scope->partition, use->topic, use->partition))
            return scope;
    }
    return NULL;
}

static struct resident *find(
    const struct residents *residents, const struct scope *scope, struct slice name) {
    if (scope == NULL) return NULL;
    struct hash_node *node = hash_table_find(&residents->table, hash_more(scope->node.hash, name));
    for (; node != NULL; node = hash_node_next(node)) {
        struct resident *resident = resident_of(node);
        if (resident->scope == scope && slice_equal(resident->name, name)) return resident;
    }
    return NULL;
}

/* NULL: all are attached, or there is none. */
static struct resident *oldest(const struct residents *residents) {
    struct list_node *first = residents->by_use.first;
    return first != NULL ? LIST_ITEM(first, struct resident, by_use) : NULL;
}

/* --- dropping --- */

/* Counts `block_bytes` of a new resident, and lets the pool take as much more. */
static void charge(struct residents *residents, struct scope *scope, uint64_t block_bytes) {
    struct budget *budget = residents->options.budget;
    budget_set_limit(budget, budget_limit(budget) + block_bytes);
    residents->counts.bytes += block_bytes;
    scope->bytes += block_bytes;
    scope->count++;
}

static void refund(struct residents *residents, struct scope *scope, uint64_t block_bytes) {
    struct budget *budget = residents->options.budget;
    budget_set_limit(budget, budget_limit(budget) - block_bytes);
    residents->counts.bytes -= block_bytes;
    scope->bytes -= block_bytes;
    if (--scope->count > 0) return;
    hash_table_remove(&residents->scopes, &scope->node);
    free(scope);
}

/* Moves a resident that is not in the list by last use from the table to a list for free_dropped().
 * */
static void drop(
    struct residents *residents, struct resident *resident, struct resident **dropped) {
    hash_table_remove(&residents->table, &resident->node);
    refund(residents, resident->scope, resident->block.bytes);
    resident->next_dropped = *dropped;
    *dropped = resident;
}

/* Call it without the lock, because a free may wait for the device. */
static void free_dropped(struct residents *residents, struct resident *dropped) {
    while (dropped != NULL) {
        struct resident *next = dropped->next_dropped;
        struct error ignored; /* ignored: the budget shows the error */
        pthread_mutex_lock(&residents->pool_lock);
        (void)!pool_release(
            residents->options.pool, &residents->counters, &dropped->block, &ignored);
        pthread_mutex_unlock(&residents->pool_lock);
        free(dropped);
        dropped = next;
    }
}

static void drop_oldest(struct residents *residents, struct resident **dropped) {
    struct resident *resident = oldest(residents);
    list_remove(&residents->by_use, &resident->by_use);
    drop(residents, resident, dropped);
}

static void drop_idle(struct residents *residents, uint64_t now_ns, struct resident **dropped) {
    uint64_t idle_ns = residents->options.idle_ns;
    while (oldest(residents) != NULL && oldest(residents)->used_ns + idle_ns < now_ns)
        drop_oldest(residents, dropped);
}

void residents_drop_idle(struct residents *residents, uint64_t now_ns) {
    struct resident *dropped = NULL;
    pthread_mutex_lock(&residents->lock);
    drop_idle(residents, now_ns, &dropped);
    pthread_mutex_unlock(&residents->lock);
    free_dropped(residents, dropped);
}

void residents_destroy(struct residents *residents) {
    if (residents == NULL) return;
    struct resident *dropped = NULL;
    while (oldest(residents) != NULL) drop_oldest(residents, &dropped);
    INVARIANT(residents->table.count == 0, "no resident is left when all are dropped");
    INVARIANT(residents->scopes.count == 0, "a scope without residents is gone");
    free_dropped(residents, dropped);
    while (residents->revoked != NULL) {
        struct revoked *next = residents->revoked->next;
        free(residents->revoked);
        residents->revoked = next;
    }
    hash_table_fini(&residents->table);
    hash_table_fini(&residents->scopes);
    pthread_mutex_destroy(&residents->pool_lock);
    pthread_mutex_destroy(&residents->lock);
    free(residents);
}

/* --- revoked partitions --- */

static struct revoked *find_revoked(
    const struct residents *residents, const char *topic, int32_t partition) {
    struct revoked *revoked = residents->revoked;
    while (revoked != NULL && !is_in(revoked->topic, revoked->partition, topic, partition))
        revoked = revoked->next;
    return revoked;
}

/* NULL when memory is short. */
static struct revoked *add_revoked(
    struct residents *residents, const char *topic, int32_t partition) {
    size_t topic_bytes = strlen(topic) + 1;
    struct revoked *revoked = calloc(1, sizeof *revoked + topic_bytes);
    if (revoked == NULL) return NULL;
    revoked->next = residents->revoked;
    revoked->partition = partition;
    memcpy(revoked->topic, topic, topic_bytes);
    residents->revoked = revoked;
    return revoked;
}

/* If there is no memory for the note, a late job may create a resident that no other job uses; it
 * is dropped when it has been idle for long. */
static void note_revoked(
    struct residents *residents, const char *topic, int32_t partition, uint64_t now_ns) {
    struct revoked *revoked = find_revoked(residents, topic, partition);
    if (revoked == NULL) revoked = add_revoked(residents, topic, partition);
    if (revoked != NULL) revoked->at_ns = now_ns;
}

void residents_revoke(
    struct residents *residents, const char *topic, int32_t partition, uint64_t now_ns) {
    struct resident *dropped = NULL;
    pthread_mutex_lock(&residents->lock);
    note_revoked(residents, topic, partition, now_ns);
    struct hash_node *next = hash_table_walk(&residents->table, NULL), *node;
    while ((node = next) != NULL) {
        struct resident *resident = resident_of(node);
        next = hash_table_walk(&residents->table, node);
        if (!is_in(resident->scope->topic, resident->scope->partition, topic, partition)) continue;
        resident->is_revoked = true;
        if (resident->is_attached) continue;
        list_remove(&residents->by_use, &resident->by_use);
        drop(residents, resident, &dropped);
    }
    pthread_mutex_unlock(&residents->lock);
    free_dropped(residents, dropped);
}

/* --- attaching --- */

static enum err refuse_gone(
    const struct resident_use *use, const char *why, const char *fix, struct error *err) {
    return error_set(err, ERR_RESIDENT_GONE, 0, fix, "resident '%.*s' does not exist: %s",
        SLICE_TEXT(use->name), why);
}

static enum err check_can_create(
    const struct residents *residents, const struct resident_use *use, struct error *err) {
    const struct revoked *revoked = find_revoked(residents, use->topic, use->partition);
    if (revoked != NULL && use->received_ns < revoked->at_ns)
        return error_set(err, ERR_REVOKED, 0, "nothing needs to be done: it is read again",
            "the job's partition was given up since, or its log was cut");
    if (!use->can_create)
        return refuse_gone(use, "it was never created here, or was dropped since",
            "seed it again: send a job that names it with `init`", err);
    if (use->has_expect && use->expect != 0)
        return refuse_gone(use, "the job would create it, but expects a later generation",
            "to create it, leave out `expect`, or send `expect: 0`", err);
    return ERR_OK;
}

static enum err check_found(
    const struct resident *resident, const struct resident_use *use, struct error *err) {
    if (resident->bytes != use->bytes)
        return error_set(err, ERR_RESIDENT_SIZE, 0, "use another name for another size",
            "resident '%.*s' has %" PRIu64 " bytes, and the job says %" PRIu64 "%s",
            SLICE_TEXT(use->name), resident->bytes, use->bytes,
            use->is_each ? " for all instances together" : "");
    if (use->is_update && use->offset <= resident->applied_offset) {
        if (use->offset == resident->applied_offset) return ERR_OK;
        return error_set(err, ERR_RESIDENT_GENERATION, 0,
            "read the resident with another job: this one will not be applied again",
            "the job was delivered again, but resident '%.*s' has been updated since, by the "
            "job at offset %" PRId64,
            SLICE_TEXT(use->name), resident->applied_offset);
    }
    if (use->has_expect && use->expect != resident->generation)
        return error_set(err, ERR_RESIDENT_GENERATION, 0,
            "read the resident, and send a job that expects its present generation",
            "resident '%.*s' is at generation %" PRIu64 ", and the job expects %" PRIu64,
            SLICE_TEXT(use->name), resident->generation, use->expect);
    return ERR_OK;
}

/* `scope` is NULL if this is the first of its scope. */
static enum err check_bytes(const struct residents *residents, const struct scope *scope,
    uint64_t block_bytes, struct error *err) {
    const struct residents_options *options = &residents->options;
    uint64_t of_key = scope != NULL ? scope->bytes : 0, of_all = residents->counts.bytes;
    if (block_bytes > options->key_bytes_max)
        return error_set(err, ERR_TOO_LARGE, 0,
            "split it among several keys, or raise residents.bytes_per_key and residents.bytes_max",
            "a resident of %" PRIu64 " bytes is more than the %" PRIu64
            " bytes that the residents of a key may take",
            block_bytes, options->key_bytes_max);
    if (block_bytes > options->key_bytes_max - of_key)
        return error_set(err, ERR_RESIDENTS_FULL, 0,
            "use fewer residents under this key, or wait until some were not used for "
            "residents.idle_timeout_ms; or raise residents.bytes_per_key",
            "residents of this key take %" PRIu64 " of at most %" PRIu64
            " bytes, and one of %" PRIu64 " more does not fit",
            of_key, options->key_bytes_max, block_bytes);
    if (block_bytes > options->bytes_max - of_all)
        return error_set(err, ERR_RESIDENTS_FULL, 0,
            "use fewer or smaller residents, or wait until some were not used for "
            "residents.idle_timeout_ms; or raise residents.bytes_max, or add workers",
            "residents take %" PRIu64 " of at most %" PRIu64 " bytes, and one of %" PRIu64
            " more does not fit",
            of_all, options->bytes_max, block_bytes);
    return ERR_OK;
}

/* What the driver has left: jobs take theirs as they come, up to the pool's own limit. */
static enum err check_device(
    const struct residents *residents, uint64_t block_bytes, struct error *err) {
    uint64_t memory = residents->options.device->limits.memory_bytes;
    uint64_t taken = budget_charged(residents->options.budget) + residents->pending_bytes;
    uint64_t free_bytes = taken < memory ? memory - taken : 0;
    if (block_bytes <= free_bytes / 10 * 9) return ERR_OK;
    return error_set(err, ERR_DEVICE_MEMORY, 0,
        "use fewer or smaller residents, lower residents.idle_timeout_ms, or add workers",
        "a resident of %" PRIu64 " bytes must fit into %" PRIu64
        ", nine tenths of what the device has left",
        block_bytes, free_bytes / 10 * 9);
}

static enum err check_entries(const struct residents *residents, const struct scope *scope,
    const struct resident_use *use, struct error *err) {
    const struct residents_options *options = &residents->options;
    if (use->key.size > RESIDENT_KEY_BYTES_MAX)
        return error_set(err, ERR_TOO_LARGE, 0, "send it under a shorter key",
            "the job's key has %zu bytes, and residents are kept for keys of up to %d",
            use->key.size, RESIDENT_KEY_BYTES_MAX);
    if (scope != NULL && scope->count >= options->key_entries_max)
        return error_set(err, ERR_RESIDENTS_FULL, 0,
            "use fewer residents under this key, or wait until some were not used for "
            "residents.idle_timeout_ms; or raise residents.entries_per_key",
            "there are %" PRIu64 " residents of this key, as many as this worker keeps",
            scope->count);
    if (residents->table.count < options->entries_max) return ERR_OK;
    return error_set(err, ERR_RESIDENTS_FULL, 0,
        "use fewer residents, or wait until some were not used for residents.idle_timeout_ms; or "
        "raise residents.entries_max",
        "there are %zu residents, as many as this worker keeps", residents->table.count);
}

static struct scope *scope_create(
    struct residents *residents, uint64_t hash, const struct resident_use *use) {
    struct scope *scope = calloc(1, sizeof *scope + use->key.size);
    if (scope == NULL) return NULL;
    scope->topic = use->topic;
    scope->partition = use->partition;
    scope->key = slice_of(scope->text, use->key.size);
    if (use->key.size > 0) memcpy(scope->text, use->key.data, use->key.size);
    hash_table_add(&residents->scopes, &scope->node, hash);
    return scope;
}

static struct resident *resident_alloc(const struct resident_use *use) {
    struct resident *resident = calloc(1, sizeof *resident + use->name.size);
    if (resident == NULL) return NULL;
    resident->name = slice_of(resident->text, use->name.size);
    memcpy(resident->text, use->name.data, use->name.size);
    resident->bytes = use->bytes;
    resident->applied_offset = NEVER_APPLIED;
    resident->is_fresh = true;
    return resident;
}

/* Adds a new resident to the table, with room in the budget but without its block. */
static enum err reserve(struct residents *residents, const struct resident_use *use,
    struct scope *scope, uint64_t hash, struct resident **ret, struct error *err) {
    size_t class;
    uint64_t block_bytes = 0;
    enum err code = ERR_OK;
    if (use->bytes > 0) code = size_class_find(use->bytes, &class, err);
    if (code == ERR_OK && use->bytes > 0) block_bytes = size_class_bytes(class);
    if (code == ERR_OK) code = check_entries(residents, scope, use, err);
    if (code == ERR_OK) code = check_bytes(residents, scope, block_bytes, err);
    if (code == ERR_OK) code = check_device(residents, block_bytes, err);
    if (code != ERR_OK) return code;
    struct resident *resident = resident_alloc(use);
    if (resident != NULL && scope == NULL) scope = scope_create(residents, hash, use);
    if (scope == NULL || resident == NULL) {
        free(resident);
        return error_no_memory(err, "no memory to note resident '%.*s'", SLICE_TEXT(use->name));
    }
    charge(residents, scope, block_bytes);
    resident->scope = scope;
    resident->block.bytes = block_bytes;
    residents->pending_bytes += block_bytes;
    hash_table_add(&residents->table, &resident->node, hash_more(hash, use->name));
    *ret = resident;
    return ERR_OK;
}

/* Gives a reserved resident its block. If that fails, removes the resident again. */
static enum err acquire(struct residents *residents, struct resident *resident, struct error *err) {
    struct pool_block block;
    uint64_t reserved_bytes = resident->block.bytes;
    struct resident *dropped = NULL;
    pthread_mutex_lock(&residents->pool_lock);
    enum err code = statics_acquire_memory(
        residents->options.statics, &residents->counters, resident->bytes, &block, err);
    pthread_mutex_unlock(&residents->pool_lock);

    pthread_mutex_lock(&residents->lock);
    residents->pending_bytes -= reserved_bytes;
    if (code == ERR_OK) resident->block = block;
    else drop(residents, resident, &dropped);
    pthread_mutex_unlock(&residents->lock);
    free_dropped(residents, dropped);
    return code;
}

enum err residents_attach(struct residents *residents, const struct resident_use *use,
    uint64_t now_ns, struct resident **ret, struct error *err) {
    struct resident *dropped = NULL;
    uint64_t hash = scope_hash(use);
    pthread_mutex_lock(&residents->lock);
    drop_idle(residents, now_ns, &dropped);
    struct scope *scope = find_scope(residents, hash, use);
    struct resident *resident = find(residents, scope, use->name);
    enum err code = ERR_OK;
    bool is_new = resident == NULL;
    if (is_new) {
        code = check_can_create(residents, use, err);
        if (code == ERR_OK) code = reserve(residents, use, scope, hash, &resident, err);
    } else {
        INVARIANT(!resident->is_attached, "a resident is attached by one job at a time");
        code = check_found(resident, use, err);
        if (code == ERR_OK) list_remove(&residents->by_use, &resident->by_use);
    }
    if (code == ERR_OK) {
        resident->is_attached = true;
        resident->is_update = use->is_update;
        resident->offset = use->offset;
    }
    pthread_mutex_unlock(&residents->lock);
    free_dropped(residents, dropped);
    if (code == ERR_OK && is_new) code = acquire(residents, resident, err);
    if (code == ERR_OK) *ret = resident;
    return code;
}

void residents_detach(struct residents *residents, struct resident *resident,
    enum resident_verdict verdict, uint64_t now_ns) {
    struct resident *dropped = NULL;
    pthread_mutex_lock(&residents->lock);
    bool is_changed = resident->is_fresh || resident->is_update;
    bool is_bad = verdict == RESIDENT_SPOILT && is_changed;
    bool is_empty = verdict == RESIDENT_UNTOUCHED && resident->is_fresh;
    resident->is_attached = false;
    if (verdict == RESIDENT_APPLIED) {
        resident->generation = resident_generation_after(resident);
        if (resident->is_update) resident->applied_offset = resident->offset;
        resident->is_fresh = false;
    }
    if (is_bad || is_empty || resident->is_revoked) {
        drop(residents, resident, &dropped);
    } else {
        resident->used_ns = now_ns;
        list_append(&residents->by_use, &resident->by_use);
    }
    pthread_mutex_unlock(&residents->lock);
    free_dropped(residents, dropped);
}

CUdeviceptr resident_address(const struct resident *resident) {
    return pool_block_device(&resident->block);
}

bool resident_is_fresh(const struct resident *resident) {
    return resident->is_fresh;
}

bool resident_has_applied(const struct resident *resident) {
    return resident->is_update && resident->offset == resident->applied_offset;
}

uint64_t resident_generation_after(const struct resident *resident) {
    bool adds = resident->is_update && !resident_has_applied(resident);
    return resident->generation + (adds ? 1 : 0);
}

struct residents_counts residents_read_counts(struct residents *residents) {
    pthread_mutex_lock(&residents->lock);
    struct residents_counts counts = residents->counts;
    counts.count = residents->table.count;
    pthread_mutex_unlock(&residents->lock);
    return counts;
}

struct pool_books residents_pool_books(const struct residents *residents) {
    return (struct pool_books){.counters = &residents->counters, .count = 1};
}
