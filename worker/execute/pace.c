#include "execute/pace.h"

#include <stddef.h>

enum { PROBES = 8, WEIGHT_OF_NEW = 8 /* 1/8: a spike passes, a change is followed in some jobs */ };

void pace_init(struct pace *pace) {
    for (size_t i = 0; i < PACE_SLOTS; i++) {
        atomic_init(&pace->slots[i].key, 0);
        atomic_init(&pace->slots[i].ns, PACE_UNKNOWN);
    }
}

/* The slot of the key; with `claim` a free one is taken for it. NULL where there is none. */
static atomic_uint_fast64_t *find(struct pace *pace, uint64_t shape_key, int claim) {
    for (size_t i = 0; i < PROBES; i++) {
        size_t index = (shape_key + i) % PACE_SLOTS;
        /* relaxed: a slot's time is a number of its own, nothing else is published with the key */
        uint_fast64_t key = atomic_load_explicit(&pace->slots[index].key, memory_order_relaxed);
        if (key == 0 && claim) /* relaxed: as above; on failure `key` is whoever came first */
            if (atomic_compare_exchange_strong_explicit(&pace->slots[index].key, &key, shape_key,
                    memory_order_relaxed, memory_order_relaxed))
                key = shape_key;
        if (key == shape_key) return &pace->slots[index].ns;
        if (key == 0) return NULL;
    }
    return NULL;
}

uint64_t pace_get(struct pace *pace, uint64_t shape_key) {
    const atomic_uint_fast64_t *ns = find(pace, shape_key, 0);
    /* relaxed: an older average is as good */
    return ns != NULL ? atomic_load_explicit(ns, memory_order_relaxed) : PACE_UNKNOWN;
}

void pace_learn(struct pace *pace, uint64_t shape_key, uint64_t ns) {
    atomic_uint_fast64_t *slot = find(pace, shape_key, 1);
    if (slot == NULL) return;
    if (ns == PACE_UNKNOWN) ns = 1;
    /* relaxed: of two updates at once one may be lost, which is fine for an average */
    uint64_t old = atomic_load_explicit(slot, memory_order_relaxed);
    uint64_t next = ns;
    if (old != PACE_UNKNOWN)
        next = ns > old ? old + (ns - old) / WEIGHT_OF_NEW : old - (old - ns) / WEIGHT_OF_NEW;
    atomic_store_explicit(slot, next > 0 ? next : 1, memory_order_relaxed);
}
