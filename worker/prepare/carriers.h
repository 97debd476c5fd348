/**
 * Statics that jobs bring with them while other jobs, which name the digest alone, are under way.
 * Part of prepare.h.
 *
 * A job *carries* a static from when it is decoded until the payload is on the device for it, or
 * until the job has ended. A job that names the same digest without bytes, and was taken after the
 * carrier, waits for that: threads decode side by side, so it may well be decoded before the
 * carrier is. It never waits for a job that was taken later, and so for none that waits for it.
 *
 * Messages are numbered as they are taken; whether a carrier is ahead is known once all messages
 * ahead are decoded. Jobs that wait hold nothing but themselves.
 *
 * Memory: a note for each digest that jobs in flight carry. Lifetime: nobody waits, and no job
 * carries anything, at carriers_destroy(). Threads: any.
 */
#ifndef PREPARE_CARRIERS_H
#define PREPARE_CARRIERS_H

#include "gpu/statics.h"
#include "job/job.h"

/** Nothing is carried. NULL when memory is short. */
struct carriers *carriers_create(void);
void carriers_destroy(struct carriers *carriers); /* NULL is fine */

/**
 * Numbers a message that is about to be decoded; CARRIERS_UNDECODED_MAX at most may be at a time.
 * One thread, that of the intake.
 */
void carriers_number(struct carriers *carriers, struct delivery *delivery);

enum { CARRIERS_UNDECODED_MAX = 1024 };

/** Notes what the decoded job carries. Without memory for it others may miss what it brings. */
void carriers_add(struct carriers *carriers, struct job *job);

/** What these messages carry is known now, or they will not be decoded. */
void carriers_decoded(struct carriers *carriers, const uint64_t *numbers, size_t count);

/**
 * Whether a job ahead of this one carries the digest. Waits until all messages ahead are decoded:
 * so the caller's own ones are.
 */
bool carriers_are_ahead(
    struct carriers *carriers, const struct job *job, const struct digest *digest);

/**
 * Keeps a job until the static of its buffer `index` is there or nobody carries it any more. False:
 * nobody does, and it is the caller's still.
 */
MUST_CHECK bool carriers_wait(struct carriers *carriers, struct job *job, size_t index);

/**
 * The static of the job's buffer `index`, which it carried, is on the device: returns the jobs that
 * waited for it, linked by `next_waiting`, each with a reference. No more than a look where the job
 * does not carry it.
 */
struct job *carriers_arrived(
    struct carriers *carriers, struct statics *statics, struct job *job, size_t index);

/**
 * The job has ended and carries nothing any more. Returns jobs that wait for nobody now, linked as
 * above. Where it `is_left` to others unanswered, those of its partition are marked to be left too.
 */
struct job *carriers_end(struct carriers *carriers, struct job *job, bool is_left);

/** The jobs that still wait, when a run ends before they do. */
struct job *carriers_take_waiting(struct carriers *carriers);

/** Keeps a job that was to go on when the threads for it had ended; and those that were kept. */
void carriers_strand(struct carriers *carriers, struct job *job);
struct job *carriers_take_stranded(struct carriers *carriers);

#endif
