/**
 * SIGHUP: reads the configuration and the programs again. Jobs that come later are admitted under
 * the new edition. If anything is wrong, nothing changes, and one line of the log says so.
 *
 * All threads block SIGHUP; it stays pending until this thread looks for it, so several signals at
 * once count as one. Lifetime: reload_start() to reload_stop(). Threads: its own, which also frees
 * editions that have ended. It logs. Private to pipeline/.
 */
#ifndef PIPELINE_RELOAD_H
#define PIPELINE_RELOAD_H

#include "pipeline/stages.h"

struct reload;

/** Makes the first edition, of stages->settings and `registry`, and owns the registry; not after an
 * error. From a thread that is bound to the device. */
MUST_CHECK enum err reload_begin(
    struct stages *stages, struct registry *registry, struct error *err);

/** With `source` NULL nothing reloads, and *ret stays as it is. */
MUST_CHECK enum err reload_start(struct stages *stages, const struct fitness_source *source,
    bool is_supervised, struct reload **ret, struct error *err);
void reload_stop(struct reload *reload); /* NULL is fine */

#endif
