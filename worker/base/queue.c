#include "base/queue.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/condition.h"
#include "base/invariant.h"
#include "base/pulse.h"

struct queue {
    pthread_mutex_t lock;
    pthread_cond_t has_item;
    pthread_cond_t has_room;
    bool closed;
    bool is_waking; /* a waiter was signalled, and nothing has been taken since */
    size_t producers_waiting;
    size_t capacity;
    size_t head; /* index of the oldest item */
    size_t length;
    void *items[];
};

struct queue *queue_create(size_t capacity) {
    struct queue *queue = calloc(1, sizeof *queue + capacity * sizeof queue->items[0]);
    if (queue == NULL) return NULL;
    queue->capacity = capacity;
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->has_item, NULL);
    pthread_cond_init(&queue->has_room, NULL);
    return queue;
}

void queue_destroy(struct queue *queue) {
    if (queue == NULL) return;
    pthread_cond_destroy(&queue->has_room);
    pthread_cond_destroy(&queue->has_item);
    pthread_mutex_destroy(&queue->lock);
    free(queue);
}

/*
 * Wakes one consumer, unless one is on its way already: that one takes all that is pushed until it
 * arrives, and wakes the next if it leaves something. A wake-up is a system call, so one is paid
 * for each batch.
 */
static void wake_consumer(struct queue *queue) {
    if (queue->is_waking) return;
    queue->is_waking = true;
    pthread_cond_signal(&queue->has_item);
}

/* False once the queue is closed. */
static bool wait_for_room(struct queue *queue) {
    while (queue->length == queue->capacity && !queue->closed) {
        queue->producers_waiting++;
        pthread_cond_wait(&queue->has_room, &queue->lock);
        queue->producers_waiting--;
    }
    return !queue->closed;
}

static void append(struct queue *queue, void *item) {
    queue->items[(queue->head + queue->length) % queue->capacity] = item;
    queue->length++;
    wake_consumer(queue);
}

size_t queue_push_all(struct queue *queue, void *const *items, size_t count) {
    size_t taken = 0;
    pthread_mutex_lock(&queue->lock);
    for (; taken < count && wait_for_room(queue); taken++) append(queue, items[taken]);
    pthread_mutex_unlock(&queue->lock);
    return taken;
}

bool queue_push(struct queue *queue, void *item) {
    return queue_push_all(queue, &item, 1) == 1;
}

void queue_must_push_all(struct queue *queue, void *const *items, size_t count) {
    pthread_mutex_lock(&queue->lock);
    INVARIANT(!queue->closed, "a queue is closed after the last push");
    INVARIANT(
        count <= queue->capacity - queue->length, "a queue has room for all items there can be");
    for (size_t i = 0; i < count; i++) append(queue, items[i]);
    pthread_mutex_unlock(&queue->lock);
}

void queue_must_push(struct queue *queue, void *item) {
    queue_must_push_all(queue, &item, 1);
}

/* Waits for an item; false when the time is up or the queue is closed and empty. */
static bool wait_for_item(struct queue *queue, int timeout_ms) {
    uint64_t until_ns = timeout_ms < 0 ? UINT64_MAX : clock_ns_in((uint64_t)timeout_ms);
    bool is_in_time = true;
    while (queue->length == 0 && !queue->closed && is_in_time)
        is_in_time = condition_wait_until(&queue->has_item, &queue->lock, until_ns);
    return queue->length > 0;
}

size_t queue_pop(struct queue *queue, void **items, size_t max, int timeout_ms) {
    size_t count = 0;
    pulse_idle();
    pthread_mutex_lock(&queue->lock);
    if (wait_for_item(queue, timeout_ms)) {
        queue->is_waking = false;
        for (; queue->length > 0 && count < max; queue->length--) {
            items[count++] = queue->items[queue->head];
            queue->head = (queue->head + 1) % queue->capacity;
        }
        if (queue->length > 0) wake_consumer(queue);
        if (queue->producers_waiting > 0) pthread_cond_broadcast(&queue->has_room);
    }
    pthread_mutex_unlock(&queue->lock);
    if (count > 0) pulse_busy();
    return count;
}

void queue_wait(struct queue *queue, int timeout_ms) {
    pulse_idle();
    pthread_mutex_lock(&queue->lock);
    (void)wait_for_item(queue, timeout_ms);
    pthread_mutex_unlock(&queue->lock);
}

bool queue_is_empty(struct queue *queue) {
    pthread_mutex_lock(&queue->lock);
    bool is_empty = queue->length == 0;
    pthread_mutex_unlock(&queue->lock);
    return is_empty;
}

void queue_close(struct queue *queue) {
    pthread_mutex_lock(&queue->lock);
    queue->closed = true;
    pthread_cond_broadcast(&queue->has_item);
    pthread_cond_broadcast(&queue->has_room);
    pthread_mutex_unlock(&queue->lock);
}

bool queue_is_closed(struct queue *queue) {
    pthread_mutex_lock(&queue->lock);
    bool closed = queue->closed;
    pthread_mutex_unlock(&queue->lock);
    return closed;
}
