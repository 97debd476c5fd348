/** The messages that benches send. */
#ifndef BENCH_JOB_H
#define BENCH_JOB_H

#include "base/error.h"
#include "base/slice.h"

/** A job of the program `bench` that launches one thread which does nothing: no buffers, no
 * outputs. `ret.data` is to be freed. */
MUST_CHECK enum err bench_job_nothing(struct slice *ret, struct error *err);

/** z = x + y over buffers of `buffer_bytes` by that entry; z is read back. As above. */
MUST_CHECK enum err bench_job_add(
    const char *entry, uint64_t buffer_bytes, struct slice *ret, struct error *err);

#endif
