/**
 * Starts another process of this program, which ends when this one does. Threads: only the
 * process's first one, because the kernel ends the child when the thread that started it ends.
 */
#ifndef PROCESS_CHILD_H
#define PROCESS_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/**
 * Starts gpu-worker with `arguments` (ended by NULL, without the program's name). In the child all
 * signals are unblocked except SIGHUP, which stays pending until the child is ready for it, and
 * systemd's variables are removed (supervise/notify.h). `output` becomes its standard output; -1
 * keeps ours. `kept` are descriptors that stay open in the child, though they are closed by exec()
 * here; -1 ends them; NULL: none. Errors: ERR_IO.
 */
MUST_CHECK enum err child_start(
    const char *const *arguments, int output, const int *kept, pid_t *ret, struct error *err);

/** How long a killed process may take to die; one that takes longer hangs in the driver. */
enum { CHILD_DEATH_MS = 15000 };

/**
 * Kills it, which has no effect if it has ended already, and waits for its end. False: it is not
 * dead after `timeout_ms`, which no signal can change; it is left as it is.
 */
MUST_CHECK bool child_end(pid_t pid, uint32_t timeout_ms, int *status);

#endif
