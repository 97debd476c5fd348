#include "base/queue.h"

#include <pthread.h>
#include <stdatomic.h>

#include "testing.h"

static void *item(uintptr_t number) {
    return (void *)number;
}

TEST(items_come_out_in_their_order) {
    struct queue *queue = queue_create(3);
    void *items[3];
    for (uintptr_t round = 0; round < 5; round++) { /* the ring wraps */
        assert_true(queue_push(queue, item(2 * round + 1)));
        assert_true(queue_push(queue, item(2 * round + 2)));
        assert_int_equal(queue_pop(queue, items, 3, -1), 2);
        assert_ptr_equal(items[0], item(2 * round + 1));
        assert_ptr_equal(items[1], item(2 * round + 2));
    }
    queue_destroy(queue);
}

TEST(pop_takes_at_most_what_is_asked) {
    struct queue *queue = queue_create(4);
    void *items[2];
    for (uintptr_t i = 1; i <= 3; i++) assert_true(queue_push(queue, item(i)));
    assert_int_equal(queue_pop(queue, items, 2, 0), 2);
    assert_int_equal(queue_pop(queue, items, 2, 0), 1);
    assert_ptr_equal(items[0], item(3));
    queue_destroy(queue);
}

TEST(pop_of_an_empty_queue_gives_up_when_time_is_over) {
    struct queue *queue = queue_create(1);
    void *items[1];
    assert_int_equal(queue_pop(queue, items, 1, 0), 0);
    assert_int_equal(queue_pop(queue, items, 1, 1), 0);
    assert_false(queue_is_closed(queue));
    queue_destroy(queue);
}

TEST(a_closed_queue_takes_nothing_and_gives_what_it_has) {
    struct queue *queue = queue_create(2);
    void *items[2];
    assert_true(queue_push(queue, item(1)));
    queue_close(queue);
    assert_true(queue_is_closed(queue));
    assert_false(queue_push(queue, item(2)));
    assert_int_equal(queue_pop(queue, items, 2, -1), 1);
    assert_int_equal(queue_pop(queue, items, 2, -1), 0);
    queue_destroy(queue);
}

static void *pop_until_closed(void *argument) {
    void *items[1];
    assert_int_equal(queue_pop(argument, items, 1, -1), 0);
    return NULL;
}

static void *pop_three(void *argument) {
    for (uintptr_t i = 1; i <= 3; i++) {
        void *items[1];
        assert_int_equal(queue_pop(argument, items, 1, -1), 1);
        assert_ptr_equal(items[0], item(i));
    }
    return NULL;
}

TEST(more_than_there_is_room_for_is_pushed_as_others_make_room) {
    struct queue *queue = queue_create(1);
    void *items[] = {item(1), item(2), item(3)};
    pthread_t consumer;
    assert_int_equal(pthread_create(&consumer, NULL, pop_three, queue), 0);
    assert_int_equal(queue_push_all(queue, items, 3), 3);
    pthread_join(consumer, NULL);
    queue_close(queue);
    assert_int_equal(queue_push_all(queue, items, 3), 0);
    queue_destroy(queue);
}

TEST(what_must_have_room_is_pushed_in_its_order) {
    struct queue *queue = queue_create(3);
    void *items[] = {item(1), item(2), item(3)}, *popped[3];
    queue_must_push(queue, items[0]);
    queue_must_push_all(queue, &items[1], 2);
    assert_int_equal(queue_pop(queue, popped, 3, 0), 3);
    for (uintptr_t i = 0; i < 3; i++) assert_ptr_equal(popped[i], item(i + 1));
    queue_must_push_all(queue, items, 0);
    assert_int_equal(queue_pop(queue, popped, 3, 0), 0);
    queue_destroy(queue);
}

TEST(a_wait_takes_nothing_and_ends_with_an_item_the_end_or_its_time) {
    struct queue *queue = queue_create(2);
    void *items[2];
    assert_true(queue_is_empty(queue));
    queue_wait(queue, 1);
    queue_must_push(queue, item(1));
    queue_wait(queue, -1);
    assert_false(queue_is_empty(queue));
    queue_close(queue);
    assert_int_equal(queue_pop(queue, items, 2, 0), 1);
    queue_wait(queue, -1);
    assert_true(queue_is_empty(queue));
    queue_destroy(queue);
}

static void *push_until_closed(void *argument) {
    while (queue_push(argument, item(1))) continue;
    return NULL;
}

/* Whether a thread waits already or comes later, close must let it go. */
static void close_frees(void *(*wait)(void *)) {
    enum { THREADS = 4 };
    struct queue *queue = queue_create(1);
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, wait, queue), 0);
    queue_close(queue);
    for (size_t i = 0; i < THREADS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    queue_destroy(queue);
}

TEST(close_wakes_those_who_wait_for_items) {
    close_frees(pop_until_closed);
}

TEST(close_wakes_those_who_wait_for_room) {
    close_frees(push_until_closed);
}

enum { PRODUCERS = 4, CONSUMERS = 4, ITEMS = 5000 };

/* Every item is a cell that counts how often it came out. */
static atomic_uint cells[PRODUCERS][ITEMS];

struct traffic {
    struct queue *queue;
    atomic_uint producer;
};

static void *produce(void *argument) {
    struct traffic *traffic = argument;
    unsigned me = atomic_fetch_add(&traffic->producer, 1);
    for (size_t i = 0; i < ITEMS; i++) assert_true(queue_push(traffic->queue, &cells[me][i]));
    return NULL;
}

static void *consume(void *argument) {
    struct traffic *traffic = argument;
    void *items[7];
    size_t count;
    while ((count = queue_pop(traffic->queue, items, 7, -1)) > 0)
        for (size_t i = 0; i < count; i++) atomic_fetch_add((atomic_uint *)items[i], 1);
    return NULL;
}

TEST(many_threads_get_every_item_exactly_once) {
    struct traffic traffic = {.queue = queue_create(16)};
    pthread_t producers[PRODUCERS], consumers[CONSUMERS];
    for (size_t i = 0; i < CONSUMERS; i++)
        assert_int_equal(pthread_create(&consumers[i], NULL, consume, &traffic), 0);
    for (size_t i = 0; i < PRODUCERS; i++)
        assert_int_equal(pthread_create(&producers[i], NULL, produce, &traffic), 0);
    for (size_t i = 0; i < PRODUCERS; i++) pthread_join(producers[i], NULL);
    queue_close(traffic.queue);
    for (size_t i = 0; i < CONSUMERS; i++) pthread_join(consumers[i], NULL);
    for (size_t i = 0; i < PRODUCERS; i++)
        for (size_t k = 0; k < ITEMS; k++) assert_int_equal(atomic_load(&cells[i][k]), 1);
    queue_destroy(traffic.queue);
}

RUN_TESTS(T(items_come_out_in_their_order), T(pop_takes_at_most_what_is_asked),
    T(pop_of_an_empty_queue_gives_up_when_time_is_over),
    T(a_closed_queue_takes_nothing_and_gives_what_it_has),
    T(more_than_there_is_room_for_is_pushed_as_others_make_room),
    T(what_must_have_room_is_pushed_in_its_order),
    T(a_wait_takes_nothing_and_ends_with_an_item_the_end_or_its_time),
    T(close_wakes_those_who_wait_for_items), T(close_wakes_those_who_wait_for_room),
    T(many_threads_get_every_item_exactly_once))
