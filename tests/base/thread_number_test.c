/* Proves: numbers of threads. */
#include "base/thread_number.h"

#include <pthread.h>

#include "testing.h"

static void *ask_twice(void *context) {
    unsigned first = thread_number();
    *(unsigned *)context = first;
    return thread_number() == first ? context : NULL;
}

TEST(a_thread_keeps_its_number_and_no_other_gets_it) {
    enum { THREADS = 20 };
    unsigned numbers[THREADS + 1];
    numbers[THREADS] = thread_number();
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        void *is_same;
        assert_int_equal(0, pthread_create(&thread, NULL, ask_twice, &numbers[i]));
        pthread_join(thread, &is_same);
        assert_non_null(is_same);
    }
    for (int i = 0; i <= THREADS; i++)
        for (int j = 0; j < i; j++) assert_int_not_equal(numbers[i], numbers[j]);
    assert_int_equal(numbers[THREADS], thread_number());
}

RUN_TESTS(T(a_thread_keeps_its_number_and_no_other_gets_it))
