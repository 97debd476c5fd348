/**
 * Whether a worker can work as it is configured: its programs are there and whole, one of them has
 * an image for the driver, and its folders can be used, librdkafka takes its keys, NVTX is what it
 * says, and http.listen is an address of this machine. What it finds keeps `run` from taking jobs,
 * and `check` reports it. No broker and no device is asked.
 *
 * Threads: any.
 */
#ifndef PIPELINE_FITNESS_H
#define PIPELINE_FITNESS_H

#include "base/problems.h"
#include "program/program.h"
#include "settings/changes.h"

/** Where a worker's configuration stands, and what the command line says in its place. */
struct fitness_source {
    const char *config;               /* "-" is standard input; NULL: all defaults */
    struct slice text;                /* what was read there before; data NULL: nothing was */
    const char *programs;             /* instead of programs.dir; NULL */
    const enum driver_choice *driver; /* instead of `driver`; NULL */
    bool is_file_run;    /* jobs come from a file: neither state.dir nor brokers are used */
    bool has_state_file; /* one is named: state.dir is not used */
    bool is_sandboxed;   /* an executor, which has fewer rights: it looks at the programs alone */
};

/**
 * Reads all that a worker needs, as `check`, the start of `run` and SIGHUP do alike. Every problem
 * is added, those of the folders, too. *settings are to be ended in any case, and the registry,
 * which shares with `earlier` what has not changed; NULL: a problem says why.
 */
struct registry *fitness_read(const struct fitness_source *source, const struct registry *earlier,
    struct settings *settings, struct problems *problems);

/** What is read again while a worker runs. */
struct reading {
    struct settings settings; /* those that do not reload as they were */
    struct registry *registry;
    struct fixed_changes changes; /* what that passed over */
};

/**
 * The same, where the worker began with `running`. ERR_CONFIG with the first problem and how many
 * there are, ERR_NO_MEMORY: there is nothing to end then.
 */
MUST_CHECK enum err fitness_read_again(const struct fitness_source *source,
    const struct settings *running, const struct registry *earlier, struct reading *ret,
    struct error *err);
void reading_fini(struct reading *reading);

/** Logs what changes at the next start alone; one line, or none. */
void reading_log_fixed(const struct reading *reading);

/** Loads the programs that `settings` name. NULL: a problem says why. */
struct registry *fitness_load_programs(const struct settings *settings, const char *dir,
    const struct registry *earlier, struct problems *problems);

#endif
