/**
 * Refuses jobs because others like them ended executors (suspensions.h): counts convictions and
 * good ends, and checks for each job whether its key or one of its programs is suspended.
 *
 * Lifetime: that of the state and the suspects that it points to. Threads: each function says
 * which. Without a state no key and no program is suspended.
 */
#ifndef QUARANTINE_REFUSALS_H
#define QUARANTINE_REFUSALS_H

#include "job/job.h"
#include "quarantine/suspects.h"
#include "quarantine/suspensions.h"

struct refusals {
    struct state *state;
    struct suspects *suspects; /* NULL without a state */
    struct suspension_rules rules;
};

/** The message was convicted; `job` is NULL if it was not decoded. Returns whether this conviction
 * counts for the first time. Threads: intake. */
bool refusals_note_conviction(
    const struct refusals *refusals, const struct delivery *delivery, const struct job *job);

/**
 * The job is a suspect that ran well alone. If the watchdog had ended a batch in which it was, and
 * its time explains that, its kernels are uneven, and the death counts against its key: once for
 * them. Threads: the one that runs suspects.
 */
void refusals_note_acquittal(const struct refusals *refusals, const struct job *job);

/** The job succeeded. Threads: any. */
void refusals_note_success(const struct refusals *refusals, const struct job *job);

/** Errors: ERR_SUSPENDED, with the end of the suspension and how to lift it. Threads: any. */
MUST_CHECK enum err refusals_check(
    const struct refusals *refusals, const struct job *job, struct error *err);

#endif
