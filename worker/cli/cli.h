/**
 * The subcommands of gpu-worker. Each is a file with one function
 * that reads its own arguments (cli/options.h; argv[0] is "gpu-worker <command>") and returns an
 * exit code of base/exit.h.
 *
 * Every command answers --help, from the table of its options. Results go to standard output,
 * everything else to standard error. Options with the same meaning have the same name in all
 * commands, such as --config FILE.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "base/exit.h"
#include "base/problems.h"
#include "settings/settings.h"

int command_bench(int argc, char **argv);
int command_cancel(int argc, char **argv);
int command_check(int argc, char **argv);
int command_config(int argc, char **argv);
int command_decode(int argc, char **argv);
int command_demo(int argc, char **argv);
int command_devices(int argc, char **argv);
int command_explain(int argc, char **argv);
int command_programs(int argc, char **argv);
int command_replay(int argc, char **argv);
int command_resume(int argc, char **argv);
int command_run(int argc, char **argv);
int command_submit(int argc, char **argv);
int command_tail(int argc, char **argv);
int command_top(int argc, char **argv);
int command_version(int argc, char **argv);

/** Prints the end of each help text, after an empty line: what the exit codes mean. */
void cli_print_exits(void);

/** Prints `usage` and the exit codes to standard output; returns CLI_OK. */
int cli_help(const char *usage);

/**
 * The exit code of a command that ended with `code`: output that could not be written makes any
 * fail, also output that was flushed earlier.
 */
int cli_finish(const char *command, int code);

/** Prints a line "gpu-worker <command>: ..." to standard error; returns `code`. */
__attribute__((format(printf, 3, 4))) int cli_fail(
    enum cli_exit code, const char *command, const char *format, ...);

/** As cli_fail(), for an error; returns the exit code that fits it. */
int cli_fail_error(const char *command, const struct error *err);

/**
 * The same for a command that only talks to brokers: CLI_BROKER, or CLI_FAILED for all other
 * errors.
 */
int cli_fail_sending(const char *command, const struct error *err);

/** As cli_fail(), for wrong arguments, and names the command's --help; returns CLI_USAGE. */
__attribute__((format(printf, 2, 3))) int cli_fail_usage(
    const char *command, const char *format, ...);

/** As cli_fail_usage(), for a time that when_read() does not take. */
int cli_fail_when(const char *command, const char *option, const char *given);

/** Prints such a line for each problem; returns CLI_CONFIG. */
int cli_fail_problems(const char *command, const struct problems *problems);

/**
 * Initialises `settings` and loads `path` (NULL: all defaults) into them. CLI_OK: the caller must
 * call settings_fini(). Otherwise the problems are printed, and nothing has to be freed.
 */
int cli_load_settings(const char *command, const char *path, struct settings *settings);

/** Reads --driver; *ret is not changed if `name` is NULL. False if there is no such driver. */
MUST_CHECK bool cli_read_driver(const char *name, enum driver_choice *ret);

/** As cli_read_driver(), overriding the configuration. */
MUST_CHECK bool cli_override_driver(const char *name, struct settings *settings);

#endif
