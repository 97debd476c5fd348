/**
 * Jobs that are ready for the device, and the policy that decides which of them share a batch.
 * durations.h keeps the measured times.
 *
 * A job is quick if one alone takes at most `span_ns`, as measured; a fourth of it, if more of them
 * run side by side. It is slow if it takes longer or has not been measured. Quick jobs wait in one
 * queue. A batch of quick jobs holds jobs of one tenant in the order of the queue, skipping those
 * of other tenants; their expected times add up to `span_ns` at most. Beyond a few jobs, a lane
 * takes no more than its share.
 *
 * Slow jobs gather by launch signature and tenant, and the groups take turns. A batch of slow jobs
 * is of one group: as many as durations_allow() says, that is, as long as together they take about
 * as long as one, or up to four times as long where that makes each of them much cheaper. It has
 * its lane to itself: no quick job waits behind it there. Another batch of its signature does, so
 * that the host stages it meanwhile, if it is nobody else's turn and a job takes a few spans at
 * most: with longer ones another lane might be free before. While quick jobs come, or quick slices
 * of arrays, slow jobs get at most half of the lanes, and a single lane alternates. Of a signature
 * that is not known yet, one job runs, in one lane, and the others wait for its measured time.
 *
 * An array is taken in slices (array.h), each as large as a batch of so many jobs might be; lanes
 * that are free share it, and several arrays take turns. Of an array that is not known, the first
 * slice is of as many instances as run side by side. A slice that is expected to take at most
 * `span_ns` is as quick as a quick job; another has its lane to itself, as slow jobs have. So has a
 * slice of instances with many launches each: it may take longer, and quick jobs run between its
 * launches. Slices and slow jobs take turns, too. When it is the turn of a slow one, lanes with
 * batches in flight take nothing more, until one of them is empty for it.
 *
 * A long job (chunk.h) is taken chunk by chunk, alone, as a slow job is: between two chunks it
 * stands behind the others. So many as may run at a time have begun, and hold memory of the device;
 * the others wait until one of these has ended.
 *
 * Jobs of kernels that are known to be uneven (state/state.h) are slow ones, however quick they
 * were: COMPOSITION_UNEVEN_MAX share a batch, and the watchdog allows them all of their time-outs.
 *
 * The bytes of a batch always fit the slab. A job that failed before runs alone, so that it cannot
 * spoil another batch.
 *
 * Lifetime: the caller of ready_take() owns the jobs. Threads: any.
 */
#ifndef BATCH_READY_H
#define BATCH_READY_H

#include "batch/ready_policy.h"

enum {
    /* Messages that are claimed together: more take fewer locks, but no one thread should copy many
     * bytes while others have nothing to do. */
    READY_CLAIM_MAX = 32,
    READY_CLAIM_BYTES_MAX = 512 << 10,
    READY_LENT_LANE = 0
};

struct ready;

/** NULL when memory is short. */
struct ready *ready_create(const struct ready_options *options);

/** Call it when the queue is empty or its jobs are owned elsewhere. NULL is fine. */
void ready_destroy(struct ready *ready);

/** Adds jobs; not after ready_close(). */
void ready_push(struct ready *ready, struct job *const *jobs, size_t count);

/** A long job that has run a chunk waits for its next one, also after ready_close(): its lane goes
 * on until the queue is empty. */
void ready_put_back(struct ready *ready, struct job *job);

/** A long job that has run a chunk elsewhere goes on in the lanes. False: they take no more. */
MUST_CHECK bool ready_take_over(struct ready *ready, struct job *job);

/** A long job that a lane has had does not come back: call it before the job is anybody else's. */
void ready_end_long(struct ready *ready, struct job *job);

/** How many long jobs have begun. */
size_t ready_long_count(struct ready *ready);

/** From now on long jobs stay in the queue, or do so no more; once it is closed they do not.
 * Returns how many are there: none of them is on the device. */
