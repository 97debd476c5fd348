/**
 * What became of a job: its outputs or its error, and what it cost.
 *
 * Units: bytes and nanoseconds. Lifetime: output slices point into pinned memory of the lane and
 * are valid only during the callback that brings them. Threads: plain values.
 */
#ifndef BATCH_OUTCOME_H
#define BATCH_OUTCOME_H

#include "base/error.h"
#include "base/slice.h"
#include "metrics/accounting.h"

struct outcome {
    enum err code;
    struct error err;            /* unless code is ERR_OK */
    const struct slice *outputs; /* by index as the job's outputs; only with ERR_OK */
    /* of residents, after the job, by index as its buffers; NULL: with an error, or none */
    const uint64_t *generations;
    struct job_telemetry telemetry;
};

#endif
