/**
 * Runs one job without any broker: in a worker that is started for it, reads it from a file and
 * writes its result to another one. Threads: the process's first one (process/child.h).
 */
#ifndef CLI_LOCAL_JOB_H
#define CLI_LOCAL_JOB_H

#include "base/error.h"
#include "base/slice.h"

struct local_job {
    const char *config, *driver; /* as for run; NULL: not given */
    struct slice message;
    uint64_t timeout_s;
};

/**
 * *ret is the result's message in a new block that the caller frees. If there is no result, what
 * the worker logged has been printed. Errors: ERR_IO, ERR_NO_MEMORY; ERR_TIMEOUT.
 */
MUST_CHECK enum err local_job_run(
    const struct local_job *job, uint8_t **ret, size_t *ret_size, struct error *err);

#endif
