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
 * A job that computes z = x + y over buffers of `buffer_bytes` with that entry, and reads z back.
 * The caller frees `ret.data`.
 */
MUST_CHECK enum err bench_job_add(
    const char *entry, uint64_t buffer_bytes, struct slice *ret, struct error *err);

#endif
