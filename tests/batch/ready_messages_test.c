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
    while ((count = ready_wait_for_messages(ready)) > 0) {
        *admitted += count;
        ready_admitted(ready, count);
    }
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
    ready_admitted(ready, claimed);
    ready_close_offers(ready);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        sum += admitted[i];
    }
    assert_int_equal(claimed + sum, 5 * OFFERS);
}

/* A lane that is about to push: what it pushes to must not end meanwhile. */
static void *push_late(void *context) {
    size_t claimed = *(size_t *)context;
    assert_int_equal(ready_wait_for_messages(ready), 0); /* the queue is being closed */
    push(Q, claimed);
    ready_admitted(ready, claimed);
    return NULL;
}

TEST(a_queue_that_takes_no_more_messages_waits_for_those_that_a_lane_admits) {
    pthread_t thread;
    (void)ready_offer(ready, 3, 300);
    size_t claimed = take(0).claimed;
    assert_int_equal(claimed, 3);
    assert_int_equal(pthread_create(&thread, NULL, push_late, &claimed), 0);
    ready_close_offers(ready);
    ready_close(ready);
    pthread_join(thread, NULL);
    assert_int_equal(ready_count(ready), 3);
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
        R(a_queue_that_takes_no_more_messages_waits_for_those_that_a_lane_admits),
        R(a_lane_with_a_slow_batch_takes_no_messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
