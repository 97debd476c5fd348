/**
 * A worker of a world: an executor in a process of its own, between the Kafka clients of the worker
 * and the world's cluster. Threads: the first of the world.
 */
#ifndef TESTS_WORLD_WORKER_H
#define TESTS_WORLD_WORKER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "metrics/board.h"

#define WORLD_JOBS "jobs"
#define WORLD_RESULTS "results"
#define WORLD_DEAD_LETTERS "dead-letters"
#define WORLD_TELEMETRY "telemetry"
#define WORLD_CONTROL "control"

enum {
    WORKER_IS_REFUSED = 5, /* the status of one that the brokers refuse */
    WORKER_IS_LATE = 6, /* the status of one that was asked to stop, and whose device took longer */
    WORKER_LOST_GPU = 7,
    WORKER_LACKS_MEMORY = 8,
    WORKER_LACKS_DISK = 9
};

/* What its configuration says; of one that is broken, nothing is read. */
enum worker_edition { EDITION_FIRST, EDITION_CHANGED, EDITION_BROKEN };

/** What the lives of a worker have told of, each at its end in order. */
struct worker_summary {
    uint64_t ok, errors;
};

struct worker {
    pid_t process;
    const char *state;    /* the path of its state file */
    const char *programs; /* the path of their folder */
    const char *blobs;    /* the same, of the blob store */
    /* the path of its configuration, which SIGHUP has it read again; NULL: nothing does */
    const char *config;
    enum worker_edition edition;
    const char *other_programs; /* as `programs`, for EDITION_CHANGED */
    uint64_t owner;             /* of its state file */
    bool exactly_once, in_order, tells_telemetry;
    char name[64];        /* of its machine, and so of its transactions, which a restart keeps */
    bool may_lack_memory; /* as memory.h says */
    bool is_static;       /* it is a member of this name, too */
    bool is_cooperative;  /* its group is, and so are all of that */
    bool reads_latest;    /* auto.offset.reset */
    uint32_t poll_interval_ms;      /* max.poll.interval.ms; 0: the worker's own */
    uint32_t drain_timeout_ms;      /* the same */
    uint32_t batch_jobs;            /* the same, of batch.jobs */
    uint32_t jobs_max;              /* limits.jobs_in_flight; 0: more than there are in a world */
    char faults[128];               /* of its device (cpu_driver/cpu_driver.h) */
    atomic_bool *stop;              /* in the region */
    struct board *board;            /* what it counts and shows, also there */
    struct worker_summary *summary; /* there as well; NULL: nobody asks */
    bool tells;                     /* what it logs, to standard error */
    const char *log;                /* the path of a file for warnings, instead; NULL: none */
};

/** What workers read and write; so many partitions of jobs. */
void worker_make_topics(int32_t partitions);

/** Starts it, once more too. */
void worker_start(struct worker *worker);

/** Writes another configuration for it, and has it read that. */
void worker_reload(struct worker *worker, enum worker_edition edition);

/** What a supervisor notes for the next life of one that crashed, and ended with this status. */
void worker_note_crash(const struct worker *worker, int status);

#endif
