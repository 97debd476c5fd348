/**
 * A count of holders: the last one to let go ends the object. It is the object's first field.
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

/** The caller holds it, once. */
void shared_init(struct shared *shared, void (*end)(struct shared *shared));

/** One holder more, while the caller knows of one. */
void shared_hold(struct shared *shared);

/** One holder less; NULL is fine. */
void shared_release(struct shared *shared);

#endif
