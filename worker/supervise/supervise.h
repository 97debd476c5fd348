/**
 * The supervisor: the process that starts an executor for each device, watches them, and starts
 * them again when they die. It touches neither CUDA nor Kafka, so nothing that kills an executor
 * reaches it; an executor is `gpu-worker run --no-supervisor` in a process of its own.
 *
 * An executor that died with a culprit (a lost context that it recorded, a fatal signal, a batch
 * that the watchdog ended) is started again at once: the state file says whom to suspect. One that
 * died without is started again later and later, and after executors.deaths_max such deaths not at
 * all: its GPU counts as unhealthy, the others go on.
 *
 * SIGHUP makes it read its configuration and programs again, and if they are right, its executors
 * as well.
 *
 * Where http.listen says so, it serves /metrics (metrics.h), /readyz (health.h) and /livez, which
 * anybody gets whom its loop can answer: it fails where a restart would help, and there alone.
 * systemd hears the same (notify.h): that the worker has started once the first executor has begun
 * its life, since one that waits for its brokers has started, too.
 *
 * Threads: one, the process's first, since it is its end that ends the executors. It logs.
 */
#ifndef SUPERVISE_SUPERVISE_H
#define SUPERVISE_SUPERVISE_H

#include "settings/settings.h"
#include "supervise/probe.h"

struct supervise_options {
    const struct settings *settings;
    const char *state_dir;
    const char *config; /* that executors can read, NULL: none; `reload` may change the text */
    /** At SIGHUP: reads again what executors are started with. They do so themselves then. */
    enum err (*reload)(void *context, struct error *err);
    void *context;
    const char *const *arguments; /* further arguments for each executor; NULL ends them */
    const struct probed_device *devices;
    size_t device_count;
    bool is_finite;           /* a run of files: an executor that ends itself ends the run */
    const char *final_reason; /* why a death ends everything; NULL: executors are started again */
};

/**
 * Until SIGTERM or SIGINT, or until there is no executor any more; the exit code says how it ended.
 * ERR_CONFIG (http.listen), ERR_IO, ERR_NO_MEMORY: nothing was started.
 */
MUST_CHECK enum err supervise_run(
    const struct supervise_options *options, int *ret, struct error *err);

#endif
