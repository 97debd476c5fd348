#include "base/invariant.h"

#include <stdlib.h>
#include <string.h>

#include "base/log_line.h"

void invariant_broken(const char *what, const char *file, int line) {
    const char *name = strrchr(file, '/');
    log_event(LOG_ERROR, LOG_EVENT("broken_invariant"),
        "broken invariant: %s (%s:%d); this is a bug of gpu-worker: report it", what,
        name != NULL ? name + 1 : file, line);
    abort();
}
