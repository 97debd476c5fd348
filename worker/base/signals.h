/** Signal settings that this process was started with. Threads: any. */
#ifndef BASE_SIGNALS_H
#define BASE_SIGNALS_H

#include <stdbool.h>

/**
 * True if the signal was ignored at the start, as nohup and shells arrange for background
 * processes.
 */
bool signal_is_ignored(int number);

#endif
