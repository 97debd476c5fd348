/**
 * The parts of `gpu-worker run`: the command (run.c) reads its options and the configuration, and
 * is then a supervisor (run_supervisor.c) or one executor (run_executor.c).
 *
 * Threads: the process's first one.
 */
#ifndef CLI_RUN_H
#define CLI_RUN_H

#include "cli/kept_config.h"
#include "pipeline/connect.h"
#include "pipeline/fitness.h"
#include "supervise/probe.h"

struct run_arguments {
    const char *config, *config_source, *driver, *device, *state, *life, *board, *spare, *broker;
    enum driver_choice driver_choice; /* used if `driver` is not NULL */
    struct file_paths files;
    bool is_file_run, no_supervisor;
};

/** What is read again on SIGHUP. */
struct fitness_source run_source(const struct run_arguments *arguments);

/** Whether it can be read again, or written anew. */
bool run_is_plain_file(const char *path, bool may_be_missing);

/** Finds the devices to work on, at most `max`. CLI_OK, or the exit code of an error that was
 * reported. */
MUST_CHECK int run_find_devices(const struct settings *settings, const char *config, size_t max,
    struct probed_device devices[static PROBED_DEVICES_MAX], size_t *count);

/** One executor, in this process. Returns the exit code. */
MUST_CHECK int run_executor(
    const struct settings *settings, const struct run_arguments *arguments, uint32_t device);

/** An executor for each device, in processes that are started again. Returns the exit code. `kept`:
 * the configuration, which a reload replaces. */
MUST_CHECK int run_supervisor(
    const struct settings *settings, struct run_arguments *arguments, struct kept_config *kept);

#endif
