/**
 * SIGHUP: the configuration and the programs are read again, and jobs that come from then on are
 * admitted under the new edition. What is wrong changes nothing, and is one line of the log.
 *
 * SIGHUP is blocked on all threads: it waits until this one looks for it, and many that come at
 * once are one. Lifetime: reload_start() to reload_stop(). Threads: its own, which also frees the
 * editions that have ended. It logs. Private to pipeline/.
 */
#ifndef PIPELINE_RELOAD_H
#define PIPELINE_RELOAD_H

#include "pipeline/stages.h"

struct reload;

/** Makes the first edition, of stages->settings and of `registry`, which is its own then; not after
 * an error. Bound thread. */
MUST_CHECK enum err reload_begin(
    struct stages *stages, struct registry *registry, struct error *err);

/** Where `source` is NULL, nothing reloads, and *ret stays as it is. */
MUST_CHECK enum err reload_start(struct stages *stages, const struct fitness_source *source,
    bool is_supervised, struct reload **ret, struct error *err);
void reload_stop(struct reload *reload); /* NULL is fine */

#endif
