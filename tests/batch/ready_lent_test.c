/* A lane that is lent to the thread that has a message in hand. */
#include <pthread.h>
#include <stdatomic.h>

#include "ready_rig.h"
#include "support/wait.h"

enum { UNKNOWN = 500 };

/* A thread of a lane: takes until it gets nothing. */
struct taker {
    pthread_t thread;
    uint32_t lane;
    size_t count;          /* of jobs */
    atomic_size_t claimed; /* messages */
};

static struct taker takers[LANES];
static struct job *mine[256]; /* of the borrower */

static int set_up_two_lanes(void **state) {
    return set_up_lanes(2);
}

static int set_up_one_lane(void **state) {
    return set_up_lanes(1);
}

static void *take_all(void *context) {
    struct taker *taker = context;
    struct ready_batch batch;
    do {
        batch = ready_take(ready, taker->lane, false, taken[taker->lane]);
        taker->count += batch.count;
        if (batch.claimed > 0) ready_admitted(ready, batch.claimed);
        atomic_fetch_add(&taker->claimed, batch.claimed);
        if (batch.is_slow) ready_leave(ready, taker->lane);
    } while (batch.count > 0 || batch.claimed > 0);
    return NULL;
}

static void start(uint32_t lanes) {
    for (uint32_t i = 0; i < lanes; i++) {
        takers[i] = (struct taker){.lane = i};
        assert_int_equal(pthread_create(&takers[i].thread, NULL, take_all, &takers[i]), 0);
    }
}

/* Returns how many jobs the lanes took. */
static size_t join(uint32_t lanes) {
    size_t count = 0;
    for (uint32_t i = 0; i < lanes; i++) {
        pthread_join(takers[i].thread, NULL);
        count += takers[i].count;
    }
    return count;
}

static size_t close_and_join(uint32_t lanes) {
    ready_close(ready);
    return join(lanes);
}

static void borrow(void) {
    WAIT_FOR(ready_borrow(ready), ==, true); /* until all lanes wait */
}

static void borrow_for_a_short_job(void) {
    borrow();
    push(Q, 1);
    assert_int_equal(ready_take_short(ready, mine).count, 1);
}

static void start_with_short_jobs(uint32_t lanes) {
    teach(job_of(Q), 1, true, QUICK_NS);
    start(lanes);
}

TEST(no_lane_is_lent_before_all_of_them_wait) {
    assert_false(ready_borrow(ready));
    start(LANES - 1);
    assert_false(ready_borrow(ready));
    assert_int_equal(close_and_join(LANES - 1), 0);
}

TEST(short_jobs_are_the_borrowers) {
    start_with_short_jobs(LANES);
    for (size_t i = 0; i < 100; i++) {
        borrow();
        assert_false(ready_borrow(ready));
        for (size_t k = 0; k <= i % 3; k++) push(Q, 1);
        struct ready_batch batch = ready_take_short(ready, mine);
        assert_int_equal(batch.count, i % 3 + 1);
        for (size_t k = 0; k < batch.count; k++) assert_int_equal(mine[k]->plan->signature, Q);
        ready_give_back(ready, false);
    }
    assert_int_equal(close_and_join(LANES), 0);
}

TEST(what_is_not_short_or_not_known_is_the_lanes) {
    teach(job_of(Q), 1, true, READY_SHORT_NS / 2);
    teach(job_of(Q), 8, true, 2 * READY_SHORT_NS);
    teach(job_of(Q + 1), 1, true, READY_SHORT_NS + 1);
    start(LANES);
    for (int i = 0; i < 4; i++) {
        borrow();
        if (i == 1) push(Q + 1, 1);
        if (i == 2) push(UNKNOWN, 1);
        for (int k = 0; i == 3 && k < 8; k++) push(Q, 1);
        assert_int_equal(ready_take_short(ready, mine).count, 0); /* at first nothing came */
        ready_give_back(ready, false);
    }
    borrow(); /* none is left */
    ready_give_back(ready, false);
    assert_int_equal(close_and_join(LANES), 10);
}

TEST(jobs_that_are_not_in_the_borrowers_batch_are_the_lanes) {
    start_with_short_jobs(LANES);
    borrow();
    push(Q, 1);
    push(UNKNOWN, 1);
    assert_int_equal(ready_take_short(ready, mine).count, 1);
    WAIT_FOR(ready_count(ready), ==, 0);
    ready_give_back(ready, false);
    assert_int_equal(close_and_join(LANES), 1);
}

/* The lane has a slow batch that goes on, so it takes nothing more. */
static void *take_one(void *context) {
    struct taker *taker = context;
    taker->count = ready_take(ready, taker->lane, false, taken[taker->lane]).count;
    return NULL;
}

