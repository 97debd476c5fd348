/**
 * The jobs that are ready, and which of them run next, by the rules of ready.h.
 *
 * Units: nanoseconds of clock_ns(). Lifetime: from ready_policy_init(), in memory that is zero, to
 * ready_policy_fini(), when it is empty. Threads: one at a time, under the lock of ready.c;
 * `durations` any.
 */
#ifndef BATCH_READY_POLICY_H
#define BATCH_READY_POLICY_H

#include "batch/array_clock.h"
#include "batch/composition.h"
#include "batch/slow_groups.h"

enum {
    READY_LANES_MAX = ARRAY_CLOCK_LANES_MAX,
    READY_SHORT_NS = 100000, /* a lane is lent for jobs that together take so long at most */
    READY_FIRST_MS = 100 /* a signature's first batch is waited for; then others begin as well */
};

struct ready_options {
    uint32_t lanes; /* READY_LANES_MAX at most */
    uint32_t batch_jobs_max;
    uint64_t span_ns, slab_bytes;
    uint32_t multiprocessors;  /* of the device */
    uint32_t long_jobs_max;    /* that run at a time, and hold memory between two chunks */
    const struct state *state; /* knows uneven kernels; NULL: there are none */
    bool spins;                /* lanes that wait do not sleep (base/wakeup.h) */
};

/** What a lane takes at a time: jobs, or messages. */
struct ready_batch {
    size_t claimed;    /* messages that the lane admits; then there are no jobs */
    size_t count;      /* jobs */
    struct job *array; /* instead of jobs: the lane runs `slice` of it, and ends that */
    struct array_slice slice;
    bool is_slow;     /* the lane takes nothing else than more of these until ready_leave() */
    uint64_t span_ns; /* expected time of the batch, or the time that it may take */
};

struct ready_queue {
    struct job *first, *last; /* linked by place.next */
};

/** The slow batch that a lane has to itself, or had last. */
struct slow_lane {
    bool is_taken;
    uint64_t signature;
    uint64_t number; /* of all slow batches, when it was taken */
    uint32_t others; /* lanes that had one then */
    uint64_t taken_ns;
};

/** Only ready.c and ready_policy.c look into it. */
struct ready_policy {
    struct ready_options options;
    struct composition_limits limits;
    struct durations durations;
    size_t count;             /* of all jobs */
    struct ready_queue quick; /* in the order in which they came */
    struct slow_groups groups;
    struct ready_queue arrays; /* those with instances to be taken, in the order of their turns */
    struct ready_queue long_jobs; /* those that wait for a place; they do not count in `count` */
    uint32_t long_places;         /* taken */
    uint32_t long_queued;         /* long jobs here, with a place or without */
    bool are_long_parked;         /* they stay here */
    struct array_clock array_clock;
    uint64_t quick_ns;      /* when a quick job came, or a quick slice went, last; 0: none */
    bool is_turn_of_long;   /* of arrays and slow jobs, before quick jobs */
    bool is_turn_of_arrays; /* before slow jobs */
    struct slow_lane slow_lanes[READY_LANES_MAX];
    uint32_t slow_lane_count; /* of those that have a batch */
    uint64_t slow_batches;    /* so far */
};

void ready_policy_init(struct ready_policy *policy, const struct ready_options *options);
void ready_policy_fini(struct ready_policy *policy);

void ready_policy_add(struct ready_policy *policy, struct job *const *jobs, size_t count);

/** The long job does not come back: the next one has its place. */
void ready_policy_end_long(struct ready_policy *policy, struct job *job);

/** Whether nothing is left, also of what waits for a place. */
bool ready_policy_is_empty(const struct ready_policy *policy);

/** Takes any job; NULL if there is none. */
struct job *ready_policy_pop(struct ready_policy *policy);

/** Whether the jobs make a whole batch. If not, messages may still add to it. */
bool ready_policy_has_full_batch(const struct ready_policy *policy);

/** Whether a lane without batches may have something now. */
bool ready_policy_has_work(struct ready_policy *policy);

/** Whether what no lane may have now, one may have after READY_FIRST_MS. */
bool ready_policy_may_come_due(const struct ready_policy *policy);

/** What ready_take() returns, but for messages. `has_free_lane`: another lane waits. */
struct ready_batch ready_policy_take(struct ready_policy *policy, uint32_t lane, bool is_busy,
    bool has_free_lane, struct job **jobs);

/** What ready_take_short() returns. */
struct ready_batch ready_policy_take_short(struct ready_policy *policy, struct job **jobs);

/** The lane has batches in flight, or none any more. */
void ready_policy_note_lane(struct ready_policy *policy, uint32_t lane, bool is_running);

/** The lane's last slow batch is over, or was never begun. */
void ready_policy_leave(struct ready_policy *policy, uint32_t lane);

/** How many other slow batches may have had a part of the device while the lane's ran. A quick one
 * is over before others begin; without this it would seem slow beside them. */
uint32_t ready_policy_count_beside(const struct ready_policy *policy, uint32_t lane);

/** Something was learned about the signatures of these: groups of them that are quick wait with the
 * quick jobs. */
void ready_policy_learned(struct ready_policy *policy, struct job *const *jobs, size_t count);

/** Each as ready.h says. */
void ready_policy_make_slice(
    struct ready_policy *policy, const struct ready_batch *batch, struct job *ret);
void ready_policy_run_slice(struct ready_policy *policy, struct job *slice);
bool ready_policy_end_slice(struct ready_policy *policy, struct job *slice);

#endif
