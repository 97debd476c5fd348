/**
 * What one reading of the configuration and the programs gave, and jobs are run by: each is
 * admitted under the edition that is current then, and keeps it to its end, while SIGHUP makes
 * another one current (reload.h). So nothing that a job goes by changes while it is under way, and
 * an edition ends when the last of its jobs has.
 *
 * Of an edition's settings those that do not reload are as they were at the start.
 *
 * Lifetime: editions_create() to editions_destroy(). Threads: any, but editions_bury() and
 * editions_destroy(), which unload modules, are a bound thread's. Private to pipeline/.
 */
#ifndef PIPELINE_EDITION_H
#define PIPELINE_EDITION_H

#include "base/shared.h"
#include "decode/decode.h"
#include "gpu/modules.h"
#include "plan/planner.h"
#include "settings/settings.h"

struct editions;

struct edition {
    struct shared shared;
    struct editions *editions;
    struct edition *next_ended;
    struct settings settings;
    struct decode_limits decode_limits;
    struct plan_limits plan_limits;
    struct registry *registry;
    struct module_set *modules;
};

/** Of a device, which outlives them, with its modules. ERR_NO_MEMORY, ERR_IO. */
MUST_CHECK enum err editions_create(
    struct modules *modules, const struct device *device, struct editions **ret, struct error *err);

/** When no job is left. NULL is fine. */
void editions_destroy(struct editions *editions);

/**
 * Makes another edition current, of `settings` and `registry`, which are its own then; not after an
 * error. Bound thread, one at a time. ERR_CONFIG: no program fits the device, or the driver rejects
 * the image of one; ERR_NO_MEMORY, or a sticky code.
 */
MUST_CHECK enum err editions_publish(struct editions *editions, struct settings *settings,
    struct registry *registry, struct error *err);

/** The current edition, held by the caller. */
struct edition *editions_take(struct editions *editions);

/** The current edition, for the thread alone that publishes: others take it. */
const struct edition *editions_current(const struct editions *editions);

/** The edition that the job was admitted under. */
const struct edition *edition_of(const struct job *job);

/** Readable once an edition has ended, until editions_bury(), which frees what has. */
int editions_fd(const struct editions *editions);
void editions_bury(struct editions *editions);

#endif
