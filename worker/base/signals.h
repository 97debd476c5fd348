/** What this process was started with. */
#ifndef BASE_SIGNALS_H
#define BASE_SIGNALS_H

#include <stdbool.h>

/** True where the parent asked for that, as nohup and shells do for background processes. */
bool signal_is_ignored(int number);

#endif
