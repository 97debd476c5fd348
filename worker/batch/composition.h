/**
 * A batch of quick jobs as it grows, and what tells jobs of one kind from others. Part of ready.h.
 *
 * Units: bytes and nanoseconds. Threads: pure, but for the durations.
 */
#ifndef BATCH_COMPOSITION_H
#define BATCH_COMPOSITION_H

#include "batch/durations.h"
#include "job/job.h"
#include "state/state.h"

/** So many jobs of other tenants, groups or arrays are passed over in search of one. */
enum { COMPOSITION_PASSED_MAX = 256 };

/** So many jobs of uneven kernels (state/state.h) share a batch at most: it may take all of their
 * time-outs. */
enum { COMPOSITION_UNEVEN_MAX = 4 };

/** Jobs side by side that launch the same are a run, which is measured as such. */
struct composition {
    size_t count;
    uint64_t bytes;
    uint64_t ns; /* of the runs before this one */
    uint64_t signature;
    uint32_t run;
    unsigned passed_over;
};

/** What a batch may be. */
struct composition_limits {
    uint64_t span_ns, slab_bytes;
};

/** The launch signature by which a job's times are kept: jobs that launch the same, but not
 * together, or not at all, take other times. */
uint64_t composition_signature(const struct job *job);

bool composition_same_signature(const struct job *a, const struct job *b);

/** Whether a kernel of the job is known to be. An array is no uneven job: it has its own time. */
bool composition_is_uneven(const struct state *state, const struct job *job);

/** What a batch may take in addition to its longest time-out: `span_ns`, or more if it is of uneven
 * jobs. */
uint64_t composition_allowance(struct job *const *jobs, size_t count, uint64_t span_ns);

/** A job that failed before shares no batch, nor does a long one. */
bool composition_runs_alone(const struct job *job);

/** Whether two slow jobs may share a batch. */
bool composition_same_group(const struct job *a, const struct job *b);

/** What a job takes of a slab. A first job that is larger leaves no room for others. */
uint64_t composition_job_bytes(const struct composition_limits *limits, const struct job *job);

/** Whether the job fits, and then it is in. */
bool composition_join(struct composition *composition, const struct composition_limits *limits,
    struct durations *durations, const struct job *job);

/**
 * `count` jobs, or one slice, shared a batch that took `ns`, beside so many slow ones.
 *
 * Jobs of several runs are taken to have had a part of it as large as was expected of each run:
 * what a signature took alone, when it was first seen, does not stand for ever. Of thousands of
 * signatures hardly one would fill a batch by itself again.
 */
void composition_learn(struct durations *durations, struct job *const *jobs, size_t count,
    bool is_ok, uint64_t ns, uint32_t beside);

#endif
