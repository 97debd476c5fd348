#include "batch/durations.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    PROBES = 32,    /* of 10,000 signatures each has a slot */
    WEIGHT = 8,     /* 1/8: a spike passes, a change is followed in some batches */
    NEW = 8,        /* lessons in which what was measured cold gives way at once, */
    NEW_WEIGHT = 2, /* by 1/2 */
    SPIKE = 2,      /* more than so many times the average counts as that */
    TRY_AGAIN = 64, /* batches after which a count that was too slow is tried again */
    LONGEST = 4     /* times one job, of a batch whose jobs are cheaper together */
};

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

static uint64_t at_most(uint64_t value, uint64_t most) {
    return value < most ? value : most;
}

static void forget(struct durations_slot *slot) {
    for (int level = 0; level < DURATIONS_LEVELS; level++)
        store(&slot->ns[level], DURATIONS_UNKNOWN);
}

static size_t place_of(uint64_t signature, size_t probe) {
    return (signature + probe) % DURATIONS_SLOTS;
}

/* NULL where the signature has none. */
static struct durations_slot *find(struct durations *durations, uint64_t signature) {
    for (size_t i = 0; i < PROBES; i++) {
        size_t place = place_of(signature, i);
        if (load(&durations->keys[place]) == signature) return &durations->slots[place];
    }
    return NULL;
}

/* The slot that is free, or was not seen for longest. Of two threads that take one at once the
 * later has it. */
static struct durations_slot *take(struct durations *durations, uint64_t signature) {
    size_t oldest = place_of(signature, 0);
    for (size_t i = 1; i < PROBES; i++) {
        size_t place = place_of(signature, i);
        if (load(&durations->slots[place].seen) < load(&durations->slots[oldest].seen))
            oldest = place;
    }
    struct durations_slot *slot = &durations->slots[oldest];
    forget(slot);
    store(&slot->own_lessons, 0);
    store(&durations->keys[oldest], signature);
    return slot;
}

static int level_of(uint32_t count) {
    int level = 0;
    while (level + 1 < DURATIONS_LEVELS && count >> (level + 1) > 0) level++;
    return level;
}

/* The next known level from `level` on, downwards or upwards; -1: none. */
static int known_from(const struct durations_slot *slot, int level, int step) {
    for (; level >= 0 && level < DURATIONS_LEVELS; level += step)
        if (load(&slot->ns[level]) != DURATIONS_UNKNOWN) return level;
    return -1;
}

uint64_t durations_expect(struct durations *durations, uint64_t signature, uint32_t count) {
    const struct durations_slot *slot = find(durations, signature);
    if (slot == NULL) return DURATIONS_UNKNOWN;
    int level = level_of(count), below = known_from(slot, level, -1);
    int above = known_from(slot, level, 1);
    uint64_t most = above >= 0 ? load(&slot->ns[above]) : UINT64_MAX;
    if (below == level || below < 0) return above >= 0 ? most : DURATIONS_UNKNOWN;
    uint64_t in_proportion = (load(&slot->ns[below]) >> below) * count;
    return at_most(in_proportion > 0 ? in_proportion : 1, most);
}

/* What a batch may take for each job to be a fifth cheaper than with half as many, and so on. */
static uint64_t worth(uint64_t ns, int doublings) {
    for (int i = 0; i < doublings; i++) ns += ns / 5 * 3;
    return ns;
}

