/* Proves: numbers of threads. */
#include "base/thread_number.h"

#include <pthread.h>

#include "testing.h"

struct asked {
    unsigned number;
    pthread_barrier_t *all_live; /* NULL: it ends at once */
};

static void *ask_twice(void *context) {
    struct asked *asked = context;
    asked->number = thread_number();
    if (asked->all_live != NULL) pthread_barrier_wait(asked->all_live);
    return thread_number() == asked->number ? context : NULL;
}

static void join(pthread_t thread) {
    void *is_same;
    pthread_join(thread, &is_same);
    assert_non_null(is_same);
}

TEST(a_thread_keeps_its_number_and_no_living_one_has_the_same) {
    enum { THREADS = THREAD_NUMBERS + 20 };
    pthread_barrier_t all_live;
    pthread_t threads[THREADS];
    struct asked asked[THREADS + 1];
    assert_int_equal(0, pthread_barrier_init(&all_live, NULL, THREADS));
    asked[THREADS].number = thread_number();
    for (int i = 0; i < THREADS; i++) {
        asked[i].all_live = &all_live;
        assert_int_equal(0, pthread_create(&threads[i], NULL, ask_twice, &asked[i]));
    }
    for (int i = 0; i < THREADS; i++) join(threads[i]);
    pthread_barrier_destroy(&all_live);
    for (int i = 0; i <= THREADS; i++)
        for (int j = 0; j < i; j++) assert_int_not_equal(asked[i].number, asked[j].number);
    assert_int_equal(asked[THREADS].number, thread_number());
}

TEST(a_number_below_the_bound_is_given_out_again_when_its_thread_has_ended) {
    struct asked asked[2] = {{0}};
    unsigned own = thread_number();
    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        assert_int_equal(0, pthread_create(&thread, NULL, ask_twice, &asked[i]));
        join(thread);
        assert_int_not_equal(own, asked[i].number);
    }
    assert_int_equal(asked[0].number, asked[1].number);
    assert_true(asked[0].number < THREAD_NUMBERS);
}

static pthread_key_t key;

static void *ask_at_the_end(void *asked) {
    (void)thread_number();
    return pthread_setspecific(key, asked) == 0 ? asked : NULL;
}

/* While another thread lives. */
static void ask_again(void *context) {
    struct asked *asked = context;
    pthread_t other;
    asked[0].number = thread_number();
    if (pthread_create(&other, NULL, ask_twice, &asked[1]) == 0) pthread_join(other, NULL);
}

TEST(a_thread_that_asks_again_while_it_ends_has_a_number_of_its_own_and_keeps_none) {
    assert_int_equal(0, pthread_key_create(&key, ask_again));
    for (int i = 0; i < 2 * THREAD_NUMBERS; i++) {
        struct asked asked[2] = {{.number = THREAD_NUMBERS}, {.number = THREAD_NUMBERS}};
        pthread_t thread;
        assert_int_equal(0, pthread_create(&thread, NULL, ask_at_the_end, asked));
        join(thread);
        assert_true(asked[0].number < THREAD_NUMBERS);
        assert_true(asked[1].number < THREAD_NUMBERS);
        assert_int_not_equal(asked[0].number, asked[1].number);
    }
    pthread_key_delete(key);
}

RUN_TESTS(T(a_thread_keeps_its_number_and_no_living_one_has_the_same),
    T(a_number_below_the_bound_is_given_out_again_when_its_thread_has_ended),
    T(a_thread_that_asks_again_while_it_ends_has_a_number_of_its_own_and_keeps_none))
