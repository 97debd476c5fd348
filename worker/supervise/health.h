/**
 * Whether the worker is ready, which means that at least one of its GPUs can take jobs now. For
 * probes (/readyz) and for `systemctl status`. Private to supervise/.
 *
 * A short outage of the brokers changes nothing: the worker stays a member of its group until its
 * session has ended, and then has the time of a rebalance to join again. Not being ready does not
 * mean that a restart would help. If the supervisor hangs, it does not answer at all, and if every
 * GPU is unhealthy, it ends.
 */
#ifndef SUPERVISE_HEALTH_H
#define SUPERVISE_HEALTH_H

#include <stdio.h>

#include "supervise/executors.h"

enum { HEALTH_REASON_BYTES = STATE_TROUBLE_BYTES };

struct health {
    const struct executor *executors;
    size_t count;
    bool is_stopping;
    bool is_reload_refused; /* the last one, for all executors */
    uint64_t now_ns;
};

/**
 * Writes "ready" or "not ready", then a line for each problem with its remedy; with `is_verbose`
 * also a line for each check that passed. Returns whether the worker is ready. A refused reload is
 * reported, but the worker stays ready.
 */
bool health_write(const struct health *health, bool is_verbose, FILE *page);

/**
 * Writes why no job can run on this executor's GPU now, as one word: what the check that failed is
 * about, or the trouble that makes jobs wait; "" if jobs can run.
 */
void health_reason(
    const struct executor *executor, uint64_t now_ns, char ret[static HEALTH_REASON_BYTES]);

/** Writes the same as one sentence. */
void health_describe(const struct health *health, char *text, size_t size);

#endif
