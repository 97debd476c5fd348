/**
 * What is in flight: messages that were taken and have not ended, the host memory that they hold,
 * and how many of their jobs hold memory of the pools, or wait for some. Whoever waits for room, or
 * for the end, waits here. Private to pipeline/.
 *
 * Units: messages, jobs, bytes. Lifetime: flight_init() to flight_fini(). Threads: any. Only these
 * functions change the counts. Who reads several at once holds the lock (flight_lock()); the
 * quarantine keeps its suspects and fetches under it as well (quarantine/suspects.h).
 */
#ifndef PIPELINE_FLIGHT_H
#define PIPELINE_FLIGHT_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/error.h"
#include "job/job.h"
#include "pipeline/options.h"

struct flight {
    pthread_mutex_t lock;   /* guards what follows */
    pthread_cond_t changed; /* a count fell, or something failed */
    uint32_t waiters;       /* for that */
    uint64_t messages, bytes;
    uint64_t bytes_max;     /* limits.bytes_in_flight of the current edition */
    uint64_t job_bytes_max; /* of a message's job and its result, as far as is known before any */
    uint64_t job_bytes;     /* the same, as seen; 0: none was */
    uint64_t holding, waiting_for_memory; /* jobs by their count (job/job.h) */
    uint64_t rooms; /* pinned ones of results that are on their way, which hold memory, too */
    struct executor_summary summary;
    atomic_bool has_failed; /* set under the lock; read anywhere */
    struct error failure;   /* the first one */
};

void flight_init(struct flight *flight, uint64_t job_bytes_max);
void flight_fini(struct flight *flight);

/** Messages are taken, which hold `bytes`. Returns what each of their jobs with its result is
 * expected to take, which counts on top. */
uint64_t flight_begin(struct flight *flight, uint64_t count, uint64_t bytes);

/** With the lock held: what that will be. To count each job with the largest result would keep the
 * lanes waiting, so it is what others before it turned out to take. */
uint64_t flight_expect(const struct flight *flight);

/** Messages are jobs now, which hold so much instead of what was reserved for them; the largest of
 * them tells what to expect of the next. */
void flight_decoded(struct flight *flight, uint64_t held, uint64_t reserved, uint64_t largest);

/** Messages are in flight no more. */
void flight_end(struct flight *flight, uint64_t count, uint64_t bytes);
uint64_t flight_messages(struct flight *flight);

/** Moves jobs into a count, out of the one that they were in. */
void flight_count_jobs(
    struct flight *flight, struct job *const *jobs, size_t count, enum job_count where);

/** Jobs that were counted as holding memory, and are not known any more, have given it back. */
void flight_release(struct flight *flight, uint64_t count);

/** A result is on its way from pinned memory; it has left. */
void flight_begin_room(struct flight *flight);
void flight_end_room(struct flight *flight);

/** Adds to the summary of the run: jobs that ended, and whether nothing is left to take. */
void flight_tally(struct flight *flight, uint64_t ok, uint64_t errors);
void flight_note_complete(struct flight *flight, bool is_complete);

/** The limit of `bytes` is another one: there may be room now. */
void flight_set_bytes_max(struct flight *flight, uint64_t bytes_max);

/** The run fails. True: with this error, which is the first. */
bool flight_fail(struct flight *flight, const struct error *err);
bool flight_has_failed(const struct flight *flight);

void flight_lock(struct flight *flight);
void flight_unlock(struct flight *flight);

/** Waits, with the lock held, until a count falls, something fails, or time is up. */
void flight_wait(struct flight *flight, uint32_t timeout_ms);

#endif
