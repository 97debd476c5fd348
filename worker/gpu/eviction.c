#include "gpu/eviction.h"

/*
 * What a miss costs beside moving the payload (another thread, opening a file, making memory, calls
 * of the driver) is worth the time in which so many bytes are hashed and copied.
 */
static const uint64_t MISS_BYTES = 512 << 10;

static const uint64_t USES_MAX = 256; /* so that no favourite is one for ever */
static const uint64_t SCALE = 1024;   /* fractions of a weight */

/*
 * All orders are relaxed: a count that is read a little too early makes a weight a little too
 * small, and nothing else is handed over with it.
 */
static uint64_t load(const atomic_uint_fast64_t *number) {
    return atomic_load_explicit(number, memory_order_relaxed);
}

static void store(atomic_uint_fast64_t *number, uint64_t value) {
    atomic_store_explicit(number, value, memory_order_relaxed);
}

static uint64_t weight_now(const struct eviction_item *item) {
    uint64_t bytes = item->bytes > 0 ? item->bytes : 1;
    return load(&item->age) + load(&item->uses) * ((MISS_BYTES + bytes) * SCALE / bytes);
}

static struct eviction_item *meld(struct eviction_item *a, struct eviction_item *b) {
    if (a == NULL) return b;
    if (b == NULL) return a;
    struct eviction_item *top = a->weight <= b->weight ? a : b, *below = top == a ? b : a;
    below->next = top->first_child;
    top->first_child = below;
    return top;
}

static void push(struct eviction *eviction, struct eviction_item *item) {
    item->first_child = item->next = NULL;
    eviction->root = meld(eviction->root, item);
}

/* Melds the children two by two, then the pairs into one: what makes a pairing heap quick. */
static struct eviction_item *meld_children(struct eviction_item *children) {
    struct eviction_item *pairs = NULL, *root = NULL;
    while (children != NULL) {
        struct eviction_item *a = children, *b = a->next;
        children = b != NULL ? b->next : NULL;
        struct eviction_item *pair = meld(a, b);
        pair->next = pairs;
        pairs = pair;
    }
    while (pairs != NULL) {
        struct eviction_item *rest = pairs->next;
        root = meld(root, pairs);
        pairs = rest;
    }
    return root;
}

static struct eviction_item *pop(struct eviction *eviction) {
    struct eviction_item *item = eviction->root;
    if (item != NULL) eviction->root = meld_children(item->first_child);
    return item;
}

void eviction_add(struct eviction *eviction, struct eviction_item *item, size_t bytes) {
    item->bytes = bytes;
    store(&item->uses, 1);
    store(&item->age, load(&eviction->age));
    item->weight = weight_now(item);
    push(eviction, item);
}

void eviction_use(const struct eviction *eviction, struct eviction_item *item) {
    uint64_t uses = load(&item->uses);
    if (uses < USES_MAX) store(&item->uses, uses + 1);
    store(&item->age, load(&eviction->age));
}

struct eviction_item *eviction_take(struct eviction *eviction) {
    struct eviction_item *item;
    while ((item = pop(eviction)) != NULL) {
        uint64_t weight = weight_now(item);
        if (weight <= item->weight) break;
        item->weight = weight;
        push(eviction, item);
    }
    if (item != NULL) store(&eviction->age, item->weight);
    return item;
}

void eviction_put_back(struct eviction *eviction, struct eviction_item *item) {
    push(eviction, item);
}
