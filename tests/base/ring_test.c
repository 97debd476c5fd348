/* Proves: pools that all threads share. */
#include "base/ring.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "testing.h"

TEST(capacity_is_rounded_up_to_a_power_of_two_of_at_least_two) {
    static const size_t capacities[][2] = {{0, 2}, {1, 2}, {2, 2}, {3, 4}, {1000, 1024}};
    for (size_t i = 0; i < sizeof capacities / sizeof capacities[0]; i++) {
        struct ring *ring = ring_create(capacities[i][0]);
        assert_int_equal(ring_capacity(ring), capacities[i][1]);
        ring_destroy(ring);
    }
    assert_null(ring_create(SIZE_MAX));
    ring_destroy(NULL);
}

TEST(values_come_out_in_their_order_lap_after_lap) {
    struct ring *ring = ring_create(4);
    uint64_t value;
    for (uint64_t i = 0; i < 20; i += 2) {
        assert_true(ring_push(ring, i));
        assert_true(ring_push(ring, i + 1));
        assert_int_equal(ring_length(ring), 2);
        assert_true(ring_pop(ring, &value));
        assert_int_equal(value, i);
        assert_true(ring_pop(ring, &value));
        assert_int_equal(value, i + 1);
    }
    ring_destroy(ring);
}

TEST(a_full_ring_takes_nothing_and_keeps_what_it_has) {
    struct ring *ring = ring_create(2);
    uint64_t value;
    for (int lap = 0; lap < 3; lap++) {
        assert_true(ring_push(ring, UINT64_MAX));
        assert_true(ring_push(ring, 0));
        assert_false(ring_push(ring, 3));
        assert_int_equal(ring_length(ring), 2);
        assert_true(ring_pop(ring, &value));
        assert_true(value == UINT64_MAX);
        assert_true(ring_pop(ring, &value));
        assert_int_equal(value, 0);
    }
    ring_destroy(ring);
}

TEST(an_empty_ring_gives_nothing) {
    struct ring *ring = ring_create(2);
    uint64_t value = 7;
    assert_false(ring_pop(ring, &value));
    assert_int_equal(value, 7);
    assert_int_equal(ring_length(ring), 0);
    ring_destroy(ring);
}

enum { PRODUCERS = 8, CONSUMERS = 8, VALUES = 4000 };

/* A value names its producer and its number there; `seen` counts how often it came out. */
struct traffic {
    struct ring *ring;
    atomic_uint next_producer, popped, disorders;
    atomic_uchar seen[PRODUCERS][VALUES];
};

static void *produce(void *context) {
    struct traffic *traffic = context;
    uint64_t me = atomic_fetch_add(&traffic->next_producer, 1);
    for (uint64_t i = 0; i < VALUES; i++)
        while (!ring_push(traffic->ring, me << 32 | i)) sched_yield();
    return NULL;
}

static void *consume(void *context) {
    struct traffic *traffic = context;
    int64_t last[PRODUCERS];
    for (size_t i = 0; i < PRODUCERS; i++) last[i] = -1;
    while (atomic_load(&traffic->popped) < PRODUCERS * VALUES) {
        uint64_t value;
        if (!ring_pop(traffic->ring, &value)) {
            sched_yield();
            continue;
        }
        uint64_t producer = value >> 32, number = value & UINT32_MAX;
        atomic_fetch_add(&traffic->popped, 1);
        atomic_fetch_add(&traffic->seen[producer][number], 1);
        if ((int64_t)number <= last[producer]) atomic_fetch_add(&traffic->disorders, 1);
        last[producer] = (int64_t)number;
    }
    return NULL;
}

static void values_survive_traffic(size_t capacity) {
    static struct traffic traffic;
    traffic = (struct traffic){.ring = ring_create(capacity)};
    pthread_t threads[PRODUCERS + CONSUMERS];
    for (size_t i = 0; i < PRODUCERS + CONSUMERS; i++)
        assert_int_equal(
            pthread_create(&threads[i], NULL, i < PRODUCERS ? produce : consume, &traffic), 0);
    for (size_t i = 0; i < PRODUCERS + CONSUMERS; i++) pthread_join(threads[i], NULL);
    for (size_t i = 0; i < PRODUCERS; i++)
        for (size_t k = 0; k < VALUES; k++) assert_int_equal(traffic.seen[i][k], 1);
    assert_int_equal(traffic.disorders, 0);
    assert_int_equal(ring_length(traffic.ring), 0);
    ring_destroy(traffic.ring);
}

TEST(many_threads_get_every_value_once_and_each_producers_in_order) {
    values_survive_traffic(64);
}

TEST(the_smallest_ring_loses_nothing_either) {
    values_survive_traffic(2);
}

RUN_TESTS(T(capacity_is_rounded_up_to_a_power_of_two_of_at_least_two),
    T(values_come_out_in_their_order_lap_after_lap),
    T(a_full_ring_takes_nothing_and_keeps_what_it_has), T(an_empty_ring_gives_nothing),
    T(many_threads_get_every_value_once_and_each_producers_in_order),
    T(the_smallest_ring_loses_nothing_either))