size_t ready_park_long(struct ready *ready, bool are_parked);

/**
 * `count` messages of `bytes` altogether wait to be admitted: decoded, planned, and pushed here as
 * jobs. The lanes admit them, a few at a time, when they have no whole batch to run; while no lane
 * waits for work, so do the threads of ready_wait_for_messages(). Returns how many wait now.
 */
size_t ready_offer(struct ready *ready, size_t count, uint64_t bytes);

/** For another thread that has time: it admits so many messages. `most` at most, which is up to
 * READY_CLAIM_MAX, and of large ones as many as have READY_CLAIM_BYTES_MAX, or one. Whoever claims
 * messages, as a lane or here, calls ready_admitted() for as many. */
size_t ready_claim(struct ready *ready, size_t most);

/**
 * The same for admission threads: waits for messages. 0: ready_close_offers() was called, and no
 * messages are left.
 */
size_t ready_wait_for_messages(struct ready *ready);

/** `count` messages that were claimed have been admitted: their jobs are pushed, or elsewhere. */
void ready_admitted(struct ready *ready, size_t count);

/** No more messages are offered. Waits until all that were claimed have been admitted: what comes
 * after admission may end then. */
void ready_close_offers(struct ready *ready);

/**
 * Takes the jobs of a lane's next batch into `jobs`, which has room for options.batch_jobs_max.
 * `is_busy`: the lane has batches in flight; then the call does not wait, and if they are slow it
 * returns only slow jobs of their signature, and no messages. Returns messages if there are fewer
 * jobs than a batch may have, or none that may run now. Returns nothing if there is nothing for a
 * busy lane, when the queue is closed and empty, or when the lane was lent and comes back with a
 * batch in flight.
 */
struct ready_batch ready_take(struct ready *ready, uint32_t lane, bool is_busy, struct job **jobs);

/**
 * Lends READY_LENT_LANE to a thread that has a few messages in hand, if all lanes wait and there is
 * nothing for them: waking one up would take longer than short jobs. Until ready_take_short() no
 * lane is woken for what is pushed. The thread gives it back before ready_close().
 */
bool ready_borrow(struct ready *ready);

/** Takes a batch for the lent lane, as ready_take() does, of quick jobs, if these are short; the
 * other jobs that were pushed are the other lanes'. */
struct ready_batch ready_take_short(struct ready *ready, struct job **jobs);

/** The lane is its own thread's again, which goes on with it if it `is_busy`: with a batch in
 * flight. A lane is woken for what there is. */
void ready_give_back(struct ready *ready, bool is_busy);

/** Makes `ret` the slice that was taken. */
void ready_make_slice(struct ready *ready, const struct ready_batch *batch, struct job *ret);

/** The slice has its lane now: nothing is before it there. */
void ready_run_slice(struct ready *ready, struct job *slice);

/**
 * A slice has ended, as its outcome says, or was not run. True: it was the last one of its array,
 * which the caller owns from then on, with its whole outcome. After an error of a slice its array
 * leaves the queue.
 */
bool ready_end_slice(struct ready *ready, struct job *slice);

/** The lane's last slow batch is over, or was never begun. */
void ready_leave(struct ready *ready, uint32_t lane);

/**
 * `count` jobs, or one slice, shared a batch of `lane` that took `ns`. Call it before
 * ready_leave(). `is_ok`: none of them failed; the time of a failed batch is used only until one
 * has gone well.
 */
void ready_learn(struct ready *ready, uint32_t lane, struct job *const *jobs, size_t count,
    bool is_ok, uint64_t ns);

/** Ends pushes; jobs in the queue can still be taken. Wakes all lanes. */
void ready_close(struct ready *ready);

/** Takes any job; NULL if there is none. Call it when the lanes have stopped; of an array that they
 * had begun, no slice is in flight then. */
struct job *ready_pop(struct ready *ready);

size_t ready_count(struct ready *ready);

#endif
