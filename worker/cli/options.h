/**
 * The options of a command: one table that the command line is parsed with and --help shows. What
 * --help shows is what the manual and the shells' completion are made of (deploy/manual).
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

/** Where what it was given goes to: to one of the four, which stays as it is without the option. */
struct cli_option {
    const char *name;  /* "config" is --config; NULL ends a table */
    const char *takes; /* as --help shows it, such as "FILE"; NULL for a flag */
    const char *help;  /* a line; or several, with newlines between them */
    bool *flag;
    const char **text;
    uint64_t *number; /* decimal */
    struct cli_values *values;
};

/** All texts end with a newline. */
struct cli_command {
    const char *name;                 /* as in gpu-worker NAME */
    const char *usage;                /* "usage: gpu-worker ..." */
    const char *about;                /* paragraphs; NULL: none */
    const struct cli_option *options; /* NULL: --help alone */
    const char *examples;             /* "example: ..."; NULL: none */
};

/**
 * Reads the options; *ret_words is where those of `argv` start that are none. False where the
 * command ends with *ret_exit: --help was given and is answered, or an option is wrong, which is
 * said.
 */
MUST_CHECK bool cli_parse(
    const struct cli_command *command, int argc, char **argv, char ***ret_words, int *ret_exit);

#endif
