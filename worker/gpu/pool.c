#include "gpu/pool.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/invariant.h"
#include "base/ring.h"
#include "gpu/event.h"
#include "gpu/magazines.h"
#include "gpu/size_class.h"

enum { CLASS_SLOTS_MAX = 1024 };

struct pool {
    const struct device *device;
    enum pool_kind kind;
    struct budget *budget;
    bool wipes;
    CUstream wipe_stream;        /* only for device memory */
    struct magazines *magazines; /* before the rings */
    struct ring *free_blocks[SIZE_CLASS_COUNT];
};

static const char FIX_BUG[] = "report this as a bug of the worker";

/*
 * Slots for min(1024, max(1, budget / class)) blocks. A ring's size is a power of two of at least
 * 2, so some rings have room for more. The budget, which also counts cached blocks, still keeps the
 * bound.
 */
static size_t class_slots(uint64_t budget_bytes, size_t class) {
    uint64_t slots = budget_bytes / size_class_bytes(class);
    if (slots < 1) return 1;
    return slots < CLASS_SLOTS_MAX ? (size_t)slots : CLASS_SLOTS_MAX;
}

enum err pool_create(const struct device *device, enum pool_kind kind, struct budget *budget,
    struct pool **ret, struct error *err) {
    struct pool *pool = calloc(1, sizeof *pool);
    if (pool == NULL) goto no_memory;
    *pool = (struct pool){.device = device, .kind = kind, .budget = budget};
    pool->magazines = magazines_create();
    if (pool->magazines == NULL) goto no_memory;
    for (size_t class = 0; class < SIZE_CLASS_COUNT; class ++) {
        pool->free_blocks[class] = ring_create(class_slots(budget_limit(budget), class));
        if (pool->free_blocks[class] == NULL) goto no_memory;
    }
    *ret = pool;
    return ERR_OK;
no_memory:
    pool_destroy(pool, NULL);
    return error_no_memory(err, "no memory for the rings of the %s", budget->name);
}

enum err pool_start_wiping(struct pool *pool, struct error *err) {
    pool->wipes = true;
    if (pool->kind == POOL_PINNED) return ERR_OK;
    const struct gpu_driver *gpu = pool->device->driver;
    return GPU_TRY(gpu, stream_create(&pool->wipe_stream, CU_STREAM_NON_BLOCKING), err);
}

bool pool_wipes(const struct pool *pool) {
    return pool->wipes;
}

uint64_t pool_room_bytes(const struct pool *pool) {
    uint64_t limit = budget_limit(pool->budget), memory = pool->device->limits.memory_bytes;
    if (pool->kind == POOL_DEVICE && memory < limit) limit = memory;
    uint64_t charged = budget_charged(pool->budget);
    return charged < limit ? limit - charged : 0;
}

/* Only the counter's own thread writes it, so no atomic read-modify-write is needed. */
static void counter_add(atomic_uint_fast64_t *counter, uint64_t amount) {
    uint64_t value = atomic_load_explicit(counter, memory_order_relaxed);
    /* release: pairs with the acquire in counter_read(); a reader that sees this sees earlier
     * counts */
    atomic_store_explicit(counter, value + amount, memory_order_release);
}

static uint64_t counter_read(const atomic_uint_fast64_t *counter) {
    /* acquire: pairs with the release in counter_add() */
    return atomic_load_explicit(counter, memory_order_acquire);
}

static enum err refuse_wrap(
    const char *counter, uint64_t observed, uint64_t attempted, struct error *err) {
    return error_set(err, ERR_INTERNAL, 0, FIX_BUG,
        "pool counter %s is %" PRIu64 ", and adding %" PRIu64 " would wrap it", counter, observed,
        attempted);
}

/* Checks, before anything moves, that no counter would overflow. No other thread writes them, so
 * counting cannot fail later, when an allocation would have to be undone. */
