/**
 * What an executor does without: new privileges, core dumps (into pipes too), and capabilities
 * other than those by which it reads files that the configuration names, pins memory and sets
 * priorities. It writes, and changes, only what belongs to the user that it runs as. Threads:
 * before the second one.
 */
#ifndef PROCESS_SANDBOX_H
#define PROCESS_SANDBOX_H

#include <stdbool.h>

/** What the system refuses is left as it is: a process may only have less than it had. */
void sandbox_enter(bool allows_core_dumps);

#endif
