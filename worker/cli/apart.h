/**
 * Checks that the files on a command line are different, so that no typing error overwrites an
 * input, or writes two streams into one file.
 *
 * Links of every kind count as the file that they lead to. "-" is standard input or output. Files
 * that cannot be examined are ignored; the command that opens them will report why. An output that
 * does not exist is created, empty, as the command would. Threads: any.
 */
#ifndef CLI_APART_H
#define CLI_APART_H

#include <stdbool.h>
#include <stddef.h>

struct named_file {
    const char *option; /* as on the command line: "--jobs" */
    const char *path;   /* NULL: it was not given */
    bool is_output;
};

/**
 * False if two of them are the same file and at least one is written; these are *first and *second.
 */
bool files_are_apart(const struct named_file *files, size_t count, const struct named_file **first,
    const struct named_file **second);

#endif
