/**
 * Whether the files that one command line names are different files, so that no slip of the
 * operator overwrites what is to be read, or writes two streams into one file.
 *
 * Links of every kind count as the file that they lead to. "-" is standard input or output. Files
 * that cannot be looked at are left to the command that opens them, which says why. An output that
 * does not exist yet is made, empty, as the command would.
 */
#ifndef CLI_APART_H
#define CLI_APART_H

#include <stdbool.h>
#include <stddef.h>

struct named_file {
    const char *option; /* as it is typed: "--jobs" */
    const char *path;   /* NULL: it was not given */
    bool is_output;
};

/** False where two of them are one file, of which at least one is written: *first and *second. */
bool files_are_apart(const struct named_file *files, size_t count, const struct named_file **first,
    const struct named_file **second);

#endif
