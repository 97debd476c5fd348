/** A queue of ready jobs with made-up signatures and times, for tests of ready.h. */
#ifndef TESTS_BATCH_READY_RIG_H
#define TESTS_BATCH_READY_RIG_H

#include "batch/composition.h"
#include "batch/ready.h"
#include "plan/plan.h"
#include "testing.h"

enum { JOBS_MAX = 4096, LANES = 4, SLAB = 1 << 20, MULTIPROCESSORS = 128, LONG_JOBS = 2 };
static const uint64_t MS = 1000000, QUICK_NS = 20000, SLOW_NS = 40000000;

/* Signatures: of which kind the jobs are is up to the test. */
enum { A = 100, B = 200, C = 300, Q = 400 };

static struct ready *ready;
static struct job jobs[JOBS_MAX];
static struct plan plans[JOBS_MAX];
static size_t used;
static struct job *taken[LANES][256];

static int set_up_lanes_with(uint32_t lanes, const struct state *state) {
    const struct ready_options options = {.lanes = lanes,
        .batch_jobs_max = 256,
        .span_ns = 2 * MS,
        .slab_bytes = SLAB,
        .multiprocessors = MULTIPROCESSORS,
        .long_jobs_max = LONG_JOBS,
        .state = state};
    ready = ready_create(&options);
    used = 0;
    return ready == NULL;
}

static int set_up_lanes(uint32_t lanes) {
    return set_up_lanes_with(lanes, NULL);
}

static int set_up(void **state) {
    return set_up_lanes(LANES);
}

static int tear_down(void **state) {
    while (ready_pop(ready) != NULL) continue;
    ready_destroy(ready);
    return 0;
}

/* The job is not in the queue yet. */
static struct job *job_of(uint64_t signature) {
    assert_true(used < JOBS_MAX);
    size_t i = used++;
    plans[i] = (struct plan){.signature = signature, .job = &jobs[i]};
    jobs[i] = (struct job){.plan = &plans[i]};
    return &jobs[i];
}

/* As if so many jobs like this one had shared a batch. */
static void teach(struct job *job, size_t count, bool is_ok, uint64_t ns) {
    static struct job *like[JOBS_MAX];
    assert_true(count <= JOBS_MAX);
    for (size_t i = 0; i < count; i++) like[i] = job;
    ready_learn(ready, 0, like, count, is_ok, ns);
}

static inline void push(uint64_t signature, size_t count) {
    for (size_t i = 0; i < count; i++) {
        struct job *job = job_of(signature);
        ready_push(ready, &job, 1);
    }
}

static inline void know(uint64_t signature, uint32_t count, uint64_t ns) {
    teach(job_of(signature), count, true, ns);
}

static inline struct ready_batch take(uint32_t lane) {
    return ready_take(ready, lane, false, taken[lane]);
}

static inline void assert_batch(
    struct ready_batch batch, uint32_t lane, uint64_t signature, size_t count, bool is_slow) {
    assert_int_equal(batch.count, count);
    assert_int_equal(batch.is_slow, is_slow);
    for (size_t i = 0; i < count; i++) assert_int_equal(taken[lane][i]->plan->signature, signature);
}

#endif
