/* A result that comes alone is sent by the thread that has it, where the sink takes it at once. */
#include "publisher_rig.h"

static void take_at_once(void) {
    pthread_mutex_lock(&rig->lock);
    rig->sink.takes_at_once = true;
    pthread_mutex_unlock(&rig->lock);
}

static void push_alone(struct job *job) {
    publisher_push(rig->publisher, &job, 1);
}

static bool was_sent_here(size_t index) {
    return pthread_equal(rig->sink.senders[index], pthread_self());
}

TEST(a_result_alone_is_sent_by_its_own_thread_and_is_over_at_once) {
    take_at_once();
    struct job *job = encoded_job(ERR_OK);
    job->key_queue = (struct key_queue *)&job;
    push_alone(job);
    assert_int_equal(rig->published_count, 1);
    assert_ptr_equal(rig->published[0], job);
    assert_true(was_sent_here(0));
    assert_ptr_equal(rig->queued[0], &job);
    assert_int_equal(rig->sink.settled_calls, 1);
    assert_int_equal(stop(-1), ERR_OK);
    assert_int_equal(rig->published_count, 1);
}

TEST(several_results_and_dead_letters_are_sent_by_the_publishers_thread) {
    take_at_once();
    struct job *several[] = {encoded_job(ERR_OK), encoded_job(ERR_OK)};
    publisher_push(rig->publisher, several, 2);
    push_alone(encoded_job(ERR_BAD_LAUNCH));
    wait_until(&rig->published_count, 3);
    assert_int_equal(stop(-1), ERR_OK);
    assert_int_equal(rig->sink.sent_count, 4);
    for (size_t i = 0; i < 4; i++) assert_false(was_sent_here(i));
}

TEST(a_result_does_not_overtake_one_that_is_not_acknowledged) {
    take_at_once();
    hold();
    struct job *first = encoded_job(ERR_OK), *second = encoded_job(ERR_OK);
    push_alone(first);
    assert_int_equal(rig->sink.sent_count, 1); /* sent, and held by the sink */
    push_alone(second);
    settle_next(2, ERR_OK);
    wait_until(&rig->published_count, 2);
    assert_true(was_sent_here(0));
    assert_false(was_sent_here(1));
    assert_ptr_equal(rig->published[0], first);
    assert_int_equal(stop(-1), ERR_OK);
}

TEST(a_sink_that_is_lost_by_what_is_sent_at_once_ends_and_takes_no_more) {
    take_at_once();
    hold();
    settle_next(1, ERR_BROKER);
    struct job *job = encoded_job(ERR_OK), *next = encoded_job(ERR_OK);
    push_alone(job);
    assert_int_equal(rig->failed_count, 1);
    assert_true(job->is_lost);
    push_alone(next);
    wait_until(&rig->published_count, 2);
    assert_true(next->is_lost);
    assert_int_equal(stop(-1), ERR_OK);
    assert_int_equal(rig->sink.sent_count, 1);
}

enum { PUSHERS = 4, PUSHES = JOBS_MAX / PUSHERS };

static struct job *pushed[PUSHERS][PUSHES];

/* Alone and in pairs. */
static void *push_all(void *own) {
    struct job **jobs = own;
    for (size_t i = 0, count; i < PUSHES; i += count) {
        count = i % 5 == 0 && i + 1 < PUSHES ? 2 : 1;
        publisher_push(rig->publisher, &jobs[i], count);
    }
    return NULL;
}

static size_t index_of(const struct job *job) {
    for (size_t i = 0; i < JOBS_MAX; i++)
        if (rig->published[i] == job) return i;
    fail();
    return JOBS_MAX;
}

TEST(answers_of_one_thread_go_out_in_its_order_however_they_are_sent) {
    pthread_t threads[PUSHERS];
    take_at_once();
    for (size_t i = 0; i < PUSHERS; i++)
        for (size_t k = 0; k < PUSHES; k++) pushed[i][k] = encoded_job(ERR_OK);
    for (size_t i = 0; i < PUSHERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, push_all, pushed[i]), 0);
    for (size_t i = 0; i < PUSHERS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(stop(-1), ERR_OK);
    assert_int_equal(rig->published_count, JOBS_MAX);
    for (size_t i = 0; i < PUSHERS; i++)
        for (size_t k = 1; k < PUSHES; k++)
            assert_true(index_of(pushed[i][k - 1]) < index_of(pushed[i][k]));
}

RUN_TESTS(P(a_result_alone_is_sent_by_its_own_thread_and_is_over_at_once),
    P(several_results_and_dead_letters_are_sent_by_the_publishers_thread),
    P(a_result_does_not_overtake_one_that_is_not_acknowledged),
    P(a_sink_that_is_lost_by_what_is_sent_at_once_ends_and_takes_no_more),
    P(answers_of_one_thread_go_out_in_its_order_however_they_are_sent))
