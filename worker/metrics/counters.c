#include "metrics/counters.h"

#include "base/thread_number.h"

/* Nanoseconds: 50 us to a minute. */
static const uint64_t TIME[] = {50000, 100000, 250000, 500000, 1000000, 2500000, 5000000, 10000000,
    25000000, 50000000, 100000000, 250000000, 500000000, 1000000000, 2500000000, 5000000000,
    10000000000, 30000000000, 60000000000};
static const uint64_t JOBS[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};

_Static_assert(sizeof TIME / sizeof TIME[0] < HISTOGRAM_BUCKETS, "one more is for what is above");
_Static_assert(sizeof JOBS / sizeof JOBS[0] < HISTOGRAM_BUCKETS, "one more is for what is above");

const struct histogram_info histogram_infos[HISTOGRAM_COUNT] = {
#define X(symbol, bounds)                                                                          \
    [HISTOGRAM_##symbol] = {#symbol, sizeof bounds / sizeof bounds[0], bounds},
    HISTOGRAM_LIST(X)
#undef X
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

/* Threads with larger numbers share the last block. */
enum { SHARED_BLOCK = COUNTERS_BLOCKS - 1 };

static unsigned block_number(void) {
    unsigned number = thread_number();
    return number < SHARED_BLOCK ? number : SHARED_BLOCK;
}

/* Nobody else writes to a thread's own block: adding needs no atomic read-modify-write there, which
 * costs several times as much, some 30 times a job. */
static void add(unsigned block, atomic_uint_fast64_t *count, uint64_t value) {
    if (block == SHARED_BLOCK) {
        atomic_fetch_add_explicit(count, value, memory_order_relaxed);
    } else {
        uint64_t before = atomic_load_explicit(count, memory_order_relaxed);
        atomic_store_explicit(count, before + value, memory_order_relaxed);
    }
}

/*
 * Relaxed throughout: a counter says nothing about other memory. What a thread added is visible
 * once it was joined.
 */

void counters_add(struct counters *counters, enum counter counter, uint64_t value) {
    unsigned block = block_number();
    add(block, &counters->blocks[block].of[counter], value);
}

void counters_raise(struct counters *counters, enum counter counter, uint64_t value) {
    atomic_uint_fast64_t *maximum = &counters->blocks[block_number()].of[counter];
    uint_fast64_t seen = atomic_load_explicit(maximum, memory_order_relaxed);
    while (seen < value && !atomic_compare_exchange_weak_explicit(
                               maximum, &seen, value, memory_order_relaxed, memory_order_relaxed)) {
    }
}

void counters_add_outcome(struct counters *counters, enum err outcome) {
    unsigned block = block_number();
    add(block, &counters->blocks[block].outcomes[outcome], 1);
}

void counters_observe(struct counters *counters, enum histogram histogram, uint64_t value) {
    const struct histogram_info *info = &histogram_infos[histogram];
    unsigned block = block_number();
    size_t bucket = 0, above = info->bound_count;
    if (value == 0) return;
    while (bucket < above) {
        size_t middle = (bucket + above) / 2;
        if (value <= info->bounds[middle]) above = middle;
        else bucket = middle + 1;
    }
    add(block, &counters->blocks[block].buckets[histogram][bucket], 1);
    add(block, &counters->blocks[block].sums[histogram], value);
}

void counters_read_histogram(
    const struct counters *counters, enum histogram histogram, struct histogram_reading *ret) {
    *ret = (struct histogram_reading){0};
    for (int b = 0; b < COUNTERS_BLOCKS; b++) {
        const struct counters_block *block = &counters->blocks[b];
        for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++)
            ret->buckets[i] +=
                atomic_load_explicit(&block->buckets[histogram][i], memory_order_relaxed);
        ret->sum += atomic_load_explicit(&block->sums[histogram], memory_order_relaxed);
    }
}

void counters_read(const struct counters *counters, struct totals *ret) {
    *ret = (struct totals){0};
    for (int b = 0; b < COUNTERS_BLOCKS; b++) {
        const struct counters_block *block = &counters->blocks[b];
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
        for (int b = 0; b < COUNTERS_BLOCKS; b++) {
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
