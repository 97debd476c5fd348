/* Proves: the order of jobs of a key. */
#include "key_order/key_queues.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/queue.h"
#include "testing.h"

static struct job *make_job(const char *key, int32_t partition, int64_t offset) {
    const struct delivery message = {
        .position = {.topic = "jobs", .partition = partition, .offset = offset},
        .has_key = key != NULL,
        .key = slice_of_text(key != NULL ? key : "")};
    struct job *job = job_create(delivery_create(&message));
    assert_non_null(job);
    assert_non_null(job->delivery);
    job_move(job, JOB_DECODED);
    return job;
}

static struct key_queues *make_queues(void) {
    struct key_queues *queues;
    struct error err;
    assert_int_equal(key_queues_create(1, &queues, &err), ERR_OK);
    return queues;
}

static bool enter(struct key_queues *queues, struct job *job) {
    struct error err;
    bool passes = false;
    assert_int_equal(key_queues_enter(queues, job, &passes, &err), ERR_OK);
    return passes;
}

/* The job is over; the next of its queue. */
static struct job *finish(struct key_queues *queues, struct job *job) {
    struct key_queue *queue = job->key_queue;
    job_destroy(job);
    return key_queues_leave(queues, queue);
}

TEST(jobs_of_a_key_pass_one_after_the_other_in_their_order) {
    struct key_queues *queues = make_queues();
    struct job *jobs[4];
    for (int i = 0; i < 4; i++) {
        jobs[i] = make_job("k", 0, i);
        assert_int_equal(enter(queues, jobs[i]), i == 0);
    }
    assert_int_equal(key_queues_waiting_count(queues), 3);
    for (int i = 0; i < 3; i++) assert_ptr_equal(finish(queues, jobs[i]), jobs[i + 1]);
    assert_null(finish(queues, jobs[3]));
    assert_int_equal(key_queues_waiting_count(queues), 0);
    key_queues_destroy(queues);
}

TEST(as_many_jobs_of_a_key_as_the_width_says_are_under_way_at_a_time) {
    struct key_queues *queues;
    struct error err;
    struct job *jobs[6];
    assert_int_equal(key_queues_create(3, &queues, &err), ERR_OK);
    for (int i = 0; i < 6; i++) {
        jobs[i] = make_job("k", 0, i);
        assert_int_equal(enter(queues, jobs[i]), i < 3);
    }
    assert_ptr_equal(finish(queues, jobs[1]), jobs[3]);
    assert_ptr_equal(finish(queues, jobs[0]), jobs[4]);
    assert_ptr_equal(finish(queues, jobs[4]), jobs[5]);
    assert_int_equal(key_queues_waiting_count(queues), 0);
    for (int i = 2; i < 6; i++)
        if (i != 4) assert_null(finish(queues, jobs[i]));
    key_queues_destroy(queues);
}

TEST(jobs_that_wait_are_taken_out_of_the_queues_of_a_partition) {
    struct key_queues *queues = make_queues();
    struct job *jobs[9], *taken;
    for (int i = 0; i < 9; i++) {
        jobs[i] = make_job("k", i % 3, i);
        assert_int_equal(enter(queues, jobs[i]), i < 3);
    }
    taken = key_queues_take_waiting(queues, "jobs", 1);
    assert_ptr_equal(taken, jobs[4]);
    assert_ptr_equal(taken->next_in_key_queue, jobs[7]);
    assert_null(jobs[7]->next_in_key_queue);
    assert_null(finish(queues, jobs[1]));
    assert_int_equal(key_queues_waiting_count(queues), 4);
    size_t count = 0;
    for (taken = key_queues_take_waiting(queues, NULL, 0); taken != NULL;
         taken = taken->next_in_key_queue) {
        assert_null(taken->key_queue);
        count++;
    }
    assert_int_equal(count, 4);
    assert_null(finish(queues, jobs[0]));
    assert_null(finish(queues, jobs[2]));
    for (int i = 3; i < 9; i++) assert_null(finish(queues, jobs[i]));
    key_queues_destroy(queues);
}

