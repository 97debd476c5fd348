/**
 * Another process of this program, which ends when this one does.
 * Threads: the process's first alone: the child is told of the end of the thread that started it.
 */
#ifndef PROCESS_CHILD_H
#define PROCESS_CHILD_H

#include <sys/types.h>

#include "base/error.h"

/**
 * Starts gpu-worker with `arguments` (NULL ends them; the program's name comes before them), with
 * all signals unblocked but SIGHUP, which waits until it is looked for, and what systemd gave us
 * left out (supervise/notify.h). `output` becomes its standard output; -1 leaves ours. ERR_IO.
 */
MUST_CHECK enum err child_start(
    const char *const *arguments, int output, pid_t *ret, struct error *err);

#endif
