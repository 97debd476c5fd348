#include "execute/pace.h"

#include <stddef.h>

enum { PROBES = 8, WEIGHT_OF_NEW = 8 /* 1/8: a spike passes, a change is followed in some jobs */ };

/*
 * All orders are relaxed: a slot's time is a number of its own, nothing else is published with its
 * key, and an older average is as good.
 */
static uint64_t load(const atomic_uint_fast64_t *number) {
    return atomic_load_explicit(number, memory_order_relaxed);
}

static void store(atomic_uint_fast64_t *number, uint64_t value) {
    atomic_store_explicit(number, value, memory_order_relaxed);
}

void pace_init(struct pace *pace) {
    for (size_t i = 0; i < PACE_SLOTS; i++) {
        atomic_init(&pace->slots[i].key, 0);
        atomic_init(&pace->slots[i].ns, PACE_UNKNOWN);
        atomic_init(&pace->slots[i].seen, 0);
    }
    atomic_init(&pace->lessons, 0);
}

static struct pace_slot *slot_at(struct pace *pace, uint64_t shape_key, size_t probe) {
    return &pace->slots[(shape_key + probe) % PACE_SLOTS];
}

/* NULL where the shape has none. */
static struct pace_slot *find(struct pace *pace, uint64_t shape_key) {
    for (size_t i = 0; i < PROBES; i++) {
        struct pace_slot *slot = slot_at(pace, shape_key, i);
        if (load(&slot->key) == shape_key) return slot;
    }
    return NULL;
}

/* The slot that is free, or was not seen for longest. Of two threads that take one at once the
 * later has it. */
static struct pace_slot *take(struct pace *pace, uint64_t shape_key) {
    struct pace_slot *oldest = slot_at(pace, shape_key, 0);
    for (size_t i = 1; i < PROBES; i++) {
        struct pace_slot *slot = slot_at(pace, shape_key, i);
        if (load(&slot->seen) < load(&oldest->seen)) oldest = slot;
    }
    store(&oldest->ns, PACE_UNKNOWN);
    store(&oldest->key, shape_key);
    return oldest;
}

uint64_t pace_get(struct pace *pace, uint64_t shape_key) {
    const struct pace_slot *slot = find(pace, shape_key);
    return slot != NULL ? load(&slot->ns) : PACE_UNKNOWN;
}

void pace_learn(struct pace *pace, uint64_t shape_key, uint64_t ns) {
    struct pace_slot *slot = find(pace, shape_key);
    if (slot == NULL) slot = take(pace, shape_key);
    if (ns == PACE_UNKNOWN) ns = 1;
    /* Of two updates at once one may be lost, which is fine for an average. */
    uint64_t old = load(&slot->ns), next = ns;
    if (old != PACE_UNKNOWN)
        next = ns > old ? old + (ns - old) / WEIGHT_OF_NEW : old - (old - ns) / WEIGHT_OF_NEW;
    store(&slot->ns, next > 0 ? next : 1);
    store(&slot->seen, atomic_fetch_add_explicit(&pace->lessons, 1, memory_order_relaxed) + 1);
}
