/**
 * Which payload leaves a cache first: S3-FIFO (J. Yang, Y. Zhang, Z. Qiu, Y. Yue and R. Vinayak,
 * "FIFO Queues are All You Need for Cache Eviction", SOSP 2023), by bytes.
 *
 * A newcomer stands on trial. One that is used twice there, or that comes again after it had to
 * leave, joins the members, which have 9/10 of the room; the rest leave in the order in which they
 * came. Members leave in that order, too, but each use, up to 63, is worth one more round. So what
 * is used once takes room from nobody but others on trial, and a member that is used more often
 * than the members are replaced stays.
 *
 * What left, or found no room, is remembered by a fingerprint in a table of fixed size. A step
 * takes constant time: each round past an item uses up one of its uses, or counts against a bound.
 *
 * Units: `charge` is in bytes of the caller's budget. Lifetime: items are part of the caller's
 * entries and stay its own. Threads: use and use of one item take turns, and so do all other calls;
 * a use beside them is fine.
 */
#ifndef GPU_EVICTION_H
#define GPU_EVICTION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EVICTION_GHOSTS = 1 << 16 };

struct eviction_item {
    uint64_t charge;
    uint64_t name; /* a hash of what it is */
    atomic_uint_fast64_t uses;
    bool is_member; /* else on trial */
    /* While the item is inside. Outside, `next` is the caller's, for lists. */
    struct eviction_item *next, *previous;
};

struct eviction_line {
    struct eviction_item *first, *last; /* the first leaves first */
    uint64_t charge;
};

struct eviction {
    uint64_t members_max; /* of their charges */
    struct eviction_line trial, members;
    uint32_t ghosts[EVICTION_GHOSTS]; /* fingerprints, by name; 0: none */
};

/** `budget` is what all charges together may be. */
void eviction_init(struct eviction *eviction, uint64_t budget);

/** Puts an item with `name` and `charge` inside: on trial, unless its name was inside not long ago.
 */
void eviction_add(struct eviction *eviction, struct eviction_item *item);

void eviction_use(struct eviction_item *item);

/** What room is needed for: a newcomer never takes it from a member that was used. */
enum eviction_claim { EVICTION_FOR_NEWCOMER, EVICTION_FOR_KNOWN, EVICTION_FOR_OTHERS };

/** Of something of that name: FOR_KNOWN where it was inside, or found no room, not long ago. */
enum eviction_claim eviction_claim_of(const struct eviction *eviction, uint64_t name);

/** Takes the next one out; NULL when none may leave for this. */
struct eviction_item *eviction_take(struct eviction *eviction, enum eviction_claim claim);

/** An item that was taken and cannot leave now goes back inside, behind the others. */
void eviction_put_back(struct eviction *eviction, struct eviction_item *item);

/** A newcomer found no room: should it come again, it is known. */
void eviction_remember(struct eviction *eviction, uint64_t name);

#endif
