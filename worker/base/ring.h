/**
 * A bounded lock-free queue of 64-bit values: many producers, many consumers, first in, first out.
 *
 * It is Dmitry Vyukov's bounded MPMC queue (1024cores.net): each cell carries a turn that says
 * whose it is, so that a push or a pop is one compare-and-swap and touches one cell.
 *
 * Nobody ever waits. A thread that stops in the middle of its push or pop hides what lies behind
 * its cell until it goes on: then "full" and "empty" are said a little too early, and the caller
 * must be able to live with that (a cache of free blocks can).
 *
 * Lifetime: ring_create() to ring_destroy(). Threads: any.
 */
#ifndef BASE_RING_H
#define BASE_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CACHE_LINE_BYTES = 64 };

struct ring;

/** Room for at least `capacity_min` values: rounded up to a power of two, 2 or more. NULL when
 * memory is short. */
struct ring *ring_create(size_t capacity_min);

/** Nobody may be inside a call. NULL is fine. */
void ring_destroy(struct ring *ring);

/** False, and nothing changed, where it is full. What the pusher wrote before, the popper sees. */
bool ring_push(struct ring *ring, uint64_t value);

/** False, and `ret` untouched, where it is empty. */
bool ring_pop(struct ring *ring, uint64_t *ret);

size_t ring_capacity(const struct ring *ring);

/** How many values are inside; exact while nobody pushes or pops. */
size_t ring_length(const struct ring *ring);

#endif
