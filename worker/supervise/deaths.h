/** What pages call the ways in which executors die. Private to supervise/. Threads: pure. */
#ifndef SUPERVISE_DEATHS_H
#define SUPERVISE_DEATHS_H

#include "state/state.h"

/** A word. */
const char *death_name(enum state_death_kind kind);

#endif
