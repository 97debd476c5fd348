#include "base/shared.h"

#include "base/invariant.h"

void shared_init(struct shared *shared, void (*end)(struct shared *shared)) {
    atomic_init(&shared->holders, 1);
    shared->end = end;
}

void shared_hold_many(struct shared *shared, size_t holders) {
    /* relaxed: the caller can already see the object, through the holder it has */
    size_t before = atomic_fetch_add_explicit(&shared->holders, holders, memory_order_relaxed);
    INVARIANT(before > 0, "an object without holders has ended");
}

void shared_hold(struct shared *shared) {
    shared_hold_many(shared, 1);
}

void shared_release_many(struct shared *shared, size_t holders) {
    if (shared == NULL || holders == 0) return;
    /* release and acquire: what every holder did happens before the end */
    size_t before = atomic_fetch_sub_explicit(&shared->holders, holders, memory_order_acq_rel);
    INVARIANT(before >= holders, "each holder releases once");
    if (before == holders) shared->end(shared);
}

void shared_release(struct shared *shared) {
    shared_release_many(shared, 1);
}
