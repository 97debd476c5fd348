/**
 * Free blocks of small size classes, kept near the thread that returned them. Each thread has a few
 * places for each class, so that a thread that takes and returns blocks shares no cache line with
 * others (Bonwick's magazines). Any thread may take a block from any place, so no block is out of
 * reach in the places of an idle thread.
 *
 * Units: blocks as addresses, which are not 0. Lifetime: from magazines_create() to
 * magazines_destroy(), which forgets the blocks inside. Threads: any; no call waits. If there are
 * more than MAGAZINE_ROWS threads, some share their places, which only costs time.
 */
#ifndef GPU_MAGAZINES_H
#define GPU_MAGAZINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MAGAZINE_ROWS = 64,
    MAGAZINE_PLACES = 8, /* of a thread, for each class */
    MAGAZINE_CLASSES = 9 /* 256 bytes to 64 KiB (gpu/size_class.h); larger ones have no places */
};

struct magazines;

/** NULL when memory is short. */
struct magazines *magazines_create(void);
void magazines_destroy(struct magazines *magazines); /* NULL is fine */

/**
 * Puts a block into the calling thread's places. False if these are full, or the class has none.
 * What the thread wrote before is visible to the thread that takes the block.
 */
bool magazines_put(struct magazines *magazines, size_t class, uint64_t address);

/**
 * Takes a block from the calling thread's places. False, and `ret` untouched, if they are empty.
 */
bool magazines_take(struct magazines *magazines, size_t class, uint64_t *ret);

/** Takes a block from any thread's places. False, and `ret` untouched, if all were empty. */
bool magazines_steal(struct magazines *magazines, size_t class, uint64_t *ret);

#endif