TEST(other_keys_and_partitions_do_not_wait) {
    struct key_queues *queues = make_queues();
    struct job *jobs[] = {make_job("k", 0, 0), make_job("l", 0, 1), make_job("k", 1, 0),
        make_job("", 0, 2), make_job("kk", 0, 3)};
    const size_t count = sizeof jobs / sizeof jobs[0];
    for (size_t i = 0; i < count; i++) assert_true(enter(queues, jobs[i]));
    for (size_t i = 0; i < count; i++) assert_null(finish(queues, jobs[i]));
    key_queues_destroy(queues);
}

TEST(jobs_without_a_key_wait_only_for_residents) {
    struct key_queues *queues = make_queues();
    const struct job_buffer resident = {.source = BUFFER_RESIDENT};
    struct job *plain[2], *users[2];
    for (int i = 0; i < 2; i++) {
        plain[i] = make_job(NULL, 0, i);
        users[i] = make_job(NULL, 0, 2 + i);
        users[i]->buffer_count = 1;
        users[i]->buffers = &resident;
        assert_true(enter(queues, plain[i]));
        assert_int_equal(enter(queues, users[i]), i == 0);
    }
    assert_ptr_equal(finish(queues, users[0]), users[1]);
    assert_null(finish(queues, users[1]));
    for (int i = 0; i < 2; i++) assert_null(finish(queues, plain[i]));
    key_queues_destroy(queues);
}

TEST(a_queue_that_has_ended_begins_anew) {
    struct key_queues *queues = make_queues();
    for (int i = 0; i < 3; i++) {
        struct job *job = make_job("k", 0, i);
        assert_true(enter(queues, job));
        assert_null(finish(queues, job));
    }
    key_queues_destroy(queues);
}

enum { KEYS = 7, JOBS = 7000, THREADS = 4 };

/* Threads that finish jobs while one lets them in, as lanes and intake do. */
struct stress {
    struct key_queues *queues;
    struct queue *passed;
    atomic_int inside[KEYS];
    int64_t next_offset[KEYS]; /* the job's that passed; plain, so that a race is seen */
    atomic_int done;
};

static int key_of(const struct job *job) {
    return job->delivery->key.data[0] - 'a';
}

static void *finish_jobs(void *context) {
    struct stress *stress = context;
    void *item;
    while (queue_pop(stress->passed, &item, 1, -1) == 1) {
        struct job *job = item;
        int key = key_of(job);
        assert_int_equal(atomic_fetch_add(&stress->inside[key], 1), 0);
        assert_true(job->delivery->position.offset >= stress->next_offset[key]);
        stress->next_offset[key] = job->delivery->position.offset + 1;
        atomic_fetch_sub(&stress->inside[key], 1);
        struct job *next = finish(stress->queues, job);
        if (next != NULL) assert_true(queue_push(stress->passed, next));
        if (atomic_fetch_add(&stress->done, 1) + 1 == JOBS) queue_close(stress->passed);
    }
    return NULL;
}

TEST(no_two_jobs_of_a_key_are_inside_at_once) {
    struct stress stress = {.queues = make_queues(), .passed = queue_create(JOBS)};
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, finish_jobs, &stress), 0);
    for (int i = 0; i < JOBS; i++) {
        const char key[] = {(char)('a' + i * i % KEYS), 0};
        struct job *job = make_job(key, 0, i);
        if (enter(stress.queues, job)) assert_true(queue_push(stress.passed, job));
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    assert_int_equal(stress.done, JOBS);
    assert_int_equal(key_queues_waiting_count(stress.queues), 0);
    queue_destroy(stress.passed);
    key_queues_destroy(stress.queues);
}

RUN_TESTS(T(jobs_of_a_key_pass_one_after_the_other_in_their_order),
    T(as_many_jobs_of_a_key_as_the_width_says_are_under_way_at_a_time),
    T(jobs_that_wait_are_taken_out_of_the_queues_of_a_partition),
    T(other_keys_and_partitions_do_not_wait), T(jobs_without_a_key_wait_only_for_residents),
    T(a_queue_that_has_ended_begins_anew), T(no_two_jobs_of_a_key_are_inside_at_once))
