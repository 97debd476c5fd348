/**
 * The process that owns one GPU: it wires the stages together and is the only place that knows them
 * all.
 *
 *     source -> decode -> plan -> prepare -> ready queue -> lanes -> publisher -> sink
 *        ^                                                               |
 *        +----------------------- finished: may be committed ------------+
 *
 * What one message makes it hold is bounded: limits.jobs_in_flight and limits.bytes_in_flight count
 * from the arrival of a message until everything that answers it is acknowledged.
 *
 * Threads: executor_run() is the intake thread. It logs failures, each once.
 */
#ifndef PIPELINE_EXECUTOR_H
#define PIPELINE_EXECUTOR_H

#include "pipeline/options.h"

/**
 * Runs until the source ends, `stop` is set, or something breaks that no single job can answer for.
 *
 * ERR_OK       drained: every message that was taken is answered, or handed back: jobs that waited
 *              to be tried again when `stop` was set were not committed, and come again.
 * ERR_TIMEOUT  drain_timeout_ms passed first: threads may still run, so the process must end with
 *              _exit(). What was not answered was not committed and comes again.
 * ERR_GPU_*    the GPU is lost to this process; as above, nothing is committed that was not
 * answered. ERR_CONFIG, ERR_BROKER, ERR_IO, ERR_NO_MEMORY, ...  what the message says.
 */
MUST_CHECK enum err executor_run(
    const struct executor_options *options, struct executor_summary *summary, struct error *err);

#endif
