/**
 * References that each thread keeps to spare, so that threads which use the same item all the time
 * do not write to one cache line for each use. A thread has a place for each of SPARES_PLACES
 * names, which others share. What it keeps are references like any others: they are counted where
 * the item counts its references, and the item stays. So whoever wants an item to go takes back
 * what all threads keep for it, spares_recall().
 *
 * A place is marked for an item before it keeps anything for it. So an item that a thread uses only
 * once leaves nothing behind there.
 *
 * Units: references. Lifetime: from spares_create() to spares_destroy(), which forgets what is
 * kept. Items are aligned to SPARES_ALIGNMENT bytes. Threads: any; no call waits. If there are more
 * than SPARES_ROWS threads, some share their places, which only costs time.
 */
#ifndef GPU_SPARES_H
#define GPU_SPARES_H

#include <stdint.h>

enum {
    SPARES_ROWS = 64,
    SPARES_PLACES = 64, /* of a thread */
    SPARES_ALIGNMENT = 64,
    SPARES_MAX = SPARES_ALIGNMENT - 1, /* in a place */
    SPARES_GROUP = 32                  /* how many to take at once for a place that is empty */
};

struct spares;

/** NULL when memory is short. */
struct spares *spares_create(void);
void spares_destroy(struct spares *spares); /* NULL is fine */

/**
 * Takes one reference from the calling thread's place for `name`: to the item, which may have
 * another name. NULL: it keeps none.
 */
void *spares_take(struct spares *spares, uint64_t name);

/**
 * Keeps references to `item` that the caller has, or marks the place for it. Returns how many of
 * them the caller is to release. The others are not the caller's any more, so unless it has another
 * one the item may be gone.
 */
unsigned spares_keep(struct spares *spares, uint64_t name, void *item, unsigned count);

/** SPARES_GROUP if the calling thread's place is marked for this item and keeps nothing; else 0. */
unsigned spares_wanted(struct spares *spares, uint64_t name, const void *item);

/** Takes back all references to `item` that threads keep, and returns how many they are. */
unsigned spares_recall(struct spares *spares, uint64_t name, const void *item);

#endif
