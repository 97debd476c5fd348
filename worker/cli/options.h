/**
 * The options of a command: one table that parses the command line and makes the usage and --help.
 * The manual and the shell completion are made from what --help shows (deploy/manual).
 *
 * Threads: the main thread, before others start. Lifetime: values point into argv.
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { CLI_OPTIONS_MAX = 16, CLI_VALUES_MAX = 64 };

/** The values of an option that may be given several times. */
struct cli_values {
    size_t count;
    const char *items[CLI_VALUES_MAX];
};

/** How an option may be used. */
enum cli_use {
    CLI_MAY,
    CLI_MUST,
    CLI_OR /* an alternative to the option before it: only one of such a row may be given */
};

/**
 * An option. Its value goes to one of the four pointers, whose target is not changed if the option
 * is not given.
 */
struct cli_option {
    const char *name;  /* "config" is --config; NULL ends a table */
    const char *takes; /* as --help shows it, such as "FILE"; NULL for a flag */
    const char *help;  /* one or more lines, separated by newlines */
    enum cli_use use;
    bool is_hidden; /* for processes that the program starts itself; behind those that are shown */
    const char *with; /* it may be given only together with this earlier option; NULL: always */
    bool *flag;
    const char **text;
    uint64_t *number; /* decimal */
    struct cli_values *values;
};

/** All texts end with a newline. */
struct cli_command {
    const char *name;  /* as in gpu-worker NAME */
    const char *first; /* "this|that": a word before the options; NULL: none */
    bool first_may_lack;
    const char *words; /* words after the options: "FILE" is one, "ID..." one or more; NULL: none */
    const char *about; /* paragraphs; NULL: none */
    const struct cli_option *options; /* NULL: only --help */
    const char *examples;             /* "example: ..."; NULL: none */
};

/**
 * Reads the options; *ret_words is where the words in `argv` start. False: the command must end
 * with *ret_exit, because --help was given and has been answered, or because the arguments are
 * wrong, which has been reported.
 */
MUST_CHECK bool cli_parse(
    const struct cli_command *command, int argc, char **argv, char ***ret_words, int *ret_exit);

#endif
