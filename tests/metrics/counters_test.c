/* Proves: exact counters; consistent readings. */
#include "metrics/counters.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/aligned.h"
#include "testing.h"

enum { THREADS = 70, INCREMENTS = 20000 }; /* more threads than there are blocks */

struct crowd {
    struct counters *counters;
    pthread_t threads[THREADS];
    atomic_int running;
};

struct member {
    struct crowd *crowd;
    uint64_t number;
};

static struct counters *create(void) {
    struct counters *counters = aligned_calloc(_Alignof(struct counters), sizeof *counters);
    assert_non_null(counters);
    return counters;
}

static void *count(void *context) {
    struct member *member = context;
    struct counters *counters = member->crowd->counters;
    for (uint64_t i = 1; i <= INCREMENTS; i++) {
        counters_add(counters, COUNTER_jobs_h2d_bytes, i);
        counters_add(counters, COUNTER_batches_count, 1);
        counters_raise(counters, COUNTER_timed_wall_ns_max, member->number * INCREMENTS + i);
        counters_add_outcome(counters, member->number % 2 == 0 ? ERR_OK : ERR_BAD_JOB);
    }
    atomic_fetch_sub(&member->crowd->running, 1);
    return NULL;
}

static void start(struct crowd *crowd, struct member *members) {
    crowd->counters = create();
    assert_non_null(crowd->counters);
    atomic_init(&crowd->running, THREADS);
    for (int i = 0; i < THREADS; i++) {
        members[i] = (struct member){.crowd = crowd, .number = (uint64_t)i};
        assert_int_equal(pthread_create(&crowd->threads[i], NULL, count, &members[i]), 0);
    }
}

static void add_totals(struct totals *sum, const struct totals *more) {
    for (int i = 0; i < COUNTER_COUNT; i++) {
        if (!counter_infos[i].is_max) sum->of[i] += more->of[i];
        else if (more->of[i] > sum->of[i]) sum->of[i] = more->of[i];
    }
    for (int i = 0; i < ERR_COUNT; i++) sum->outcomes[i] += more->outcomes[i];
}

/* What a reader that starts from zero again and again has got, once everybody has counted. */
TEST(intervals_that_are_taken_while_all_count_lose_nothing) {
    struct crowd crowd;
    struct member members[THREADS];
    struct totals before = {0}, sum = {0};
    start(&crowd, members);
    bool is_last;
    do {
        struct totals now;
        is_last = atomic_load(&crowd.running) == 0;
        counters_read(crowd.counters, &now);
        counters_take_maxima(crowd.counters, &now);
        for (int i = 0; i < COUNTER_COUNT; i++)
            if (!counter_infos[i].is_max) assert_true(now.of[i] >= before.of[i]);
        struct totals interval = totals_since(&now, &before);
        add_totals(&sum, &interval);
        before = now;
    } while (!is_last);
    for (int i = 0; i < THREADS; i++) pthread_join(crowd.threads[i], NULL);

    const uint64_t sum_of_one = (uint64_t)INCREMENTS * (INCREMENTS + 1) / 2;
    assert_int_equal(sum.of[COUNTER_jobs_h2d_bytes], THREADS * sum_of_one);
    assert_int_equal(sum.of[COUNTER_batches_count], THREADS * INCREMENTS);
    assert_int_equal(sum.of[COUNTER_timed_wall_ns_max], THREADS * INCREMENTS);
    assert_int_equal(sum.outcomes[ERR_OK], THREADS / 2 * INCREMENTS);
    assert_int_equal(sum.outcomes[ERR_BAD_JOB], THREADS / 2 * INCREMENTS);
    assert_int_equal(sum.of[COUNTER_jobs_d2h_bytes], 0);
    free(crowd.counters);
}

TEST(a_maximum_is_told_once_and_starts_from_zero_again) {
    struct counters *counters = create();
    struct totals totals;
    counters_raise(counters, COUNTER_timed_device_ns_max, 7);
    counters_raise(counters, COUNTER_timed_device_ns_max, 5);
    counters_take_maxima(counters, &totals);
    assert_int_equal(totals.of[COUNTER_timed_device_ns_max], 7);
    counters_raise(counters, COUNTER_timed_device_ns_max, 3);
    counters_take_maxima(counters, &totals);
    assert_int_equal(totals.of[COUNTER_timed_device_ns_max], 3);
    free(counters);
}

TEST(every_counter_counts_for_itself) {
    struct counters *counters = create();
    struct totals totals;
    for (int i = 0; i < COUNTER_COUNT; i++) {
        if (counter_infos[i].is_max) counters_raise(counters, (enum counter)i, (uint64_t)i + 1);
        else counters_add(counters, (enum counter)i, (uint64_t)i + 1);
    }
    counters_read(counters, &totals);
    counters_take_maxima(counters, &totals);
    for (int i = 0; i < COUNTER_COUNT; i++) assert_int_equal(totals.of[i], (uint64_t)i + 1);
    free(counters);
}

RUN_TESTS(T(intervals_that_are_taken_while_all_count_lose_nothing),
    T(a_maximum_is_told_once_and_starts_from_zero_again), T(every_counter_counts_for_itself))
