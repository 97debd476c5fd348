/**
 * Which payload leaves a cache first: Greedy-Dual-Size-Frequency (L. Cherkasova, "Improving WWW
 * Proxies Performance with Greedy-Dual-Size-Frequency Caching Policy", HP Laboratories, 1998).
 *
 * An item's weight is its uses times what bringing it back costs, for each byte that it takes, on
 * top of the age that the cache had when it was last used. The item of the least weight leaves, and
 * the cache's age rises to its weight: whatever is not used any more is overtaken sooner or later,
 * the more so as the number of uses that count is bounded.
 *
 * Weights only grow while an item is inside, so a use notes itself and moves nothing; the weight is
 * brought up to date when the item seems to be the next to leave.
 *
 * Units: bytes. Lifetime: items are part of the caller's entries and stay its own. Threads: use and
 * use of one item take turns, and so do all other calls; a use beside them is fine.
 */
#ifndef GPU_EVICTION_H
#define GPU_EVICTION_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct eviction_item {
    size_t bytes;
    atomic_uint_fast64_t uses;
    atomic_uint_fast64_t age; /* the cache's when the item was last used */
    uint64_t weight;          /* as far as it was brought up to date */
    /* While the item is inside. Outside, `next` is the caller's, for lists. */
    struct eviction_item *first_child, *next;
};

/** Zeroed before use; nothing to end. */
struct eviction {
    struct eviction_item *root; /* a pairing heap, the least weight on top */
    atomic_uint_fast64_t age;
};

/** Sets the item up as used once, and puts it inside. */
void eviction_add(struct eviction *eviction, struct eviction_item *item, size_t bytes);

void eviction_use(const struct eviction *eviction, struct eviction_item *item);

/** Takes the next one out; NULL when nothing is inside. */
struct eviction_item *eviction_take(struct eviction *eviction);

/** An item that was taken and cannot leave now goes back inside, as if nothing had happened. */
void eviction_put_back(struct eviction *eviction, struct eviction_item *item);

#endif