static enum err counters_check(
    const struct pool_counters *counters, uint64_t bytes, struct error *err) {
    uint64_t bits = bytes;
#define X(counter) bits |= atomic_load_explicit(&counters->counter, memory_order_relaxed);
    POOL_COUNTER_LIST(X)
#undef X
    if (bits <= INT64_MAX) return ERR_OK; /* two numbers of half the range do not wrap */
#define X(counter)                                                                                 \
    uint64_t counter = atomic_load_explicit(&counters->counter, memory_order_relaxed);             \
    if (counter > UINT64_MAX - bytes) return refuse_wrap(#counter, counter, bytes, err);
    POOL_COUNTER_LIST(X)
#undef X
    return ERR_OK;
}

/* The block must not be in use. */
static enum err block_wipe(
    const struct pool *pool, const struct pool_block *block, struct error *err) {
    if (!pool->wipes) return ERR_OK;
    if (pool->kind == POOL_PINNED) {
        memset(pool_block_pinned(block).data, 0, block->bytes);
        return ERR_OK;
    }
    enum err code = GPU_TRY(pool->device->driver,
        fill(pool_block_device(block), 0, block->bytes, pool->wipe_stream), err);
    return code == ERR_OK ? stream_wait(pool->device, pool->wipe_stream, err) : code;
}

static enum err backing_alloc(
    const struct pool *pool, size_t bytes, struct pool_block *ret, struct error *err) {
    if (pool->kind == POOL_DEVICE) {
        struct device_block block;
        enum err code = device_block_alloc(pool->device, bytes, &block, err);
        if (code == ERR_OK) *ret = (struct pool_block){block.address, block.bytes};
        return code;
    }
    struct pinned_block block;
    enum err code = pinned_block_alloc(pool->device, bytes, &block, err);
    if (code == ERR_OK) *ret = (struct pool_block){(uintptr_t)block.data, block.bytes};
    return code;
}

static void backing_free(const struct pool *pool, const struct pool_block *block) {
    if (pool->kind == POOL_DEVICE) {
        struct device_block device = {.address = block->address, .bytes = block->bytes};
        device_block_free(pool->device, &device);
    } else {
        struct pinned_block pinned = pool_block_pinned(block);
        pinned_block_free(pool->device, &pinned);
    }
}

/* Charges before the driver allocates and refunds after it has freed, so the limit is never
 * exceeded. */
static enum err block_create(
    struct pool *pool, size_t bytes, struct pool_block *ret, struct error *err) {
    enum err code = budget_charge(pool->budget, bytes, err);
    if (code != ERR_OK) return code;
    code = backing_alloc(pool, bytes, ret, err);
    if (code == ERR_OK) {
        code = block_wipe(pool, ret, err);
        if (code != ERR_OK) backing_free(pool, ret);
    }
    if (code == ERR_OK) return ERR_OK;
    struct error refund_error;
    if (budget_refund(pool->budget, bytes, &refund_error) == ERR_OK) return code;
    *err = refund_error;
    return err->code;
}

/* Takes a cached block, from the ring or another thread's magazine. */
static bool take_cached(struct pool *pool, size_t class, uint64_t *ret) {
    return ring_pop(pool->free_blocks[class], ret) || magazines_steal(pool->magazines, class, ret);
}

/* Frees a block that was cached, or could not be. */
static enum err block_destroy(struct pool *pool, struct pool_counters *counters,
    const struct pool_block *block, struct error *err) {
    counter_add(&counters->taken_bytes, block->bytes);
    backing_free(pool, block);
    counter_add(&counters->freed_bytes, block->bytes);
    return budget_refund(pool->budget, block->bytes, err);
}

/* Frees cached blocks, large ones first, until `bytes` are freed or there are none. */
static enum err trim(struct pool *pool, struct pool_counters *counters, uint64_t bytes,
    uint64_t *ret_freed_bytes, struct error *err) {
    *ret_freed_bytes = 0;
    for (size_t class = SIZE_CLASS_COUNT; class -- > 0;) {
        struct pool_block block = {.bytes = size_class_bytes(class)};
        while (*ret_freed_bytes < bytes) {
            enum err code = counters_check(counters, block.bytes, err);
            if (code != ERR_OK) return code;
            if (!take_cached(pool, class, &block.address)) break;
            code = block_destroy(pool, counters, &block, err);
            if (code != ERR_OK) return code;
            *ret_freed_bytes += block.bytes;
        }
    }
    return ERR_OK;
}

/* The loop ends: a round that frees nothing is the last, and if a round did not help, other threads
 * got the memory. */
static enum err block_create_making_room(struct pool *pool, struct pool_counters *counters,
    size_t bytes, struct pool_block *ret, struct error *err) {
    for (;;) {
        enum err code = block_create(pool, bytes, ret, err);
        bool can_help = code == pool->budget->full_code && bytes <= budget_limit(pool->budget);
        if (!can_help) return code;
        struct error trim_error;
        uint64_t freed_bytes;
        if (trim(pool, counters, bytes, &freed_bytes, &trim_error) != ERR_OK) {
            *err = trim_error;
            return err->code;
        }
        if (freed_bytes == 0) return code;
    }
}

enum err pool_acquire(struct pool *pool, struct pool_counters *counters, size_t bytes,
    struct pool_block *ret, struct error *err) {
    *ret = (struct pool_block){0};
    if (bytes == 0) return ERR_OK;
    size_t class;
    enum err code = size_class_find(bytes, &class, err);
    if (code != ERR_OK) return code;
    struct pool_block block = {.bytes = size_class_bytes(class)};
    code = counters_check(counters, block.bytes, err);
    if (code != ERR_OK) return code;
    if (magazines_take(pool->magazines, class, &block.address) ||
        take_cached(pool, class, &block.address)) {
        counter_add(&counters->hits, 1);
        counter_add(&counters->taken_bytes, block.bytes);
    } else {
        code = block_create_making_room(pool, counters, block.bytes, &block, err);
        if (code != ERR_OK) return code;
        counter_add(&counters->misses, 1);
        counter_add(&counters->allocated_bytes, block.bytes);
    }
    counter_add(&counters->acquired_bytes, block.bytes);
    *ret = block;
    return ERR_OK;
}

enum err pool_acquire_all(struct pool *pool, struct pool_counters *counters, const size_t *sizes,
    size_t count, struct pool_block *ret, struct error *err) {
    for (size_t i = 0; i < count; i++) {
        enum err code = pool_acquire(pool, counters, sizes[i], &ret[i], err);
        if (code == ERR_OK) continue;
        struct error release_error;
        while (i-- > 0) {
            if (pool_release(pool, counters, &ret[i], &release_error) == ERR_OK) continue;
            *err = release_error;
            code = err->code;
        }
        return code;
    }
    return ERR_OK;
}

enum err pool_release(struct pool *pool, struct pool_counters *counters, struct pool_block *block,
    struct error *err) {
    if (block->address == 0) return ERR_OK;
    size_t class;
    enum err code = size_class_find(block->bytes, &class, err);
    if (code != ERR_OK) return code;
    INVARIANT(block->bytes == size_class_bytes(class), "a block has the size of its class");
    code = counters_check(counters, block->bytes, err);
    if (code != ERR_OK) return code;

    struct pool_block released = *block;
    *block = (struct pool_block){0};
    counter_add(&counters->released_bytes, released.bytes);
    /* Counts before the push, so that no thread can count the block as taken before it counts as
     * kept. */
    counter_add(&counters->kept_bytes, released.bytes);
    struct error wipe_error; /* ignored: the block is freed, and new blocks are wiped anyway */
    bool is_wiped = block_wipe(pool, &released, &wipe_error) == ERR_OK;
    bool is_over = budget_charged(pool->budget) > budget_limit(pool->budget);
    bool may_keep = is_wiped && !is_over;
    if (may_keep && magazines_put(pool->magazines, class, released.address)) return ERR_OK;
    if (may_keep && ring_push(pool->free_blocks[class], released.address)) return ERR_OK;
    return block_destroy(pool, counters, &released, err);
}

void pool_give_back(struct pool *pool, struct pool_counters *counters, struct pool_block *block) {
    struct error err;
    enum err code = pool_release(pool, counters, block, &err);
    INVARIANT(code == ERR_OK, "memory that was taken is given back once");
}

enum err pool_fill(struct pool *pool, struct pool_counters *counters, size_t bytes, size_t count,
    struct error *err) {
    struct pool_block *blocks = calloc(count, sizeof blocks[0]);
    if (blocks == NULL) return error_no_memory(err, "no memory to fill a pool");
    enum err code = ERR_OK;
    for (size_t i = 0; i < count && code == ERR_OK; i++)
        code = pool_acquire(pool, counters, bytes, &blocks[i], err);
    for (size_t i = 0; i < count; i++) {
        struct error release_error;
        if (pool_release(pool, counters, &blocks[i], &release_error) == ERR_OK) continue;
        if (code == ERR_OK) *err = release_error;
        code = err->code;
    }
    free(blocks);
    return code;
}

enum err pool_clear(struct pool *pool, struct pool_counters *counters, uint64_t *ret_freed_bytes,
    struct error *err) {
    return trim(pool, counters, UINT64_MAX, ret_freed_bytes, err);
}

void pool_destroy(struct pool *pool, struct pool_counters *counters) {
    if (pool == NULL) return;
    bool has_rings = pool->free_blocks[SIZE_CLASS_COUNT - 1] != NULL;
    uint64_t freed_bytes;
    struct error ignored; /* ignored: the budget, which outlives the pool, shows the error */
    if (has_rings) (void)!pool_clear(pool, counters, &freed_bytes, &ignored);
    for (size_t class = 0; class < SIZE_CLASS_COUNT; class ++)
        ring_destroy(pool->free_blocks[class]);
    magazines_destroy(pool->magazines);
    if (pool->wipe_stream != NULL) (void)pool->device->driver->stream_destroy(pool->wipe_stream);
    free(pool);
}

static enum err sum_one(const struct pool_books *books, size_t offset, const char *name,
    uint64_t *ret, struct error *err) {
    for (size_t i = 0; i < books->count; i++) {
        const char *thread = (const char *)&books->counters[i];
        uint64_t value =
            counter_read((const atomic_uint_fast64_t *)(const void *)(thread + offset));
        if (value > UINT64_MAX - *ret) return refuse_wrap(name, *ret, value, err);
        *ret += value;
    }
    return ERR_OK;
}

static enum err sum(const struct pool_books *books, size_t count, size_t offset, const char *name,
    uint64_t *ret, struct error *err) {
    enum err code = ERR_OK;
    *ret = 0;
    for (size_t i = 0; i < count && code == ERR_OK; i++)
        code = sum_one(&books[i], offset, name, ret, err);
    return code;
}

static enum err subtract(
    const char *name, uint64_t in, uint64_t out, uint64_t *ret, struct error *err) {
    if (out > in)
        return error_set(err, ERR_INTERNAL, 0, FIX_BUG,
            "pool counter %s: %" PRIu64 " bytes came in, and %" PRIu64 " went out of them", name,
            in, out);
    *ret = in - out;
    return ERR_OK;
}

enum err pool_usage_sum(
    const struct pool_books *books, size_t count, struct pool_usage *ret, struct error *err) {
    struct pool_usage usage = {0};
    /*
     * Counters of blocks going out are read before those of blocks coming in. A block is counted in
     * before it can be counted out, so for every exit that is read, its entry is read too
     * (tests/model/books.pml).
     */
#define SUM(counter)                                                                               \
    code =                                                                                         \
        sum(books, count, offsetof(struct pool_counters, counter), #counter, &usage.counter, err); \
    if (code != ERR_OK) return code;
    enum err code;
    SUM(released_bytes)
    SUM(taken_bytes)
    SUM(freed_bytes)
    SUM(acquired_bytes)
    SUM(kept_bytes)
    SUM(allocated_bytes)
    SUM(hits)
    SUM(misses)
#undef SUM
    code =
        subtract("live_bytes", usage.acquired_bytes, usage.released_bytes, &usage.live_bytes, err);
    if (code != ERR_OK) return code;
    code = subtract("cached_bytes", usage.kept_bytes, usage.taken_bytes, &usage.cached_bytes, err);
    if (code == ERR_OK) *ret = usage;
    return code;
}
