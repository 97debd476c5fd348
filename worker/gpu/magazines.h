/**
 * Free blocks of small size classes, kept near the thread that returned them: each thread has a few
 * places for each class, so that one that takes and returns blocks shares no cache line with others
 * (Bonwick's magazines). A block in a place belongs to nobody: any thread may take it from there,
 * so none waits for a block that lies in the places of an idle thread.
 *
 * Units: blocks as addresses, which are not 0. Lifetime: magazines_create() to magazines_destroy(),
 * which forgets what is inside. Threads: any; nobody waits. Beyond MAGAZINE_ROWS threads some share
 * their places, which costs time and nothing else.
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

/** False where the calling thread's places of the class are full, or the class has none. What the
 * thread wrote before, the taker sees. */
bool magazines_put(struct magazines *magazines, size_t class, uint64_t address);

/** From the calling thread's places. False, and `ret` untouched, where they are empty. */
bool magazines_take(struct magazines *magazines, size_t class, uint64_t *ret);

/** From any thread's places. False, and `ret` untouched, where all of them were empty. */
bool magazines_steal(struct magazines *magazines, size_t class, uint64_t *ret);

#endif
