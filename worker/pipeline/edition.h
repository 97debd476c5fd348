/**
 * One reading of the configuration and the programs. A job is admitted under the current edition
 * and keeps it to its end. SIGHUP makes another edition current (reload.h). So nothing changes for
 * a job until it ends, and an edition ends when its last job has ended.
 *
 * Settings that do not reload have the values of the start in every edition.
 *
 * Lifetime: editions_create() to editions_destroy(). Threads: any, except that editions_bury() and
 * editions_destroy() unload modules and need a thread that is bound to the device. Private to
 * pipeline/.
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

/** The device and its modules outlive the editions. ERR_NO_MEMORY, ERR_IO. */
MUST_CHECK enum err editions_create(
    struct modules *modules, const struct device *device, struct editions **ret, struct error *err);

/** When no job is left. NULL is fine. */
void editions_destroy(struct editions *editions);

/**
 * Makes an edition of `settings` and `registry` current, and owns both; after an error it owns
 * neither. Bound thread, one at a time. ERR_CONFIG: no program fits the device, or the driver
 * rejects the image of one; ERR_NO_MEMORY, or a sticky code.
 */
MUST_CHECK enum err editions_publish(struct editions *editions, struct settings *settings,
    struct registry *registry, struct error *err);

/** The current edition, held `holders` times. */
struct edition *editions_take(struct editions *editions, size_t holders);

/** The current edition. Only for the thread that publishes editions; others take one. */
const struct edition *editions_current(const struct editions *editions);

/** The edition that the job was admitted under. */
const struct edition *edition_of(const struct job *job);

/** Readable when an edition has ended; editions_bury() frees those that have. */
int editions_fd(const struct editions *editions);
void editions_bury(struct editions *editions);

#endif
