#include "gpu/magazines.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/aligned.h"
#include "base/ring.h"
#include "base/thread_number.h"

/*
 * A thread fills the places of a class from the first on and empties them from the last on, and
 * `used` says how many are full. Others may have taken blocks meanwhile, so that is only a hint.
 *
 * Rows of different threads are at least two unused cache lines apart, because processors fetch
 * lines in pairs, and the next one ahead.
 */
struct row {
    _Alignas(4 * CACHE_LINE_BYTES) atomic_uint_fast8_t used[MAGAZINE_CLASSES];
    _Alignas(CACHE_LINE_BYTES)
        atomic_uint_fast64_t places[MAGAZINE_CLASSES][MAGAZINE_PLACES]; /* 0: empty */
};
_Static_assert(
    sizeof(struct row) >= (1 + MAGAZINE_CLASSES + 2) * CACHE_LINE_BYTES, "two lines are unused");

struct magazines {
    struct row rows[MAGAZINE_ROWS];
};

struct magazines *magazines_create(void) {
    return aligned_calloc(_Alignof(struct magazines), sizeof(struct magazines));
}

void magazines_destroy(struct magazines *magazines) {
    free(magazines);
}

static struct row *own_row(struct magazines *magazines) {
    return &magazines->rows[thread_number() % MAGAZINE_ROWS];
}

/* relaxed, here and below: a wrong hint only costs a longer search */
static size_t used_of(const struct row *row, size_t class) {
    return atomic_load_explicit(&row->used[class], memory_order_relaxed);
}

static void set_used(struct row *row, size_t class, size_t used) {
    atomic_store_explicit(&row->used[class], (uint_fast8_t)used, memory_order_relaxed);
}

static bool put_at(atomic_uint_fast64_t *place, uint64_t address) {
    /* relaxed: a full place is only skipped */
    uint_fast64_t empty = atomic_load_explicit(place, memory_order_relaxed);
    /* release: pairs with the acquire in take_at(); publishes what the block holds */
    return empty == 0 && atomic_compare_exchange_strong_explicit(
                             place, &empty, address, memory_order_release, memory_order_relaxed);
}

static bool take_at(atomic_uint_fast64_t *place, uint64_t *ret) {
    /* relaxed: an empty place is only skipped, without taking its cache line from another thread */
    if (atomic_load_explicit(place, memory_order_relaxed) == 0) return false;
    /* acquire: pairs with the release in put_at(). Only one thread gets the address; for others
     * the place is empty (tests/model/magazines.pml). */
    uint64_t address = atomic_exchange_explicit(place, 0, memory_order_acquire);
    if (address == 0) return false;
    *ret = address;
    return true;
}

bool magazines_put(struct magazines *magazines, size_t class, uint64_t address) {
    if (class >= MAGAZINE_CLASSES) return false;
    struct row *row = own_row(magazines);
    size_t at = used_of(row, class);
    bool is_put = at < MAGAZINE_PLACES && put_at(&row->places[class][at], address);
    if (!is_put)
        for (at = 0; at < MAGAZINE_PLACES; at++)
            if ((is_put = put_at(&row->places[class][at], address))) break;
    if (is_put) set_used(row, class, at + 1);
    return is_put;
}

/* Which place it took from; MAGAZINE_PLACES: all are empty. */
static size_t take_last(struct row *row, size_t class, uint64_t *ret) {
    for (size_t at = MAGAZINE_PLACES; at-- > 0;)
        if (take_at(&row->places[class][at], ret)) return at;
    return MAGAZINE_PLACES;
}

bool magazines_take(struct magazines *magazines, size_t class, uint64_t *ret) {
    if (class >= MAGAZINE_CLASSES) return false;
    struct row *row = own_row(magazines);
    size_t used = used_of(row, class), at = used - 1;
    if (used == 0 || !take_at(&row->places[class][at], ret)) at = take_last(row, class, ret);
    bool is_taken = at < MAGAZINE_PLACES;
    set_used(row, class, is_taken ? at : 0);
    return is_taken;
}

bool magazines_steal(struct magazines *magazines, size_t class, uint64_t *ret) {
    if (class >= MAGAZINE_CLASSES) return false;
    for (size_t row = 0; row < MAGAZINE_ROWS; row++)
        if (take_last(&magazines->rows[row], class, ret) < MAGAZINE_PLACES) return true;
    return false;
}
