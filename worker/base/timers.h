/**
 * Items that wait until they are due: a binary heap of fixed capacity. The caller passes in the
 * time.
 *
 * Units: nanoseconds of clock_ns(). Lifetime: items stay the callers'. Threads: one at a time.
 */
#ifndef BASE_TIMERS_H
#define BASE_TIMERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct timers;

/** NULL when memory is short. */
struct timers *timers_create(size_t capacity);
void timers_destroy(struct timers *timers); /* NULL is fine */

/** There must be room: the caller knows how many items wait. */
void timers_add(struct timers *timers, uint64_t due_ns, void *item);

/** When the first item is due; UINT64_MAX if none waits. */
uint64_t timers_next_ns(const struct timers *timers);

/** Takes the item that was due first; NULL if none is due yet. */
void *timers_take_due(struct timers *timers, uint64_t now_ns);

/** Takes any one item that `is_wanted` accepts, due or not; NULL if there is none. */
void *timers_take_any(
    struct timers *timers, bool (*is_wanted)(void *context, const void *item), void *context);

size_t timers_count(const struct timers *timers);

#endif
