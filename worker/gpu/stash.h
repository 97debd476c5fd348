/**
 * References that each thread keeps for later, so that threads which use the same item all the time
 * do not write to one cache line for each use. A thread has a place for each of STASH_PLACES
 * names, which others share. What it keeps are references like any others: they are counted where
 * the item counts its references, and the item stays. So whoever wants an item to go takes back
 * what all threads keep for it, stash_recall().
 *
 * A place is marked for an item before it keeps anything for it. So an item that a thread uses only
 * once leaves nothing behind there.
 *
 * Units: references. Lifetime: from stash_create() to stash_destroy(), which forgets what is
 * kept. Items are aligned to STASH_ALIGNMENT bytes. Threads: any; no call waits. If there are more
 * than STASH_ROWS threads, some share their places, which only costs time.
 */
#ifndef GPU_STASH_H
#define GPU_STASH_H

#include <stdint.h>

enum {
    STASH_ROWS = 64,
    STASH_PLACES = 64, /* of a thread */
    STASH_ALIGNMENT = 64,
    STASH_MAX = STASH_ALIGNMENT - 1, /* in a place */
    STASH_GROUP = 32                 /* how many to take at once for a place that is empty */
};

struct stash;

/** NULL when memory is short. */
struct stash *stash_create(void);
void stash_destroy(struct stash *stash); /* NULL is fine */

/**
 * Takes one reference from the calling thread's place for `name`: to the item, which may have
 * another name. NULL: it keeps none.
 */
void *stash_take(struct stash *stash, uint64_t name);

/**
 * Keeps references to `item` that the caller has, or marks the place for it. Returns how many of
 * them the caller is to release. The others are not the caller's any more, so unless it has another
 * one the item may be gone.
 */
unsigned stash_keep(struct stash *stash, uint64_t name, void *item, unsigned count);

/** STASH_GROUP if the calling thread's place is marked for this item and keeps nothing; else 0. */
unsigned stash_wanted(struct stash *stash, uint64_t name, const void *item);

/** Takes back all references to `item` that threads keep, and returns how many they are. */
unsigned stash_recall(struct stash *stash, uint64_t name, const void *item);

#endif
