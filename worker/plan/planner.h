/**
 * Makes plans (plan.h). Pure: no I/O, no GPU, no clock. Threads: any number of jobs at once.
 */
#ifndef PLAN_PLANNER_H
#define PLAN_PLANNER_H

#include "plan/plan.h"

struct plan_limits {
    struct gpu_limits device;
    uint64_t job_bytes_max;    /* device memory of a job's own buffers: limits.job_bytes */
    uint64_t array_bytes_max;  /* of the outputs of all instances: limits.array_bytes */
    uint32_t launches_max;     /* of a job: limits.launches_per_job */
    uint64_t result_bytes_max; /* of the encoded result: limits.result_bytes */
    bool has_key_order;        /* ordering: key, which residents need */
    bool isolates;             /* tenants take turns on the device, which no long job gives up */
    uint64_t inline_bytes_max; /* larger outputs become blobs; 0: none does */
    uint64_t blob_bytes_max;   /* the largest such output */
};

/**
 * Plans `job`; the plan is allocated in its arena. Errors name the buffer, step or argument, what
 * was asked for, what is allowed, and how to fix it: ERR_UNKNOWN_PROGRAM, ERR_UNKNOWN_ENTRY,
 * ERR_BAD_ARGUMENT, ERR_BAD_LAUNCH, ERR_UNSUPPORTED, ERR_TOO_LARGE, ERR_RESULT_TOO_LARGE,
 * ERR_NO_MEMORY.
 */
MUST_CHECK enum err plan_job(struct job *job, const struct registry *registry,
    const struct plan_limits *limits, const struct plan **ret, struct error *err);

#endif
