/**
 * The options of a command: one table that the command line is parsed with, and that usage and
 * --help are made of. What --help shows is what the manual and the shells' completion are made of
 * (deploy/manual).
 *
 * Threads: the main thread, before there are others. Lifetime: what is read points into argv.
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { CLI_OPTIONS_MAX = 16, CLI_VALUES_MAX = 64 };

/** What an option that may be given again was given. */
struct cli_values {
    size_t count;
    const char *items[CLI_VALUES_MAX];
};

/** When an option is given. */
enum cli_use {
    CLI_MAY,
    CLI_MUST,
    CLI_OR /* instead of the one before it: of such a row one may be given */
};

/** Where what it was given goes to: to one of the four, which stays as it is without the option. */
struct cli_option {
    const char *name;  /* "config" is --config; NULL ends a table */
    const char *takes; /* as --help shows it, such as "FILE"; NULL for a flag */
    const char *help;  /* a line; or several, with newlines between them */
    enum cli_use use;
    const char *with; /* given with this one alone, which stands before it; NULL: with any */
    bool *flag;
    const char **text;
    uint64_t *number; /* decimal */
    struct cli_values *values;
};

/** All texts end with a newline. */
struct cli_command {
    const char *name;                 /* as in gpu-worker NAME */
    const char *first;                /* "this|that": one word before the options; NULL: none */
    const char *words;                /* behind them: "FILE" is one, "ID..." one or more; NULL */
    const char *about;                /* paragraphs; NULL: none */
    const struct cli_option *options; /* NULL: --help alone */
    const char *examples;             /* "example: ..."; NULL: none */
};

/**
 * Reads the options; *ret_words is where the words of `argv` start, as many as the command takes.
 * False where the command ends with *ret_exit: --help was given and is answered, or what was given
 * is not what the command takes, which is said.
 */
MUST_CHECK bool cli_parse(
    const struct cli_command *command, int argc, char **argv, char ***ret_words, int *ret_exit);

#endif
