#include "base/ring.h"

#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>

/*
 * Positions count pushes (tail) and pops (head) for ever; a position's cell is position & mask.
 * `turn` is the position whose push may fill the cell; once filled, that position + 1; once
 * emptied, the position one lap later. A cell has a cache line to itself: neighbours are in use by
 * other threads at the same time.
 */
struct cell {
    alignas(CACHE_LINE_BYTES) atomic_uint_fast64_t turn;
    uint64_t value;
};

/* Producers share the tail, consumers the head, each on its own cache line. */
struct ring {
    alignas(CACHE_LINE_BYTES) uint64_t mask;
    alignas(CACHE_LINE_BYTES) atomic_uint_fast64_t tail;
    alignas(CACHE_LINE_BYTES) atomic_uint_fast64_t head;
    struct cell cells[];
};

struct ring *ring_create(size_t capacity_min) {
    size_t capacity = 2;
    while (capacity < capacity_min) {
        if (capacity > SIZE_MAX / 2 / sizeof(struct cell)) return NULL;
        capacity *= 2;
    }
    struct ring *ring =
        aligned_alloc(CACHE_LINE_BYTES, sizeof(struct ring) + capacity * sizeof(struct cell));
    if (ring == NULL) return NULL;
    ring->mask = capacity - 1;
    atomic_init(&ring->tail, 0);
    atomic_init(&ring->head, 0);
    for (size_t i = 0; i < capacity; i++) atomic_init(&ring->cells[i].turn, i);
    return ring;
}

void ring_destroy(struct ring *ring) {
    free(ring);
}

bool ring_push(struct ring *ring, uint64_t value) {
    /* relaxed: a position is only a ticket; values are handed over through the cell's turn */
    uint64_t at = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    struct cell *cell;
    for (;;) {
        cell = &ring->cells[at & ring->mask];
        /* acquire: pairs with the release in ring_pop(); the last value has been read */
        uint64_t turn = atomic_load_explicit(&cell->turn, memory_order_acquire);
        int64_t ahead = (int64_t)(turn - at);
        if (ahead < 0) return false; /* it still holds the value of the previous lap */
        if (ahead > 0) at = atomic_load_explicit(&ring->tail, memory_order_relaxed);
        else if (atomic_compare_exchange_weak_explicit(
                     &ring->tail, &at, at + 1, memory_order_relaxed, memory_order_relaxed))
            break;
    }
    cell->value = value;
    /* release: pairs with the acquire in ring_pop(); publishes the value */
    atomic_store_explicit(&cell->turn, at + 1, memory_order_release);
    return true;
}

bool ring_pop(struct ring *ring, uint64_t *ret) {
    /* relaxed: as in ring_push() */
    uint64_t at = atomic_load_explicit(&ring->head, memory_order_relaxed);
    struct cell *cell;
    for (;;) {
        cell = &ring->cells[at & ring->mask];
        /* acquire: pairs with the release in ring_push(); the value is there */
        uint64_t turn = atomic_load_explicit(&cell->turn, memory_order_acquire);
        int64_t ahead = (int64_t)(turn - (at + 1));
        if (ahead < 0) return false; /* not filled yet */
        if (ahead > 0) at = atomic_load_explicit(&ring->head, memory_order_relaxed);
        else if (atomic_compare_exchange_weak_explicit(
                     &ring->head, &at, at + 1, memory_order_relaxed, memory_order_relaxed))
            break;
    }
    *ret = cell->value;
    /* release: pairs with the acquire in ring_push(); the cell is free for the next lap */
    atomic_store_explicit(&cell->turn, at + ring->mask + 1, memory_order_release);
    return true;
}

size_t ring_capacity(const struct ring *ring) {
    return (size_t)ring->mask + 1;
}

size_t ring_length(const struct ring *ring) {
    /* relaxed: the two loads are not a snapshot, so impossible results are clamped */
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    int64_t length = (int64_t)(tail - head);
    if (length < 0) return 0;
    return (uint64_t)length <= ring->mask ? (size_t)length : ring_capacity(ring);
}
