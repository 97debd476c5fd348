/**
 * Jobs that provide statics which other jobs in flight name by digest alone. Part of prepare.h.
 *
 * A job *provides* a static while it has the payload with it: from when the job is decoded until
 * the payload is on the device, or until the job has ended. A job that names the same digest
 * without bytes waits for the provider, if the provider was taken earlier. Threads decode side by
 * side, so the job that waits may be decoded first. A job never waits for one that was taken later,
 * so no two jobs wait for each other.
 *
 * Messages are numbered as they are taken. Whether a provider is ahead is known once all messages
 * ahead are decoded. A job that waits holds no memory but its own.
 *
 * Memory: a note for each digest that jobs in flight provide. Lifetime: at providers_destroy() no
 * job waits, and none provides anything. Threads: any.
 */
#ifndef PREPARE_PROVIDERS_H
#define PREPARE_PROVIDERS_H

#include "gpu/statics.h"
#include "job/job.h"

/** Nothing is provided yet. NULL when memory is short. */
struct providers *providers_create(void);
void providers_destroy(struct providers *providers); /* NULL is fine */

/**
 * Numbers a message that is about to be decoded; PROVIDERS_UNDECODED_MAX at most may be at a time.
 * One thread, that of the intake.
 */
void providers_number(struct providers *providers, struct delivery *delivery);

enum { PROVIDERS_UNDECODED_MAX = 16384 };

/**
 * Notes what the decoded job provides. Where memory is short nothing is noted, and jobs that need
 * the static may fail as if no job provided it.
 */
void providers_add(struct providers *providers, struct job *job);

/** What these messages provide is known now, or they will not be decoded. */
void providers_decoded(struct providers *providers, const uint64_t *numbers, size_t count);

/**
 * Whether a job ahead of this one provides the digest. Waits until all messages ahead are decoded,
 * so the caller must have decoded its own.
 */
bool providers_are_ahead(
    struct providers *providers, const struct job *job, const struct digest *digest);

/**
 * Keeps a job until the static of its buffer `index` is there or no job provides it any more.
 * False: no job provides it, and the caller still owns the job.
 */
MUST_CHECK bool providers_wait(struct providers *providers, struct job *job, size_t index);

/**
 * The static of the job's buffer `index`, which it provided, is on the device: returns the jobs
 * that waited for it, linked by `next_waiting`, each with a reference. NULL, without
 * taking a lock, where the job does not provide it.
 */
struct job *providers_arrived(
    struct providers *providers, struct statics *statics, struct job *job, size_t index);

/**
 * The job has ended and provides nothing any more. Returns the jobs for which no provider is left,
 * linked as above. With `is_left` the job goes to another worker unanswered, and those of its
 * partition are marked to go with it.
 */
struct job *providers_end(struct providers *providers, struct job *job, bool is_left);

/** The jobs that still wait, when a run ends before they do. */
struct job *providers_take_waiting(struct providers *providers);

/** Keeps a job that cannot go on, since the threads for it have ended; and takes those kept. */
void providers_strand(struct providers *providers, struct job *job);
struct job *providers_take_stranded(struct providers *providers);

#endif
