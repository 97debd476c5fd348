/** The options of an executor, and the summary of its run. */
#ifndef PIPELINE_OPTIONS_H
#define PIPELINE_OPTIONS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "broker/reader.h"
#include "broker/sink.h"
#include "broker/source.h"
#include "pipeline/fitness.h"
#include "state/state.h"

struct board;

/** What an executor works with; owned by executor_run(), except the state. */
struct executor_life {
    struct source *source;
    struct sink *sink;
    struct sink *telemetry; /* NULL: none is published */
    struct sink *progress;  /* of long jobs; NULL: none is published */
    struct reader *control; /* NULL: no job is cancelled */
    struct state *state;    /* opened; NULL: nothing is noted for the next executor */
};

struct executor_options {
    const struct settings *settings;
    /** What SIGHUP reads again; all threads block that signal. NULL: SIGHUP does nothing. */
    const struct fitness_source *reloads;
    bool is_supervised;        /* the supervisor logs which changes do not reload */
    struct executor_life life; /* with `begin`: what that fills in */
    /**
     * Makes what the life needs, once the device, its programs and its memory are ready. Called
     * once, on the thread that runs the executor. After an error it leaves nothing. NULL: `life` is
     * there already.
     */
    enum err (*begin)(void *context, struct executor_life *ret, struct error *err);
    void *context;
    int spare_fd;        /* 0: its life begins at once; else it is a spare first (spare.h) */
    uint32_t device;     /* as the driver counts them */
    struct board *board; /* where it counts; NULL: on one of its own */
    /**
     * The GPU is lost to this process, and its state says so; so does its last report. Called once,
     * before anything else is tried, since calls of the driver may hang from now on. It need not
     * return. NULL: the run ends with the error.
     */
    void (*on_lost)(const struct error *err);
    /**
     * Becomes true when the worker is to drain and stop. Written by a signal handler, which may run
     * on any thread: drivers and client libraries have their own.
     */
    const atomic_bool *stop;
    const char *sysfs; /* where the kernel describes devices; NULL: LOCALITY_SYSFS */
};

struct executor_summary {
    uint64_t ok;         /* jobs with a result */
    uint64_t errors;     /* messages with an error result, a dead letter, or both */
    uint64_t elapsed_ns; /* from the first call of the source until no job was left in flight */
    bool is_complete;    /* the source came to its end: nothing is left to take */
    bool is_hung;        /* a thread hangs in a library, and was left: end by _exit() */
};

#endif
