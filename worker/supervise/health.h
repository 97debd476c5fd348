/**
 * Whether the worker is ready: at least one of its GPUs can take jobs now. For orchestrators that
 * ask (/readyz) and for `systemctl status`. Private to supervise/.
 *
 * A short absence of the brokers changes nothing: a member of its group stays one until its session
 * has ended, and is then given the time of a rebalance to join again. Nothing here says that a
 * restart would help: where the supervisor hangs, it does not answer at all, and where every GPU is
 * given up, it ends.
 */
#ifndef SUPERVISE_HEALTH_H
#define SUPERVISE_HEALTH_H

#include <stdio.h>

#include "supervise/executors.h"

struct health {
    const struct executor *executors;
    size_t count;
    bool is_stopping;
    bool is_reload_refused; /* the last one, for all executors */
    uint64_t now_ns;
};

/**
 * Writes "ready" or "not ready", then a line for each thing that is not well: what is wrong, and
 * how to mend it; with `is_verbose` one for each that is, too. True: ready. A reload that was
 * refused is told, and leaves it ready.
 */
bool health_write(const struct health *health, bool is_verbose, FILE *page);

/** The same in one sentence. */
void health_describe(const struct health *health, char *text, size_t size);

#endif
