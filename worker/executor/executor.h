/**
 * The process that owns one GPU: it wires the stages together and is the only place that knows them
 * all.
 *
 *     source -> decode -> plan -> prepare -> ready queue -> lanes -> publisher -> sink
 *        ^                                                               |
 *        +----------------------- finished: may be committed ------------+
 *
 * What one message makes it hold is bounded: limits.jobs_in_flight and limits.bytes_in_flight count
 * from the arrival of a message until everything that answers it is acknowledged.
 *
 * Threads: executor_run() is the intake thread. It logs failures, each once.
 */
#ifndef EXECUTOR_EXECUTOR_H
#define EXECUTOR_EXECUTOR_H

#include <signal.h>

#include "broker/reader.h"
#include "broker/sink.h"
#include "broker/source.h"
#include "executor/fitness.h"
#include "state/state.h"

struct executor_summary {
    uint64_t ok;     /* jobs with a result */
    uint64_t errors; /* messages with an error result, a dead letter, or both */
    uint64_t elapsed_ns;
    bool is_complete; /* the source came to its end: nothing is left to take */
};

struct executor_options {
    const struct settings *settings;
    /** What SIGHUP, which all threads block, reads again; NULL: nothing does. */
    const struct fitness_source *reloads;
    bool is_supervised;     /* another process says what of it does not reload */
    struct source *source;  /* owned */
    struct sink *sink;      /* owned */
    struct sink *telemetry; /* owned; NULL: none is published */
    struct reader *control; /* owned; NULL: no job is cancelled */
    uint32_t device;        /* as the driver counts them */
    struct state *state;    /* opened; NULL: nothing is noted for the next executor */
    /**
     * The GPU is lost to this process, and `state` says so. Called once, before anything else is
     * tried, and need not return: the driver may never do again. NULL: the run ends with the error.
     */
    void (*on_lost)(const struct error *err);
    /** Becomes 1 when the worker is to drain and stop; written by a signal handler. */
    const volatile sig_atomic_t *stop;
};

/**
 * Runs until the source ends, `stop` is set, or something breaks that no single job can answer for.
 *
 * ERR_OK       drained: every message that was taken is answered, or handed back: jobs that waited
 *              to be tried again when `stop` was set were not committed, and come again.
 * ERR_TIMEOUT  drain_timeout_ms passed first: threads may still run, so the process must end with
 *              _exit(). What was not answered was not committed and comes again.
 * ERR_GPU_*    the GPU is lost to this process; as above, nothing is committed that was not
 * answered. ERR_CONFIG, ERR_BROKER, ERR_IO, ERR_NO_MEMORY, ...  what the message says.
 */
MUST_CHECK enum err executor_run(
    const struct executor_options *options, struct executor_summary *summary, struct error *err);

#endif
