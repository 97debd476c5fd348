/** Names for the ways in which executors die, for pages. Private to supervise/. Threads: pure. */
#ifndef SUPERVISE_DEATHS_H
#define SUPERVISE_DEATHS_H

#include "state/state.h"

/** The name, one word. */
const char *death_name(enum state_death_kind kind);

#endif
