#include "base/invariant.h"

#include <stdlib.h>
#include <string.h>

#include "base/log_line.h"

void invariant_broken(const char *what, const char *file, int line) {
    const char *name = strrchr(file, '/');
    if (!log_is_on(LOG_ERROR)) log_init(LOG_ERROR, LOG_TEXT); /* nobody must die without a word */
    log_event(LOG_ERROR, LOG_EVENT("broken_invariant"),
        "broken invariant: %s (%s:%d); this is a bug of gpu-worker: report it", what,
        name != NULL ? name + 1 : file, line);
    abort();
}
