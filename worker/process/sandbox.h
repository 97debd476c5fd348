/**
 * Gives up what an executor does not need: new privileges, core dumps (also into pipes), and all
 * capabilities except those for reading files that the configuration names, pinning memory and
 * setting priorities. Afterwards it can only write and change what belongs to its user. Threads:
 * call it before the second one starts.
 */
#ifndef PROCESS_SANDBOX_H
#define PROCESS_SANDBOX_H

#include <stdbool.h>

/** If the system refuses a step, it is skipped: no step ever gives the process more than it had. */
void sandbox_enter(bool allows_core_dumps);

#endif
