/** What this process was started with. */
#ifndef BASE_SIGNALS_H
#define BASE_SIGNALS_H

#include <stdbool.h>

/** As nohup wants it, a shell for what it starts in the background, or whoever speaks for us. */
bool signal_is_ignored(int number);

#endif
