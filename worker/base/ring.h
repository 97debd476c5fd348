/**
 * A bounded lock-free queue of 64-bit values: many producers, many consumers, first in, first out.
 *
 * This is Dmitry Vyukov's bounded MPMC queue (1024cores.net): each cell has a turn, which says
 * which push or pop may use it next. A push or a pop is one compare-and-swap and touches one cell.
 *
 * No call ever waits. If a thread stops in the middle of a push or pop, the cells behind its own
 * are hidden until it goes on. Calls may then report "full" or "empty" too early, which the caller
 * must be able to tolerate (a cache of free blocks can).
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

/** No other call may be under way. NULL is fine. */
void ring_destroy(struct ring *ring);

/**
 * False, and nothing is changed, if it is full. What the pushing thread wrote before is visible to
 * the thread that pops the value.
 */
bool ring_push(struct ring *ring, uint64_t value);

/** False, and `ret` untouched, if it is empty. */
bool ring_pop(struct ring *ring, uint64_t *ret);

size_t ring_capacity(const struct ring *ring);

/** How many values are inside; exact only while no push or pop is under way. */
size_t ring_length(const struct ring *ring);

#endif
