/** The messages that benches send. */
#ifndef BENCH_JOB_H
#define BENCH_JOB_H

#include "base/error.h"
#include "base/slice.h"

/**
 * A job of the program `bench` without buffers and outputs, which launches one thread that does
 * nothing. The caller frees `ret.data`.
 */
MUST_CHECK enum err bench_job_nothing(struct slice *ret, struct error *err);

/**
 * A job that computes z = x + y over buffers of `buffer_bytes` with that entry, and reads z back;
 * with `instances` an array of so many, each with buffers of its own, and 0 for a single job. The
 * caller frees `ret.data`.
 */
MUST_CHECK enum err bench_job_add(const char *entry, uint64_t buffer_bytes, uint32_t instances,
    struct slice *ret, struct error *err);

/** A job's parameters and scores, and the static that all jobs share, in bytes. */
enum { BENCH_PARAMETERS_BYTES = 64, BENCH_SCORES_BYTES = 16, BENCH_TABLE_BYTES = 256 };

/**
 * A job that computes scores of its parameters against the shared static, which it carries, and
 * reads them back; `instances` as above. The caller frees `ret.data`.
 */
MUST_CHECK enum err bench_job_score(uint32_t instances, struct slice *ret, struct error *err);

#endif
