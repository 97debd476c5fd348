/**
 * What a process gets from whoever started it, and what this program does not depend on: standard
 * streams that are closed, signals that are ignored or blocked, a limit on the size of files, the
 * name of the file that was executed. Threads: call it first in main(), before others begin.
 */
#ifndef PROCESS_INHERITED_H
#define PROCESS_INHERITED_H

#include <stdbool.h>

/**
 * Closed standard streams become ones that refuse to be read and written, as closed ones do.
 * SIGTERM and SIGCHLD have their default effect, and no signal but SIGHUP is blocked. A write
 * beyond the limit on the size of files fails (EFBIG), as one on a full disk does, and ends
 * nothing. SIGHUP and SIGINT stay ignored where they were (base/signals.h), and SIGHUP blocked, as
 * child.h says. False: a stream could not be opened.
 */
bool inherited_mend(void);

#endif