TEST(a_lane_that_sleeps_hears_of_jobs_that_wait_for_a_first_one_which_takes_too_long) {
    for (uint32_t i = 0; i < 2; i++) {
        takers[i] = (struct taker){.lane = i};
        assert_int_equal(pthread_create(&takers[i].thread, NULL, take_one, &takers[i]), 0);
    }
    borrow();
    push(UNKNOWN, 2);
    assert_int_equal(ready_take_short(ready, mine).count, 0);
    ready_give_back(ready, false);
    WAIT_FOR(ready_count(ready), ==, 0);
    assert_int_equal(join(2), 2);
}

TEST(jobs_that_come_while_a_lane_is_lent_are_the_others) {
    start_with_short_jobs(2);
    for (size_t i = 0; i < 100; i++) {
        borrow_for_a_short_job();
        push(Q, 1);
        WAIT_FOR(ready_count(ready), ==, 0);
        ready_give_back(ready, false);
    }
    assert_int_equal(close_and_join(2), 100);
    assert_int_equal(takers[READY_LENT_LANE].count, 0);
}

TEST(jobs_that_come_while_the_only_lane_is_lent_are_its_own_once_it_is_back) {
    start_with_short_jobs(1);
    borrow_for_a_short_job();
    push(Q, 1);
    ready_give_back(ready, false);
    borrow();
    ready_give_back(ready, false);
    assert_int_equal(close_and_join(1), 1);
}

TEST(a_lane_that_comes_back_busy_takes_nothing_and_is_not_lent_again_before_it_waits) {
    start_with_short_jobs(LANES);
    borrow_for_a_short_job();
    ready_give_back(ready, true);
    assert_false(ready_borrow(ready));
    pthread_join(takers[READY_LENT_LANE].thread, NULL); /* got nothing */
    start(1);
    borrow();
    ready_give_back(ready, false);
    assert_int_equal(close_and_join(LANES), 0);
}

/* --- messages that are offered --- */

static void *admit_all(void *admitted) {
    size_t count;
    while ((count = ready_wait_for_messages(ready)) > 0) {
        ready_admitted(ready, count);
        atomic_fetch_add((atomic_size_t *)admitted, count);
    }
    return NULL;
}

TEST(messages_wake_a_lane_that_waits) {
    start(1);
    for (size_t i = 1; i <= 100; i++) {
        borrow();
        ready_give_back(ready, false);
        (void)ready_offer(ready, 1, 100);
        WAIT_FOR(atomic_load(&takers[0].claimed), >=, i);
    }
    assert_int_equal(close_and_join(1), 0);
}

TEST(messages_that_come_while_a_lane_is_lent_are_the_others) {
    start_with_short_jobs(2);
    for (size_t i = 1; i <= 100; i++) {
        borrow_for_a_short_job();
        (void)ready_offer(ready, 1, 100);
        WAIT_FOR(atomic_load(&takers[1].claimed), >=, i);
        ready_give_back(ready, false);
    }
    assert_int_equal(close_and_join(2), 0);
    assert_int_equal(atomic_load(&takers[READY_LENT_LANE].claimed), 0);
}

TEST(messages_that_come_while_the_only_lane_is_lent_are_admitted_by_another_thread) {
    pthread_t admission;
    atomic_size_t admitted = 0;
    assert_int_equal(pthread_create(&admission, NULL, admit_all, &admitted), 0);
    start(1);
    for (size_t i = 1; i <= 100; i++) {
        borrow();
        (void)ready_offer(ready, 1, 100);
        WAIT_FOR(atomic_load(&admitted), >=, i);
        ready_give_back(ready, false);
    }
    ready_close_offers(ready);
    pthread_join(admission, NULL);
    assert_int_equal(close_and_join(1), 0);
    assert_int_equal(atomic_load(&takers[0].claimed), 0);
}

#define R(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        R(no_lane_is_lent_before_all_of_them_wait),
        R(short_jobs_are_the_borrowers),
        R(what_is_not_short_or_not_known_is_the_lanes),
        R(jobs_that_are_not_in_the_borrowers_batch_are_the_lanes),
        cmocka_unit_test_setup_teardown(
            a_lane_that_sleeps_hears_of_jobs_that_wait_for_a_first_one_which_takes_too_long,
            set_up_two_lanes, tear_down),
        cmocka_unit_test_setup_teardown(
            jobs_that_come_while_a_lane_is_lent_are_the_others, set_up_two_lanes, tear_down),
        cmocka_unit_test_setup_teardown(
            jobs_that_come_while_the_only_lane_is_lent_are_its_own_once_it_is_back, set_up_one_lane,
            tear_down),
        cmocka_unit_test_setup_teardown(
            messages_wake_a_lane_that_waits, set_up_one_lane, tear_down),
        cmocka_unit_test_setup_teardown(
            messages_that_come_while_a_lane_is_lent_are_the_others, set_up_two_lanes, tear_down),
        cmocka_unit_test_setup_teardown(
            messages_that_come_while_the_only_lane_is_lent_are_admitted_by_another_thread,
            set_up_one_lane, tear_down),
        R(a_lane_that_comes_back_busy_takes_nothing_and_is_not_lent_again_before_it_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
