/**
 * What makes a job a long one. It runs in rounds, each one pass over its steps, until it says that
 * it is done, or its rounds or its time are over. A visit to the device runs a chunk of rounds; its
 * buffers stay there between two visits, and its lane is free for others.
 *
 * A single job counts as one instance. Rounds that an instance has run are those after which it was
 * done: they do not depend on how many rounds a chunk has.
 *
 * Units: bytes and nanoseconds, unless a name says otherwise. Lifetime: the job's. Threads: its
 * owner's.
 */
#ifndef JOB_LONG_JOB_H
#define JOB_LONG_JOB_H

#include "job/outcome.h"
#include "job/request.h"

/** What a job may show at most of itself, and how often (publish/feed.h). */
enum { PROGRESS_BYTES_MAX = 64 << 10, PROGRESS_EVERY_MS_MIN = 100 };

/** Why an instance runs no more; the numbers stand in results of arrays. */
enum long_end { LONG_END_NONE, LONG_END_UNTIL, LONG_END_REPEAT, LONG_END_TIME, LONG_END_STOP };

/** Bytes of an output that a job shows, in memory of the batch that is over; those of instances
 * are `stride` apart. */
struct shown_output {
    const uint8_t *data;
    uint64_t stride;
};

struct long_job {
    /* what the message says: decode/ */
    bool has_until;
    size_t until;      /* index of the buffer of flags */
    uint64_t time_ms;  /* from the first round on */
    uint32_t every_ms; /* it shows how far it is; 0: it does not */
    size_t shown_count;
    const struct job_output *shown;

    bool has_place; /* among those that run at a time (batch/ready.h) */

    /* how far it is: batch/chunk.h */
    bool is_on_device; /* its buffers have their start values there */
    bool is_stopped;   /* its sender wants no more rounds (pipeline/control.h) */
    uint64_t address;  /* of its block of the device pool, which pipeline/ends.h gives back */
    size_t bytes;      /* of that; 0: there is none */
    uint32_t rounds;   /* that have run */
    uint32_t chunk;    /* rounds of the next visit, or of the one that runs; 0: it reads outputs */
    uint64_t instance_rounds;   /* the same, of all instances together: what the receipt counts */
    bool is_shown;              /* with the chunk that comes, or is over */
    uint64_t show_ns;           /* when it is due */
    struct shown_output *found; /* by index as `shown` */
    uint64_t begun_ns;
    uint64_t round_ns; /* as measured in the last chunk; 0: none has run */
    uint32_t live_count;
    uint32_t *live; /* the instances that are not done, in order */
    /* by instance, once it is done */
    uint32_t *rounds_of;
    uint8_t *ends;                  /* enum long_end */
    uint32_t rows_on_device;        /* the table there is of so many live instances (coalesce.h) */
    struct job_telemetry telemetry; /* of all visits so far */
};

#endif
