/**
 * A bounded queue between two stages: many producers, many consumers, first in, first out.
 *
 * A consumer takes all that is there in one step, so it takes the lock once for a batch, not once
 * for each job. Units: items, none of them NULL. Lifetime: items stay the callers'. Threads: any.
 */
#ifndef BASE_QUEUE_H
#define BASE_QUEUE_H

#include "base/error.h"

struct queue;

/** NULL when memory is short. */
struct queue *queue_create(size_t capacity);

/** The queue must be empty, or its items owned elsewhere. NULL is fine. */
void queue_destroy(struct queue *queue);

/** Waits for room. False, and the item not taken, once the queue is closed. */
MUST_CHECK bool queue_push(struct queue *queue, void *item);

/** As queue_push(), for several, in order, under one lock. Returns how many were taken: fewer than
 * `count` once the queue is closed. */
MUST_CHECK size_t queue_push_all(struct queue *queue, void *const *items, size_t count);

/**
 * The same for a queue that has room for all items there can be, and that is closed after the last
 * push. It never waits; a full queue is a bug.
 */
void queue_must_push(struct queue *queue, void *item);
void queue_must_push_all(struct queue *queue, void *const *items, size_t count);

/**
 * Takes up to `max` items, waiting up to `timeout_ms` (-1: for ever) for the first. Returns how
 * many; 0: the time is up, or the queue is closed and empty.
 */
size_t queue_pop(struct queue *queue, void **items, size_t max, int timeout_ms);

/** Waits up to `timeout_ms` until the queue has an item or is closed, and takes nothing. */
void queue_wait(struct queue *queue, int timeout_ms);

bool queue_is_empty(struct queue *queue);

/** No more pushes; what is inside can still be popped. Wakes all waiters. */
void queue_close(struct queue *queue);
bool queue_is_closed(struct queue *queue);

#endif
