/* Who admits messages, and how many. */
#include <pthread.h>

#include "ready_rig.h"

TEST(a_lane_admits_messages_unless_it_has_a_whole_batch) {
    know(Q, 1, QUICK_NS);
    push(Q, 63);
    assert_int_equal(ready_offer(ready, 2 * READY_CLAIM_MAX + 3, 1000), 2 * READY_CLAIM_MAX + 3);
    struct ready_batch batch = take(0);
    assert_int_equal(batch.claimed, READY_CLAIM_MAX);
    assert_int_equal(batch.count, 0);
    push(Q, 1);
    assert_batch(take(0), 0, Q, 64, false);
    assert_int_equal(take(1).claimed, READY_CLAIM_MAX);
    assert_int_equal(take(1).claimed, 3);
}

TEST(no_thread_claims_many_bytes_while_others_could) {
    enum { LARGE = READY_CLAIM_BYTES_MAX / 4 };
    ready_offer(ready, 9, 9 * LARGE);
    assert_int_equal(ready_claim(ready, READY_CLAIM_MAX), 4);
    assert_int_equal(ready_claim(ready, READY_CLAIM_MAX), 4);
    assert_int_equal(ready_claim(ready, READY_CLAIM_MAX), 1);
    assert_int_equal(ready_claim(ready, READY_CLAIM_MAX), 0);
    ready_offer(ready, 2, 2 * (READY_CLAIM_BYTES_MAX + 1ull));
    assert_int_equal(ready_claim(ready, READY_CLAIM_MAX), 1);
    assert_int_equal(ready_claim(ready, READY_CLAIM_MAX), 1);
}

TEST(a_lane_whose_jobs_may_not_run_yet_or_with_batches_in_flight_admits_messages) {
    push(A, 1);
    (void)take(0); /* the others of A wait for what it teaches */
    push(A, 300);
    ready_offer(ready, 1, 100);
    assert_int_equal(take(1).claimed, 1);
    ready_offer(ready, 1, 100);
    assert_int_equal(ready_take(ready, 2, true, taken[2]).claimed, 1);
    struct ready_batch batch = ready_take(ready, 2, true, taken[2]);
    assert_int_equal(batch.claimed + batch.count, 0);
}

static void *admit_all(void *context) {
    size_t *admitted = context, count;
    while ((count = ready_wait_for_messages(ready)) > 0) *admitted += count;
    return NULL;
}

TEST(messages_that_no_lane_waits_for_are_admitted_by_those_that_do_nothing_else) {
    enum { THREADS = 3, OFFERS = 1000 };
    pthread_t threads[THREADS];
    size_t admitted[THREADS] = {0}, claimed = 0, sum = 0, count;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, admit_all, &admitted[i]), 0);
    for (int i = 0; i < OFFERS; i++) ready_offer(ready, 5, 500);
    while ((count = ready_claim(ready, READY_CLAIM_MAX)) > 0) claimed += count;
    ready_close_offers(ready);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        sum += admitted[i];
    }
    assert_int_equal(claimed + sum, 5 * OFFERS);
}

TEST(a_lane_with_a_slow_batch_takes_no_messages) {
    know(A, 1, SLOW_NS);
    push(A, 1);
    assert_true(take(0).is_slow);
    (void)ready_offer(ready, 1, 100);
    assert_int_equal(ready_take(ready, 0, true, taken[0]).claimed, 0);
    assert_int_equal(ready_claim(ready, 1), 1);
}

#define R(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        R(a_lane_admits_messages_unless_it_has_a_whole_batch),
        R(no_thread_claims_many_bytes_while_others_could),
        R(a_lane_whose_jobs_may_not_run_yet_or_with_batches_in_flight_admits_messages),
        R(messages_that_no_lane_waits_for_are_admitted_by_those_that_do_nothing_else),
        R(a_lane_with_a_slow_batch_takes_no_messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
