#include "gpu/stash.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/aligned.h"
#include "base/invariant.h"
#include "base/ring.h"
#include "base/thread_number.h"

/* A place is one word, the item's address with the count in its lower bits, so that both change in
 * one step. 0: it was never used. A mark, with the count 0, is only compared: its item may be gone,
 * and another one be there. */

/* Rows of different threads are two cache lines apart, because processors fetch lines in pairs. */
struct row {
    _Alignas(2 * CACHE_LINE_BYTES) atomic_uintptr_t places[STASH_PLACES];
};

struct stash {
    struct row rows[STASH_ROWS];
};

struct stash *stash_create(void) {
    return aligned_calloc(_Alignof(struct stash), sizeof(struct stash));
}

void stash_destroy(struct stash *stash) {
    free(stash);
}

static size_t place_index(uint64_t name) {
    return name >> 48 & (STASH_PLACES - 1);
}

static atomic_uintptr_t *own_place(struct stash *stash, uint64_t name) {
    return &stash->rows[thread_number() % STASH_ROWS].places[place_index(name)];
}

static unsigned count_of(uintptr_t word) {
    return word & STASH_MAX;
}

static uintptr_t address_of(uintptr_t word) {
    return word & ~(uintptr_t)STASH_MAX;
}

/* acquire: pairs with the release of the same exchange: what was done with a reference that was
 * kept happens before what its taker does. Equal words mean equal references, whichever they are,
 * so it does not matter what the place held in between (tests/model/stash.pml). */
static bool exchange(atomic_uintptr_t *place, uintptr_t *seen, uintptr_t word) {
    return atomic_compare_exchange_strong_explicit(
        place, seen, word, memory_order_acq_rel, memory_order_relaxed);
}

void *stash_take(struct stash *stash, uint64_t name) {
    atomic_uintptr_t *place = own_place(stash, name);
    /* relaxed: what is taken is decided by the exchange */
    uintptr_t seen = atomic_load_explicit(place, memory_order_relaxed);
    if (count_of(seen) == 0 || !exchange(place, &seen, seen - 1)) return NULL;
    return (void *)address_of(seen);
}

unsigned stash_keep(struct stash *stash, uint64_t name, void *item, unsigned count) {
    uintptr_t address = (uintptr_t)item;
    INVARIANT(count_of(address) == 0 && count <= STASH_GROUP, "a place can keep the references");
    atomic_uintptr_t *place = own_place(stash, name);
    uintptr_t seen = atomic_load_explicit(place, memory_order_relaxed); /* as above */
    if (address_of(seen) != address) {
        if (count_of(seen) == 0) (void)exchange(place, &seen, address);
        return count;
    }
    if (count == 0) return 0;
    /* A full place is left half full, so that the next ones find room. */
    unsigned all = count_of(seen) + count, kept = all <= STASH_MAX ? all : STASH_GROUP;
    return exchange(place, &seen, address + kept) ? all - kept : count;
}

unsigned stash_wanted(struct stash *stash, uint64_t name, const void *item) {
    uintptr_t seen = atomic_load_explicit(own_place(stash, name), memory_order_relaxed);
    return seen == (uintptr_t)item ? STASH_GROUP : 0;
}

unsigned stash_recall(struct stash *stash, uint64_t name, const void *item) {
    uintptr_t address = (uintptr_t)item;
    unsigned count = 0;
    for (size_t row = 0; row < STASH_ROWS; row++) {
        atomic_uintptr_t *place = &stash->rows[row].places[place_index(name)];
        uintptr_t seen = atomic_load_explicit(place, memory_order_relaxed); /* as above */
        while (address_of(seen) == address && count_of(seen) > 0)
            if (exchange(place, &seen, 0)) {
                count += count_of(seen);
                break;
            }
    }
    return count;
}
