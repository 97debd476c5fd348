/** The messages that benches send. */
#ifndef BENCH_JOB_H
#define BENCH_JOB_H

#include "base/error.h"
#include "base/slice.h"

/**
 * A job of the program `bench` without buffers and outputs, which launches one thread that does
 * nothing, `iterations` times. The caller frees `ret.data`.
 */
MUST_CHECK enum err bench_job_nothing(uint32_t iterations, struct slice *ret, struct error *err);

/** A job's parameters and scores, and the static that all jobs share, in bytes. */
enum { BENCH_PARAMETERS_BYTES = 64, BENCH_SCORES_BYTES = 16, BENCH_TABLE_BYTES = 256 };

/**
 * An array of `instances` that launch nothing, each with parameters and scores of its own. The
 * caller frees `ret.data`.
 */
MUST_CHECK enum err bench_job_nothing_of_each(
    uint32_t instances, struct slice *ret, struct error *err);

/**
 * A job that computes z = x + y over buffers of `buffer_bytes` with that entry, and reads z back;
 * with `instances` an array of so many, each with buffers of its own, and 0 for a single job. The
 * caller frees `ret.data`.
 */
MUST_CHECK enum err bench_job_add(const char *entry, uint64_t buffer_bytes, uint32_t instances,
    struct slice *ret, struct error *err);

/** Weights and metrics of a training, in bytes. */
enum { BENCH_TRAINED_BYTES = 31 * 4 + 8 };

/**
 * A job that computes scores of its parameters against the shared static, which it carries, and
 * reads them back; `instances` as above. The caller frees `ret.data`.
 */
MUST_CHECK enum err bench_job_score(uint32_t instances, struct slice *ret, struct error *err);

/**
 * The main job: a logistic regression of so many launches of so many epochs (logreg_adam) against a
 * data set of 569 rows and 30 features, which all such jobs share as statics. `brings_data`: it
 * carries them, and otherwise only names them. `instances` as above; a result has
 * BENCH_TRAINED_BYTES of each. The caller frees `ret.data`.
 */
MUST_CHECK enum err bench_job_train(uint32_t launches, uint32_t epochs, uint32_t instances,
    bool brings_data, struct slice *ret, struct error *err);

/**
 * A small job that adds 16 bytes to the first 16 of `shared`, a static; it carries the static's
 * bytes or only names it. data NULL: both are in the message, and there is no static. It names the
 * entry add_coalesced of the program `bench`, and the first entry of any other. The caller frees
 * `ret.data`.
 */
MUST_CHECK enum err bench_job_share(const char *program, struct slice shared, bool brings_data,
    struct slice *ret, struct error *err);

/**
 * Rounds in which 128 threads draw `turns` numbers each: `lasts[i]` says after which one instance i
 * is done, and `repeat` how many there are at most. `instances` as above; then there is one `last`.
 * `is_long`: it ends when all are done, in chunks; else all rounds run, in one visit to the device.
 * The caller frees `ret.data`.
 */
MUST_CHECK enum err bench_job_rounds(const uint32_t *lasts, uint32_t instances, uint32_t repeat,
    uint32_t turns, bool is_long, struct slice *ret, struct error *err);

#endif
