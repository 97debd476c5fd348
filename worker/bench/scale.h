/**
 * What the two sides of `bench scale` share: the process that measures, and the executors that it
 * starts, one process for each device. Private to bench/scale*.c.
 *
 * An executor runs jobs from memory until it is killed; or the baseline (gpu_baseline.h), of which
 * a batch counts as a message, so that the host's limits show. It counts on a board, which the
 * other side reads. Threads: one, each side.
 */
#ifndef BENCH_SCALE_H
#define BENCH_SCALE_H

#include "bench/bench.h"

struct scale_work {
    const char *name;
    uint32_t warm_up; /* messages that an executor answers before anything is measured */
    uint32_t jobs;    /* of a message; 0: an array's instances */
    enum err (*run)(const struct bench_options *options, struct error *err);
};

extern const struct scale_work scale_works[];
extern const size_t scale_work_count;

/** One executor, as `options` say; it ends with an error, or never. */
MUST_CHECK enum err bench_scale_executor(const struct bench_options *options, struct error *err);

#endif
