/**
 * Signal settings that this process was started with, and signals that ask a command to stop.
 * Threads: any.
 */
#ifndef BASE_SIGNALS_H
#define BASE_SIGNALS_H

#include <stdbool.h>

/**
 * True if the signal was ignored at the start, as nohup and shells arrange for background
 * processes.
 */
bool signal_is_ignored(int number);

/** From now on SIGTERM and SIGINT end nothing at once: the command asks whether one came. */
void signals_catch_stop(void);
bool signals_caught_stop(void);

#endif
