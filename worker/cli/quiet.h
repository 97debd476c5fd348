/**
 * Starts another gpu-worker whose log goes to a file. Threads: the process's first one
 * (process/child.h).
 */
#ifndef CLI_QUIET_H
#define CLI_QUIET_H

#include <sys/types.h>

#include "base/error.h"

/** Writes a new file. Errors: ERR_IO. */
MUST_CHECK enum err quiet_write_file(
    const char *path, const void *bytes, size_t size, struct error *err);

/** Prints what a worker has logged to such a file, to standard error. */
void quiet_print_log(const char *log);

/** Removes a folder with all that is in it. */
void quiet_remove_folder(const char *folder);

/** `arguments` as for child_start(). Errors: ERR_IO. */
MUST_CHECK enum err quiet_start(
    const char *const *arguments, const char *log, pid_t *ret, struct error *err);

/** Waits for its end; returns its exit code, CLI_FAILED if a signal has ended it. */
int quiet_wait(pid_t pid);

#endif
