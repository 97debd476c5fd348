#include "base/timers.h"

#include <stdlib.h>

#include "base/invariant.h"

struct timer {
    uint64_t due_ns;
    void *item;
};

/* timers[i] is due no later than timers[2i + 1] and timers[2i + 2]. */
struct timers {
    size_t count, capacity;
    struct timer heap[];
};

struct timers *timers_create(size_t capacity) {
    struct timers *timers = calloc(1, sizeof *timers + capacity * sizeof timers->heap[0]);
    if (timers != NULL) timers->capacity = capacity;
    return timers;
}

void timers_destroy(struct timers *timers) {
    free(timers);
}

static void swap(struct timers *timers, size_t a, size_t b) {
    struct timer moved = timers->heap[a];
    timers->heap[a] = timers->heap[b];
    timers->heap[b] = moved;
}

static bool is_before(const struct timers *timers, size_t a, size_t b) {
    return timers->heap[a].due_ns < timers->heap[b].due_ns;
}

static void sift_up(struct timers *timers, size_t at) {
    for (; at > 0 && is_before(timers, at, (at - 1) / 2); at = (at - 1) / 2)
        swap(timers, at, (at - 1) / 2);
}

static void sift_down(struct timers *timers, size_t at) {
    for (;;) {
        size_t first = at, left = 2 * at + 1, right = left + 1;
        if (left < timers->count && is_before(timers, left, first)) first = left;
        if (right < timers->count && is_before(timers, right, first)) first = right;
        if (first == at) return;
        swap(timers, at, first);
        at = first;
    }
}

void timers_add(struct timers *timers, uint64_t due_ns, void *item) {
    INVARIANT(timers->count < timers->capacity, "a heap of timers has room");
    timers->heap[timers->count] = (struct timer){.due_ns = due_ns, .item = item};
    sift_up(timers, timers->count++);
}

uint64_t timers_next_ns(const struct timers *timers) {
    return timers->count > 0 ? timers->heap[0].due_ns : UINT64_MAX;
}

static void *take(struct timers *timers, size_t at) {
    void *item = timers->heap[at].item;
    timers->heap[at] = timers->heap[--timers->count];
    if (at < timers->count) {
        sift_down(timers, at);
        sift_up(timers, at);
    }
    return item;
}

void *timers_take_due(struct timers *timers, uint64_t now_ns) {
    return timers_next_ns(timers) <= now_ns && timers->count > 0 ? take(timers, 0) : NULL;
}

void *timers_take_any(
    struct timers *timers, bool (*is_wanted)(void *context, const void *item), void *context) {
    for (size_t i = 0; i < timers->count; i++)
        if (is_wanted(context, timers->heap[i].item)) return take(timers, i);
    return NULL;
}

size_t timers_count(const struct timers *timers) {
    return timers->count;
}
