#include "gpu/magazines.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/ring.h"
#include "base/thread_number.h"

/* Rows of different threads are two cache lines apart, because processors fetch lines in pairs. */
struct row {
    _Alignas(2 * CACHE_LINE_BYTES)
        atomic_uint_fast64_t places[MAGAZINE_CLASSES][MAGAZINE_PLACES]; /* 0: empty */
};

struct magazines {
    struct row rows[MAGAZINE_ROWS];
};

struct magazines *magazines_create(void) {
    struct magazines *magazines = aligned_alloc(_Alignof(struct magazines), sizeof *magazines);
    if (magazines == NULL) return NULL;
    for (size_t row = 0; row < MAGAZINE_ROWS; row++)
        for (size_t class = 0; class < MAGAZINE_CLASSES; class ++)
            for (size_t i = 0; i < MAGAZINE_PLACES; i++)
                atomic_init(&magazines->rows[row].places[class][i], 0);
    return magazines;
}

void magazines_destroy(struct magazines *magazines) {
    free(magazines);
}

static struct row *own_row(struct magazines *magazines) {
    return &magazines->rows[thread_number() % MAGAZINE_ROWS];
}

bool magazines_put(struct magazines *magazines, size_t class, uint64_t address) {
    if (class >= MAGAZINE_CLASSES) return false;
    atomic_uint_fast64_t *places = own_row(magazines)->places[class];
    for (size_t i = 0; i < MAGAZINE_PLACES; i++) {
        /* relaxed: a full place is only skipped */
        uint_fast64_t empty = atomic_load_explicit(&places[i], memory_order_relaxed);
        /* release: pairs with the acquire in take_from(); publishes what the block holds */
        if (empty == 0 && atomic_compare_exchange_strong_explicit(&places[i], &empty, address,
                              memory_order_release, memory_order_relaxed))
            return true;
    }
    return false;
}

static bool take_from(struct row *row, size_t class, uint64_t *ret) {
    atomic_uint_fast64_t *places = row->places[class];
    for (size_t i = 0; i < MAGAZINE_PLACES; i++) {
        /* relaxed: an empty place is only skipped, without taking its cache line from another
         * thread */
        if (atomic_load_explicit(&places[i], memory_order_relaxed) == 0) continue;
        /* acquire: pairs with the release in magazines_put(). Only one thread gets the address; for
         * others the place is empty (tests/model/magazines.pml). */
        uint64_t address = atomic_exchange_explicit(&places[i], 0, memory_order_acquire);
        if (address == 0) continue;
        *ret = address;
        return true;
    }
    return false;
}

bool magazines_take(struct magazines *magazines, size_t class, uint64_t *ret) {
    return class < MAGAZINE_CLASSES && take_from(own_row(magazines), class, ret);
}

bool magazines_steal(struct magazines *magazines, size_t class, uint64_t *ret) {
    if (class >= MAGAZINE_CLASSES) return false;
    for (size_t row = 0; row < MAGAZINE_ROWS; row++)
        if (take_from(&magazines->rows[row], class, ret)) return true;
    return false;
}
