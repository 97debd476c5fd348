/**
 * A reference count: the last holder to release the object ends it. It must be the object's first
 * field.
 *
 * Threads: any.
 */
#ifndef BASE_SHARED_H
#define BASE_SHARED_H

#include <stdatomic.h>
#include <stddef.h>

struct shared {
    atomic_size_t holders;
    void (*end)(struct shared *shared); /* called once, on the thread of the last holder */
};

/** Starts with one holder, the caller. */
void shared_init(struct shared *shared, void (*end)(struct shared *shared));

/** Adds holders. The object must have one already. */
void shared_hold_many(struct shared *shared, size_t holders);
void shared_hold(struct shared *shared);

/** Removes holders. NULL is fine. */
void shared_release_many(struct shared *shared, size_t holders);
void shared_release(struct shared *shared);

#endif
