#include "base/shared.h"

#include "base/invariant.h"

void shared_init(struct shared *shared, void (*end)(struct shared *shared)) {
    atomic_init(&shared->holders, 1);
    shared->end = end;
}

void shared_hold(struct shared *shared) {
    /* relaxed: the caller can already see the object, through the holder it has */
    size_t before = atomic_fetch_add_explicit(&shared->holders, 1, memory_order_relaxed);
    INVARIANT(before > 0, "an object without holders has ended");
}

void shared_release(struct shared *shared) {
    if (shared == NULL) return;
    /* release and acquire: what every holder did happens before the end */
    size_t before = atomic_fetch_sub_explicit(&shared->holders, 1, memory_order_acq_rel);
    INVARIANT(before > 0, "each holder releases once");
    if (before == 1) shared->end(shared);
}
