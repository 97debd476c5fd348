/* Proves: the order of jobs of a key. */
#include "key_order/key_order.h"

#include <pthread.h>
#include <stdlib.h>

#include "testing.h"

enum { JOBS = 200, JOBS_MAX = 300 };

struct rig {
    struct key_order *order;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_closed; /* on_passed() refuses */
    bool has_started;
    size_t passed_count, dropped_count;
    int64_t passed[JOBS];
    struct job *jobs[JOBS];
};

static struct job *make_job(const char *key, int64_t offset) {
    const struct delivery message = {
        .position = {.topic = "jobs", .partition = 0, .offset = offset},
        .has_key = true,
        .key = slice_of_text(key)};
    struct job *job = job_create(delivery_create(&message));
    assert_non_null(job);
    assert_non_null(job->delivery);
    job_move(job, JOB_DECODED);
    return job;
}

static void on_start(void *context) {
    ((struct rig *)context)->has_started = true;
}

/* Each job that passes is over at once, so that the one behind it passes. */
static bool on_passed(void *context, struct job *const *jobs, size_t count) {
    struct rig *rig = context;
    assert_true(rig->has_started);
    assert_true(count <= KEY_ORDER_GROUP_MAX);
    if (rig->is_closed) return false;
    for (size_t i = 0; i < count; i++) {
        struct key_queue *queue = jobs[i]->key_queue;
        pthread_mutex_lock(&rig->lock);
        rig->passed[rig->passed_count++] = jobs[i]->delivery->position.offset;
        pthread_cond_signal(&rig->changed);
        pthread_mutex_unlock(&rig->lock);
        job_destroy(jobs[i]);
        key_order_leave(rig->order, queue);
    }
    return true;
}

static void on_dropped(void *context, struct job *job) {
    struct rig *rig = context;
    pthread_mutex_lock(&rig->lock);
    rig->dropped_count++;
    pthread_cond_signal(&rig->changed);
    pthread_mutex_unlock(&rig->lock);
    job_destroy(job);
}

/* JOBS jobs of a key, of which the first has passed. */
static void rig_init(struct rig *rig) {
    struct error err;
    *rig = (struct rig){.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    const struct key_order_options options = {.width = 1,
        .jobs_max = JOBS_MAX,
        .on_start = on_start,
        .on_passed = on_passed,
        .on_dropped = on_dropped,
        .context = rig};
    assert_int_equal(key_order_start(&options, &rig->order, &err), ERR_OK);
    for (int i = 0; i < JOBS; i++) {
        bool passes;
        rig->jobs[i] = make_job("k", i);
        assert_int_equal(key_order_enter(rig->order, rig->jobs[i], &passes, &err), ERR_OK);
        assert_int_equal(passes, i == 0);
    }
    assert_int_equal(key_order_waiting_count(rig->order), JOBS - 1);
}

static void end_first(struct rig *rig) {
    struct key_queue *queue = rig->jobs[0]->key_queue;
    job_destroy(rig->jobs[0]);
    key_order_leave(rig->order, queue);
}

/* Until so many have passed or were dropped. */
static void wait_for(struct rig *rig, size_t count) {
    pthread_mutex_lock(&rig->lock);
    while (rig->passed_count + rig->dropped_count < count)
        pthread_cond_wait(&rig->changed, &rig->lock);
    pthread_mutex_unlock(&rig->lock);
}

static void rig_fini(struct rig *rig) {
    key_order_finish(rig->order);
    assert_int_equal(key_order_waiting_count(rig->order), 0);
    key_order_destroy(rig->order);
}

TEST(jobs_that_waited_for_others_of_their_key_pass_in_their_order) {
    struct rig rig;
    rig_init(&rig);
    end_first(&rig);
    wait_for(&rig, JOBS - 1);
    for (int i = 0; i < JOBS - 1; i++) assert_int_equal(rig.passed[i], i + 1);
    rig_fini(&rig);
    assert_int_equal(rig.dropped_count, 0);
}

TEST(every_job_behind_one_that_is_refused_is_dropped) {
    struct rig rig;
    rig_init(&rig);
    rig.is_closed = true;
    end_first(&rig);
    wait_for(&rig, JOBS - 1);
    rig_fini(&rig);
    assert_int_equal(rig.passed_count, 0);
    assert_int_equal(rig.dropped_count, JOBS - 1);
}

TEST(once_it_is_finished_those_that_wait_are_dropped_by_who_leaves) {
    struct rig rig;
    rig_init(&rig);
    key_order_finish(rig.order);
    end_first(&rig);
    assert_int_equal(rig.passed_count, 0);
    assert_int_equal(rig.dropped_count, JOBS - 1);
    assert_int_equal(key_order_waiting_count(rig.order), 0);
    key_order_destroy(rig.order);
}

TEST(those_that_are_taken_out_neither_pass_nor_are_dropped) {
    struct rig rig;
    rig_init(&rig);
    size_t count = 0;
    struct job *next, *job = key_order_take_waiting(rig.order, "jobs", 0);
    for (; job != NULL; job = next, count++) {
        next = job->next_in_key_queue;
        assert_null(job->key_queue);
        job_destroy(job);
    }
    assert_int_equal(count, JOBS - 1);
    end_first(&rig);
    rig_fini(&rig);
    assert_int_equal(rig.passed_count + rig.dropped_count, 0);
}

RUN_TESTS(T(jobs_that_waited_for_others_of_their_key_pass_in_their_order),
    T(every_job_behind_one_that_is_refused_is_dropped),
    T(once_it_is_finished_those_that_wait_are_dropped_by_who_leaves),
    T(those_that_are_taken_out_neither_pass_nor_are_dropped))
