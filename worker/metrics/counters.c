#include "metrics/counters.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/thread_number.h"

enum { BLOCKS = 64, CACHE_LINE = 64 };

/*
 * Blocks of different threads are two cache lines apart, because processors fetch lines in pairs.
 */
struct block {
    _Alignas(2 * CACHE_LINE) atomic_uint_fast64_t of[COUNTER_COUNT];
    atomic_uint_fast64_t outcomes[ERR_COUNT];
};

struct counters {
    struct block blocks[BLOCKS];
};

const struct counter_info counter_infos[COUNTER_COUNT] = {
#define SUM false
#define MAX true
#define X(section, counter, kind)                                                                  \
    [COUNTER_##section##_##counter] = {SECTION_##section, #counter, kind},
    COUNTER_LIST(X)
#undef X
#undef SUM
#undef MAX
};

const char *const section_names[SECTION_COUNT] = {
#define X(section) [SECTION_##section] = #section,
    SECTION_LIST(X)
#undef X
};

/*
 * Threads share a block only if there are more threads than blocks. That is why adding is an atomic
 * read-modify-write; it is cheap while no other thread uses the line.
 */
static struct block *own_block(struct counters *counters) {
    return &counters->blocks[thread_number() % BLOCKS];
}

struct counters *counters_create(void) {
    struct counters *counters = aligned_alloc(_Alignof(struct counters), sizeof *counters);
    if (counters == NULL) return NULL;
    for (int b = 0; b < BLOCKS; b++) {
        for (int i = 0; i < COUNTER_COUNT; i++) atomic_init(&counters->blocks[b].of[i], 0);
        for (int i = 0; i < ERR_COUNT; i++) atomic_init(&counters->blocks[b].outcomes[i], 0);
    }
    return counters;
}

void counters_destroy(struct counters *counters) {
    free(counters);
}

/*
 * Relaxed throughout: a counter says nothing about other memory. What a thread added is visible
 * once it was joined.
 */

void counters_add(struct counters *counters, enum counter counter, uint64_t value) {
    atomic_fetch_add_explicit(&own_block(counters)->of[counter], value, memory_order_relaxed);
}

void counters_raise(struct counters *counters, enum counter counter, uint64_t value) {
    atomic_uint_fast64_t *maximum = &own_block(counters)->of[counter];
    uint_fast64_t seen = atomic_load_explicit(maximum, memory_order_relaxed);
    while (seen < value && !atomic_compare_exchange_weak_explicit(
                               maximum, &seen, value, memory_order_relaxed, memory_order_relaxed)) {
    }
}

void counters_add_outcome(struct counters *counters, enum err outcome) {
    atomic_fetch_add_explicit(&own_block(counters)->outcomes[outcome], 1, memory_order_relaxed);
}

void counters_read(const struct counters *counters, struct totals *ret) {
    *ret = (struct totals){0};
    for (int b = 0; b < BLOCKS; b++) {
        const struct block *block = &counters->blocks[b];
        for (int i = 0; i < COUNTER_COUNT; i++)
            if (!counter_infos[i].is_max)
                ret->of[i] += atomic_load_explicit(&block->of[i], memory_order_relaxed);
        for (int i = 0; i < ERR_COUNT; i++)
            ret->outcomes[i] += atomic_load_explicit(&block->outcomes[i], memory_order_relaxed);
    }
}

void counters_take_maxima(struct counters *counters, struct totals *ret) {
    for (int i = 0; i < COUNTER_COUNT; i++) {
        if (!counter_infos[i].is_max) continue;
        ret->of[i] = 0;
        for (int b = 0; b < BLOCKS; b++) {
            uint64_t value =
                atomic_exchange_explicit(&counters->blocks[b].of[i], 0, memory_order_relaxed);
            if (value > ret->of[i]) ret->of[i] = value;
        }
    }
}

struct totals totals_since(const struct totals *now, const struct totals *before) {
    struct totals ret = *now;
    for (int i = 0; i < COUNTER_COUNT; i++)
        if (!counter_infos[i].is_max) ret.of[i] -= before->of[i];
    for (int i = 0; i < ERR_COUNT; i++) ret.outcomes[i] -= before->outcomes[i];
    return ret;
}
