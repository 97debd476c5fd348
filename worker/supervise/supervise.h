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
 * Where http.listen says so, it serves /metrics (metrics_page.h), /readyz (health.h) and /livez,
 * which anybody gets whom its loop can answer: it fails where a restart would help, and there
 * alone. systemd hears the same (notify.h): that the worker has started once the first executor has
 * begun its life, since one that waits for its brokers has started, too.
 *
 * Threads: one, the process's first, since it is its end that ends the executors. It logs.
 */
#ifndef SUPERVISE_SUPERVISE_H
#define SUPERVISE_SUPERVISE_H

#include "supervise/options.h"

/**
 * Until SIGTERM or SIGINT, or until there is no executor any more; the exit code says how it ended.
 * ERR_CONFIG (http.listen), ERR_IO, ERR_NO_MEMORY: nothing was started.
 */
MUST_CHECK enum err supervise_run(
    const struct supervise_options *options, int *ret, struct error *err);

#endif
