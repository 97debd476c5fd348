/**
 * One executor as its supervisor sees it: a process that is restarted when it dies, and what is
 * known of its device. Private to supervise/. Threads: the supervisor's only.
 */
#ifndef SUPERVISE_EXECUTORS_H
#define SUPERVISE_EXECUTORS_H

#include "metrics/board.h"
#include "state/state.h"
#include "supervise/options.h"
#include "supervise/spare.h"

enum standing {
    STANDING_RUNNING,
    STANDING_KILLED,  /* by us; it has to die within CHILD_DEATH_MS */
    STANDING_WAITING, /* for its next start */
    STANDING_ENDED,   /* it ended itself, or everything stops */
    STANDING_UNHEALTHY
};

struct executor {
    const struct supervise_options *options;
    const struct probed_device *device;
    char name[72]; /* for the log: "gpu 0 (GPU-0a1b...)" */
    char *state_path;
    enum standing standing;
    pid_t pid;
    uint64_t life;         /* its number, which the process knows */
    struct state *watched; /* a copy of its state file; NULL until its life has begun */
    int exit_code;         /* ENDED, UNHEALTHY */
    const char *unhealthy; /* the reason, in one word; "" while it is healthy */

    struct spare spare;
    bool was_spare; /* the process */

    uint64_t start_ns;   /* when the next process may be started */
    uint64_t started_ns; /* RUNNING */
    uint64_t killed_ns;  /* KILLED */
    bool is_unseen;      /* its state file cannot be read any more; this was logged */
    bool is_hung;        /* KILLED because of `overdue` */
    struct state_overdue overdue;
    uint32_t overdue_looks; /* how many looks in a row have found it */
    bool is_stalled;        /* KILLED because of `stall` */
    struct state_stall stall;
    uint32_t stall_looks; /* as above */
    struct state_waits waits;

    uint32_t deaths; /* within the window, without a job to blame and without progress */
    uint64_t first_death_ns;
    uint32_t refusals; /* by the brokers, in a row of short lives, whatever those have answered */
    uint64_t finished; /* messages answered, when it last died */
    bool has_failed_jobs; /* in any life */

    /* for metrics alone */
    struct board *board; /* on which each of its lives counts */
    int board_fd;
    uint64_t starts, deaths_of[STATE_DEATH_KINDS];
    struct state_summary left; /* what its last ended life left; empty before that */
};

/** ERR_IO, ERR_NO_MEMORY; executor_fini() is the caller's then as well. */
MUST_CHECK enum err executor_init(struct executor *executor,
    const struct supervise_options *options, const struct probed_device *device, struct error *err);
void executor_fini(struct executor *executor);

/** The process `executor->pid` has ended with this wait status. */
void executor_reap(struct executor *executor, int status, bool is_stopping);

/** Reaps the spare, if it has ended; before executor_reap(), so that a dead one takes over nothing.
 */
void executor_reap_spare(struct executor *executor);

/**
 * Starts the process when it is due, or lets the spare take over; watches what it does; keeps a
 * spare. Call it again and again.
 */
void executor_tend(struct executor *executor, uint64_t now_ns, bool is_stopping);

/** Asks the process to reload its configuration and programs; another spare is started with them.
 */
void executor_reload(struct executor *executor);

/** Asks the process to finish its jobs and end. */
void executor_stop(struct executor *executor);

/** Kills the process. */
void executor_kill(struct executor *executor, uint64_t now_ns);

bool executor_is_over(const struct executor *executor);

#endif
