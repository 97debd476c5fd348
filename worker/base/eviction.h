/**
 * Decides which payload leaves a cache first: S3-FIFO (J. Yang, Y. Zhang, Z. Qiu, Y. Yue and R.
 * Vinayak, "FIFO Queues are All You Need for Cache Eviction", SOSP 2023), by bytes.
 *
 * A new item is on trial. If it is used twice during its trial, or added again after it had to
 * leave, it joins the members, which have 9/10 of the room. The others leave in the order in which
 * they were added. Members leave in that order too, but each use, up to 63, gives a member another
 * round. So an item that is used once takes room only from other items on trial, and a member that
 * is used more often than the members are replaced stays.
 *
 * Items that left, or found no room, are remembered by fingerprints in a table of fixed size. A
 * step takes constant time: passing an item costs one of its uses, or counts against a bound.
 *
 * Units: `charge` is in bytes of the caller's budget. Lifetime: items are part of the caller's
 * entries. Threads: eviction_use() may run at the same time as other calls, and as itself: of two
 * uses of an item at the same time one may not count. All other calls one at a time.
 */
#ifndef BASE_EVICTION_H
#define BASE_EVICTION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EVICTION_GHOSTS = 1 << 16 };

struct eviction_item {
    uint64_t charge;
    uint64_t name; /* a hash of what it holds */
    atomic_uint_fast64_t uses;
    bool is_member; /* otherwise it is on trial */
    /* Used while the item is in the cache. Otherwise the caller may use `next` for lists. */
    struct eviction_item *next, *previous;
};

struct eviction_line {
    struct eviction_item *first, *last; /* `first` leaves first */
    uint64_t charge;
};

struct eviction {
    uint64_t members_max; /* of their charges */
    struct eviction_line trial, members;
    uint32_t ghosts[EVICTION_GHOSTS]; /* fingerprints, by name; 0: none */
};

/** `budget` is the limit for the sum of all charges. */
void eviction_init(struct eviction *eviction, uint64_t budget);

/** Adds an item with `name` and `charge`: on trial, unless its name was in the cache recently. */
void eviction_add(struct eviction *eviction, struct eviction_item *item);

void eviction_use(struct eviction_item *item);

/** What room is needed for. A new item never takes it from a member that was used. */
enum eviction_claim { EVICTION_FOR_NEWCOMER, EVICTION_FOR_KNOWN, EVICTION_FOR_OTHERS };

/**
 * The claim of an item with this name: FOR_KNOWN if it was in the cache, or found no room,
 * recently.
 */
enum eviction_claim eviction_claim_of(const struct eviction *eviction, uint64_t name);

/** Whether eviction_take() might find one; an estimate, which takes nothing. */
bool eviction_may_take(const struct eviction *eviction, enum eviction_claim claim);

/** Takes out the next item to leave; NULL if none may leave for this claim. */
struct eviction_item *eviction_take(struct eviction *eviction, enum eviction_claim claim);

/** Puts an item back behind the others, because it cannot leave now. */
void eviction_put_back(struct eviction *eviction, struct eviction_item *item);

/** Takes out an item that leaves for a reason of its own; it is not remembered. */
void eviction_remove(struct eviction *eviction, struct eviction_item *item);

/** Remembers a new item that found no room, so that it is known when it is added again. */
void eviction_remember(struct eviction *eviction, uint64_t name);

#endif