uint32_t durations_allow(
    struct durations *durations, uint64_t signature, uint64_t span_ns, uint32_t at_once) {
    const struct durations_slot *slot = find(durations, signature);
    uint64_t one = durations_expect(durations, signature, 1);
    if (slot == NULL || one == DURATIONS_UNKNOWN) return 1;
    uint64_t bound = one + one / 4 > span_ns ? one + one / 4 : span_ns;
    uint64_t good_ns = one;
    int good = 0, bad = DURATIONS_LEVELS; /* bad: the first level above that takes too long */
    int hopeless = DURATIONS_LEVELS;      /* from here on nothing is tried */
    for (int level = 1; level < hopeless; level++) {
        uint64_t ns = load(&slot->ns[level]);
        if (ns == DURATIONS_UNKNOWN) continue;
        if (ns > bound && ns > LONGEST * one) hopeless = level;
        if (level < hopeless && (ns <= bound || ns <= worth(good_ns, level - good))) {
            good = level;
            good_ns = ns;
            bad = DURATIONS_LEVELS;
        } else if (bad == DURATIONS_LEVELS) {
            bad = level;
        }
    }
    uint64_t count = (uint64_t)2 << good, in_span = (bound / good_ns) << good;
    if (in_span > count) count = in_span;
    count = at_most(count, (uint64_t)1 << (bad - 1));
    int there = level_of(at_once);
    bool is_untried = there < hopeless && load(&slot->ns[there]) == DURATIONS_UNKNOWN;
    return (uint32_t)(is_untried && at_once > count ? at_once : count);
}

/* What of `ns` is the batch's own: as near to what it was as the others beside it allow. */
static uint64_t own_share(
    const struct durations_slot *slot, int level, uint64_t ns, uint32_t beside) {
    int nearest = known_from(slot, level, -1);
    if (nearest < 0) return ns;
    uint64_t known = load(&slot->ns[nearest]), least = ns / (beside + 1);
    if (known < least) return least;
    return at_most(known, ns);
}

/* More jobs that took less are of a time when all took less. */
static void forget_outrun(struct durations_slot *slot, int level) {
    uint64_t ns = load(&slot->ns[level]);
    for (int above = level + 1; above < DURATIONS_LEVELS; above++) {
        uint64_t more_ns = load(&slot->ns[above]);
        if (more_ns + more_ns / 4 < ns) store(&slot->ns[above], DURATIONS_UNKNOWN);
    }
}

static void try_again(struct durations_slot *slot, int level) {
    uint64_t ns = load(&slot->ns[level]);
    for (int above = level + 1; above < DURATIONS_LEVELS; above++)
        if (load(&slot->ns[above]) > ns + ns / 4) store(&slot->ns[above], DURATIONS_UNKNOWN);
}

static uint64_t average(uint64_t old, uint64_t ns, bool is_new) {
    if (old == DURATIONS_UNKNOWN) return ns;
    if (ns > old) return old + (at_most(ns, SPIKE * old) - old) / WEIGHT;
    return old - (old - ns) / (is_new ? NEW_WEIGHT : WEIGHT);
}

void durations_learn(
    struct durations *durations, uint64_t signature, uint32_t count, uint64_t ns, uint32_t beside) {
    struct durations_slot *slot = find(durations, signature);
    if (slot == NULL) slot = take(durations, signature);
    uint64_t lesson = atomic_fetch_add_explicit(&slot->own_lessons, 1, memory_order_relaxed);
    if (lesson == 0) forget(slot);
    int level = level_of(count);
    /* Of two updates at once one may be lost, which is fine for an average. */
    uint64_t own = own_share(slot, level, ns, beside);
    uint64_t next = average(load(&slot->ns[level]), own, lesson < NEW);
    if (next == DURATIONS_UNKNOWN) next = 1;
    store(&slot->ns[level], next);
    /* Fewer jobs take no longer, but for what times vary by: else they would follow the least of
     * all averages, beside which each other one is slow. */
    uint64_t most = next + next / 4;
    for (int below = 0; below < level; below++)
        if (load(&slot->ns[below]) > most) store(&slot->ns[below], most);
    forget_outrun(slot, level);
    if (lesson % TRY_AGAIN == TRY_AGAIN - 1) try_again(slot, level);
    store(&slot->seen, atomic_fetch_add_explicit(&durations->lessons, 1, memory_order_relaxed) + 1);
}

void durations_guess(struct durations *durations, uint64_t signature, uint64_t ns) {
    if (find(durations, signature) != NULL) return;
    struct durations_slot *slot = take(durations, signature);
    store(&slot->ns[0], ns != DURATIONS_UNKNOWN ? ns : 1);
    store(&slot->seen, atomic_fetch_add_explicit(&durations->lessons, 1, memory_order_relaxed) + 1);
}
