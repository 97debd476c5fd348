/* Proves: references that threads keep for later. */
#include "gpu/stash.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "testing.h"

/* Two items whose names share a place, and one beside them. */
enum { NAME = 7, NAME_BESIDE = 8 };
static const uint64_t name = (uint64_t)NAME << 48, beside = (uint64_t)NAME_BESIDE << 48;
static struct item { _Alignas(STASH_ALIGNMENT) atomic_uint references; } items[3];

static struct stash *stash;

static int set_up(void **state) {
    stash = stash_create();
    return stash == NULL;
}

static int tear_down(void **state) {
    stash_destroy(stash);
    return 0;
}

TEST(a_place_is_marked_for_an_item_before_it_keeps_any) {
    assert_null(stash_take(stash, name));
    assert_int_equal(0, stash_wanted(stash, name, &items[0]));
    assert_int_equal(1, stash_keep(stash, name, &items[0], 1));
    assert_null(stash_take(stash, name));
    assert_int_equal(STASH_GROUP, stash_wanted(stash, name, &items[0]));
    assert_int_equal(0, stash_wanted(stash, name, &items[1]));
    assert_int_equal(0, stash_keep(stash, name, &items[0], 1));
    assert_ptr_equal(&items[0], stash_take(stash, name));
    assert_null(stash_take(stash, name));
}

TEST(a_group_is_kept_and_taken_one_by_one) {
    assert_int_equal(0, stash_keep(stash, name, &items[0], 0));
    assert_int_equal(0, stash_keep(stash, name, &items[0], STASH_GROUP));
    assert_int_equal(0, stash_wanted(stash, name, &items[0]));
    for (int i = 0; i < STASH_GROUP; i++) assert_ptr_equal(&items[0], stash_take(stash, name));
    assert_null(stash_take(stash, name));
}

TEST(a_full_place_gives_up_half_of_what_it_keeps) {
    unsigned kept = 0, given_up = 0;
    assert_int_equal(0, stash_keep(stash, name, &items[0], 0));
    for (int i = 0; i < STASH_MAX; i++) assert_int_equal(0, stash_keep(stash, name, &items[0], 1));
    given_up = stash_keep(stash, name, &items[0], 1);
    while (stash_take(stash, name) != NULL) kept++;
    assert_int_equal(STASH_MAX + 1, kept + given_up);
    assert_int_equal(STASH_GROUP, kept);
}

TEST(an_item_waits_until_the_place_keeps_nothing_for_another) {
    assert_int_equal(0, stash_keep(stash, name, &items[0], 0));
    assert_int_equal(0, stash_keep(stash, name, &items[0], 1));
    assert_int_equal(1, stash_keep(stash, name, &items[1], 1));
    assert_int_equal(0, stash_wanted(stash, name, &items[1]));
    assert_ptr_equal(&items[0], stash_take(stash, name));
    assert_int_equal(1, stash_keep(stash, name, &items[1], 1));
    assert_int_equal(STASH_GROUP, stash_wanted(stash, name, &items[1]));
    assert_null(stash_take(stash, beside));
}

static void *keep_five(void *context) {
    (void)stash_keep(stash, name, &items[0], 0);
    for (int i = 0; i < 5; i++)
        if (stash_keep(stash, name, &items[0], 1) != 0) return NULL;
    return context;
}

TEST(what_all_threads_keep_for_an_item_is_taken_back_and_no_other) {
    pthread_t thread;
    void *is_kept;
    assert_int_equal(0, pthread_create(&thread, NULL, keep_five, stash));
    pthread_join(thread, &is_kept);
    assert_non_null(is_kept);
    assert_non_null(keep_five(stash));
    (void)stash_keep(stash, beside, &items[2], 0);
    assert_int_equal(0, stash_keep(stash, beside, &items[2], 1));
    assert_int_equal(0, stash_recall(stash, name, &items[1]));
    /* A thread's number, and with it the place, may be that of another that has ended. */
    assert_int_equal(10, stash_recall(stash, name, &items[0]));
    assert_int_equal(0, stash_recall(stash, name, &items[0]));
    assert_null(stash_take(stash, name));
    assert_ptr_equal(&items[2], stash_take(stash, beside));
}

/* --- many threads --- */

enum { THREADS = 8, ROUNDS = 20000 };

/* Uses an item as statics do: with a stashed reference, or else with counted ones. */
static void *use_again_and_again(void *context) {
    for (int round = 0; round < ROUNDS; round++) {
        if (stash_take(stash, name) == NULL) {
            unsigned extra = stash_wanted(stash, name, &items[0]);
            atomic_fetch_add(&items[0].references, 1 + extra);
            atomic_fetch_sub(&items[0].references, stash_keep(stash, name, &items[0], extra));
        }
        if (atomic_load(&items[0].references) == 0) return NULL;
        if (round % 100 == 0)
            atomic_fetch_sub(&items[0].references, stash_recall(stash, name, &items[0]));
        atomic_fetch_sub(&items[0].references, stash_keep(stash, name, &items[0], 1));
    }
    return context;
}

TEST(references_in_use_and_stashed_are_as_many_as_were_counted) {
    pthread_t threads[THREADS];
    void *is_right;
    atomic_store(&items[0].references, 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(0, pthread_create(&threads[i], NULL, use_again_and_again, stash));
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], &is_right);
        assert_non_null(is_right);
    }
    assert_int_equal(atomic_load(&items[0].references), stash_recall(stash, name, &items[0]));
}

#define S(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

RUN_TESTS(S(a_place_is_marked_for_an_item_before_it_keeps_any),
    S(a_group_is_kept_and_taken_one_by_one), S(a_full_place_gives_up_half_of_what_it_keeps),
    S(an_item_waits_until_the_place_keeps_nothing_for_another),
    S(what_all_threads_keep_for_an_item_is_taken_back_and_no_other),
    S(references_in_use_and_stashed_are_as_many_as_were_counted))
