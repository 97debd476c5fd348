/**
 * Names for the ways in which executors die, for pages, and how long to wait after a death. Private
 * to supervise/. Threads: pure.
 */
#ifndef SUPERVISE_DEATHS_H
#define SUPERVISE_DEATHS_H

#include "state/state.h"

/** The name, one word. */
const char *death_name(enum state_death_kind kind);

/**
 * Milliseconds to wait before the next start, after so many deaths in a row (from 1) that no job
 * caused: 100, doubled by each, up to 30 s.
 */
uint64_t death_back_off_ms(uint32_t deaths);

#endif
