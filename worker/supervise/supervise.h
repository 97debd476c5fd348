/**
 * The supervisor: the process that starts an executor for each device, watches them, and starts
 * them again when they die. It uses neither CUDA nor Kafka, so what kills an executor does not
 * reach it. An executor is `gpu-worker run --no-supervisor` in a process of its own.
 *
 * If a job may be to blame for a death (a lost context, a fatal signal, a batch that the watchdog
 * ended), the executor is started again at once, because the state file says which messages to
 * suspect. Otherwise it is started again after growing delays, and not at all after
 * executors.deaths_max such deaths: its GPU then counts as unhealthy, and the others go on.
 *
 * SIGHUP makes it reload its configuration and programs. If they are valid, its executors reload
 * too.
 *
 * With executors.spare a second process waits for each device, and takes over when the executor
 * dies (spare.h).
 *
 * With http.listen it serves /metrics (metrics_page.h), /status.json (status.h), a page that draws
 * it (page.h), /readyz (health.h) and /livez. /livez answers as long as the supervisor's loop runs,
 * so it fails only if a restart would help. systemd is told the same (notify.h). The worker counts
 * as started once the first executor has begun its life, even if that still waits for its brokers.
 *
 * Threads: the process's first one, because the kernel ends the executors when that thread ends. It
 * logs.
 */
#ifndef SUPERVISE_SUPERVISE_H
#define SUPERVISE_SUPERVISE_H

#include "supervise/options.h"

/**
 * Runs until SIGTERM or SIGINT, or until no executor is left. `*ret` is the exit code of the
 * process. Errors: ERR_CONFIG (http.listen), ERR_IO, ERR_NO_MEMORY; nothing was started then.
 */
MUST_CHECK enum err supervise_run(
    const struct supervise_options *options, int *ret, struct error *err);

#endif
