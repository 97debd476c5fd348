/**
 * The jobs of a world: what senders send, and what the answer must be. Threads: the first of the
 * world.
 */
#ifndef TESTS_WORLD_JOB_H
#define TESTS_WORLD_JOB_H

#include <msgpack.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

enum job_kind {
    JOB_SINGLE,
    JOB_ARRAY,
    JOB_OF_UNKNOWN_PROGRAM,             /* its answer is an error */
    JOB_WITHOUT_TIME,                   /* so is its: the deadline has passed */
    JOB_OF_STATIC,                      /* with the bytes of a static that all of them share */
    JOB_OF_BLOB,                        /* with a static that only the blob store has */
    JOB_UNDECODABLE,                    /* its answer is a dead letter */
    JOB_OF_RESIDENT,                    /* adds to what its key keeps; needs the order of keys */
    JOB_SENT_BY_CHANCE,                 /* these are */
    JOB_OF_POISON = JOB_SENT_BY_CHANCE, /* ends its executor; its answer is the verdict */
    JOB_WITH_POISON,                    /* an array, one instance of which ends its executor */
    JOB_OF_LARGE_RESULT,                /* its answer is too large for a topic of 2000 bytes */
    JOB_KINDS
};

/** The bytes of a job, to be freed. */
struct slice job_encode(enum job_kind kind, size_t number);

/** A message of the control topic that cancels that job, to be freed. */
struct slice job_encode_cancel(size_t number);

/** The number of the job that a result is of; SIZE_MAX: of none. */
size_t job_number_of(const msgpack_object *result);

/** How many answers a report of telemetry tells of. */
size_t job_count_told(const msgpack_object *report);

/** Whether the answer says that the job was cancelled. */
bool job_is_cancelled_by(const msgpack_object *result);

/** What the resident is after the job, in its answer; false: it has none, as it failed. */
struct job_resident {
    size_t generation, sum; /* of the numbers of all jobs since it was created */
};
bool job_find_resident(const msgpack_object *result, struct job_resident *ret);

/** Whether it has failed, and was not cancelled: a dead letter says so, too. */
bool job_has_failed(const msgpack_object *result);

/** Whether a dead letter of the job may say that this is wrong with it. */
bool job_may_fail_with(enum job_kind kind, const char *code);

/** Whether the result is the one that this job must have; if not, tells what it says. */
bool job_is_answered_by(enum job_kind kind, size_t number, const msgpack_object *result);

#endif
