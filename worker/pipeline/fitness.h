/**
 * Checks whether a worker can work as it is configured. Its programs are there and whole, and one
 * of them has an image for the driver. Its folders can be used. librdkafka accepts its keys, the
 * NVTX library can be loaded, and http.listen is an address of this machine. A problem keeps `run`
 * from taking jobs, and `check` reports it. No broker and no device is asked.
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
 * Reads all that a worker needs; `check`, the start of `run` and SIGHUP use it alike. Adds every
 * problem, those of the folders too. Returns the registry, which shares unchanged programs with
 * `earlier`; NULL: a problem says why. The caller ends it, and *settings in any case.
 */
struct registry *fitness_read(const struct fitness_source *source, const struct registry *earlier,
    struct settings *settings, struct problems *problems);

/** What is read again while a worker runs. */
struct reading {
    struct settings settings; /* those that do not reload have their old values */
    struct registry *registry;
    struct fixed_changes changes; /* of settings that do not reload */
};

/**
 * The same for a worker that started with `running`. ERR_CONFIG, with the first problem and how
 * many there are, or ERR_NO_MEMORY; then there is nothing to end.
 */
MUST_CHECK enum err fitness_read_again(const struct fitness_source *source,
    const struct settings *running, const struct registry *earlier, struct reading *ret,
    struct error *err);
void reading_fini(struct reading *reading);

/** Logs which changes take effect only at the next start; one line, or none. */
void reading_log_fixed(const struct reading *reading);

/** Loads the programs that `settings` name. NULL: a problem says why. */
struct registry *fitness_load_programs(const struct settings *settings, const char *dir,
    const struct registry *earlier, struct problems *problems);

#endif
