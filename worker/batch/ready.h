/**
 * Jobs that are ready for the device, and who of them shares a batch. All of that policy is here;
 * what it knows of times is durations.h's.
 *
 * A job is quick where one alone takes at most `span_ns`, as measured, and slow where it takes
 * longer or is not known yet. Quick jobs wait in one queue. A batch of them holds jobs of one
 * tenant that follow each other in it, not counting those of other tenants in between, whose
 * expected times fit `span_ns` together; beyond some, no more than a lane's share of what waits.
 *
 * Slow jobs gather by launch signature and tenant, and groups take turns. A batch of them holds one
 * group's alone, as many as durations_allow() says: so long as they take about as long as one. A
 * batch of slow jobs has its lane to itself: no quick job is behind it. While quick jobs come, slow
 * ones have at most half of the lanes, and a single lane alternates. A signature of which nothing
 * is known runs one job, in one lane, and the others of it wait to learn from that.
 *
 * All batches: their bytes fit the slab together. A job that failed before runs alone, lest it
 * spoil another batch.
 *
 * Lifetime: jobs are owned by whoever takes them. Threads: any.
 */
#ifndef BATCH_READY_H
#define BATCH_READY_H

#include "base/error.h"
#include "prepare/prepare.h"

enum { READY_LANES_MAX = 64 };

struct ready_options {
    uint32_t lanes; /* READY_LANES_MAX at most */
    uint32_t batch_jobs_max;
    uint64_t span_ns, slab_bytes;
    uint32_t multiprocessors; /* of the device */
};

struct ready;

/** NULL when memory is short. */
struct ready *ready_create(const struct ready_options *options);

/** It is empty, or its jobs are owned elsewhere; NULL is fine. */
void ready_destroy(struct ready *ready);

/** Adds jobs; not once it is closed. */
void ready_push(struct ready *ready, struct job *const *jobs, size_t count);

/** What a lane takes at a time. */
struct ready_batch {
    size_t count;
    bool is_slow;     /* nothing else goes into the lane until ready_leave() */
    uint64_t span_ns; /* what it is expected to take, or may without harm */
};

/**
 * Takes the jobs of a lane's next batch, with room for options.batch_jobs_max. `is_busy`: batches
 * are in flight in the lane, none of them slow; then it does not wait. No jobs: none for a busy
 * lane, or closed and empty.
 */
struct ready_batch ready_take(struct ready *ready, uint32_t lane, bool is_busy, struct job **jobs);

/** The lane's slow batch is over, or was never begun. */
void ready_leave(struct ready *ready, uint32_t lane);

/**
 * `count` jobs of the signature of `first` shared a batch of `lane` that took `ns`; before
 * ready_leave(). What failed says little, and counts only until something went well.
 */
void ready_learn(struct ready *ready, uint32_t lane, const struct job *first, size_t count,
    bool is_ok, uint64_t ns);

/** Whether jobs are learned from together: they launch the same. */
bool ready_same_signature(const struct job *a, const struct job *b);

/** No more pushes; what is inside can still be taken. Wakes all lanes. */
void ready_close(struct ready *ready);

/** Any job; NULL where there is none. Once the lanes have stopped. */
struct job *ready_pop(struct ready *ready);

size_t ready_count(struct ready *ready);

#endif
