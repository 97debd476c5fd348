/* Proves: pools that all threads share; what idle threads keep. */
#include "gpu/magazines.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "gpu/size_class.h"
#include "testing.h"

static struct magazines *magazines;

static int set_up(void **state) {
    magazines = magazines_create();
    return magazines == NULL;
}

static int tear_down(void **state) {
    magazines_destroy(magazines);
    return 0;
}

static void *put_a_hundred(void *context) {
    for (uint64_t i = 1; i <= 100; i++)
        if (!magazines_put(magazines, 0, i)) return (void *)(uintptr_t)(i - 1);
    return NULL;
}

/* By a thread that has ended. */
static void let_another_put_as_many_as_it_can(void) {
    pthread_t thread;
    void *count;
    assert_int_equal(0, pthread_create(&thread, NULL, put_a_hundred, NULL));
    pthread_join(thread, &count);
    assert_int_equal(MAGAZINE_PLACES, (uintptr_t)count);
}

TEST(what_a_thread_puts_it_takes_again_each_once) {
    uint64_t address = 7, sum = 0;
    assert_false(magazines_take(magazines, 0, &address));
    assert_int_equal(7, address);
    for (uint64_t i = 0; i < MAGAZINE_PLACES; i++)
        assert_true(magazines_put(magazines, 0, 1u << i));
    assert_false(magazines_put(magazines, 0, 1u << MAGAZINE_PLACES));
    for (int i = 0; i < MAGAZINE_PLACES; i++) {
        assert_true(magazines_take(magazines, 0, &address));
        sum += address;
    }
    assert_int_equal((1u << MAGAZINE_PLACES) - 1, sum);
    assert_false(magazines_take(magazines, 0, &address));
}

TEST(what_others_took_or_share_hides_nothing_of_the_rest) {
    uint64_t address, left = 0;
    for (uint64_t i = 1; i <= MAGAZINE_PLACES; i++) assert_true(magazines_put(magazines, 0, i));
    for (int i = 0; i < 3; i++) assert_true(magazines_steal(magazines, 0, &address));
    assert_true(magazines_put(magazines, 0, MAGAZINE_PLACES + 1));
    assert_true(magazines_take(magazines, 0, &address));
    assert_true(magazines_steal(magazines, 0, &address));
    for (uint64_t i = MAGAZINE_PLACES - 4; i < MAGAZINE_PLACES; i++)
        assert_true(magazines_put(magazines, 0, i));
    assert_false(magazines_put(magazines, 0, 1));
    while (magazines_take(magazines, 0, &address)) left++;
    assert_int_equal(MAGAZINE_PLACES, left);
}

TEST(classes_do_not_mix_and_large_ones_have_no_places) {
    uint64_t address;
    for (size_t class = 0; class < SIZE_CLASS_COUNT; class ++)
        assert_true(magazines_put(magazines, class, class + 1) == (class < MAGAZINE_CLASSES));
    assert_int_equal(64 << 10, size_class_bytes(MAGAZINE_CLASSES - 1));
    for (size_t class = 0; class < SIZE_CLASS_COUNT; class ++) {
        bool has_one = class < MAGAZINE_CLASSES;
        assert_true(magazines_take(magazines, class, &address) == has_one);
        if (has_one) assert_int_equal(class + 1, address);
        assert_false(magazines_steal(magazines, class, &address));
    }
}

TEST(what_another_thread_keeps_can_be_stolen_and_not_taken) {
    uint64_t address, stolen = 0;
    let_another_put_as_many_as_it_can();
    assert_false(magazines_take(magazines, 0, &address));
    while (magazines_steal(magazines, 0, &address)) stolen++;
    assert_int_equal(MAGAZINE_PLACES, stolen);
}

/* --- many threads --- */

enum { THREADS = 8, VALUES = MAGAZINE_PLACES, ROUNDS = 20000 };

struct contest {
    atomic_uint owners[VALUES + 1]; /* of each value */
    atomic_uint broken;
};

/* Takes from its own places, steals where there is none, and puts back. */
static void *contend(void *context) {
    struct contest *contest = context;
    uint64_t value = 0;
    for (int round = 0; round < ROUNDS; round++) {
        bool has_one = round % 3 == 0 ? magazines_steal(magazines, 1, &value)
                                      : magazines_take(magazines, 1, &value);
        if (!has_one) continue;
        if (atomic_fetch_add(&contest->owners[value], 1) != 0)
            atomic_fetch_add(&contest->broken, 1);
        atomic_fetch_sub(&contest->owners[value], 1);
        if (!magazines_put(magazines, 1, value)) atomic_fetch_add(&contest->broken, 1);
    }
    return NULL;
}

TEST(a_value_has_one_owner_at_a_time_and_none_is_lost) {
    struct contest *contest = calloc(1, sizeof *contest);
    pthread_t threads[THREADS];
    uint64_t value, sum = 0;
    /* No more than a thread has places for: a put always finds one. */
    for (value = 1; value <= VALUES; value++) assert_true(magazines_put(magazines, 1, value));
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(0, pthread_create(&threads[i], NULL, contend, contest));
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    assert_int_equal(0, atomic_load(&contest->broken));
    while (magazines_steal(magazines, 1, &value)) sum += value;
    assert_int_equal(VALUES * (VALUES + 1) / 2, sum);
    free(contest);
}

#define M(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

RUN_TESTS(M(what_a_thread_puts_it_takes_again_each_once),
    M(what_others_took_or_share_hides_nothing_of_the_rest),
    M(classes_do_not_mix_and_large_ones_have_no_places),
    M(what_another_thread_keeps_can_be_stolen_and_not_taken),
    M(a_value_has_one_owner_at_a_time_and_none_is_lost))
