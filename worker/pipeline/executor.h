/**
 * The process that owns one GPU: it wires the stages together and is the only place that knows them
 * all.
 *
 *     source -> decode -> plan -> prepare -> ready queue -> lanes -> publisher -> sink
 *        ^                                                               |
 *        +----------------------- finished: may be committed ------------+
 *
 * Its memory is bounded by limits.jobs_in_flight and limits.bytes_in_flight. A message counts from
 * its arrival until all of its answers are acknowledged.
 *
 * Threads: executor_run() is the intake thread. It logs failures, each once.
 */
#ifndef PIPELINE_EXECUTOR_H
#define PIPELINE_EXECUTOR_H

#include "pipeline/options.h"

/**
 * Runs until the source ends, `stop` is set, or an error occurs that does not belong to one job.
 *
 * ERR_OK       drained: every message that was taken is answered or handed back. Jobs that had not
 *              begun when `stop` was set, or waited for another try, are not committed; they are
 *              read again.
 * ERR_TIMEOUT  drain_timeout_ms passed first: threads may still run, so the process must end with
 *              _exit(). Messages without an answer are not committed, and are read again.
 * ERR_GPU_*    the GPU is lost to this process; messages without an answer are not committed.
 * others       ERR_CONFIG, ERR_BROKER, ERR_IO, ERR_NO_MEMORY, ...: as the message says.
 */
MUST_CHECK enum err executor_run(
    const struct executor_options *options, struct executor_summary *summary, struct error *err);

#endif
