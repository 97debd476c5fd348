/**
 * Two ways to do the same work, measured in turns, so that what slows the machine for a while slows
 * both: medians, and the ratio with its spread over the rounds.
 */
#ifndef BENCH_TABLE_H
#define BENCH_TABLE_H

#include <stddef.h>

enum { BENCH_ROUNDS_MAX = 99 };

/** By round: nanoseconds a job. */
struct bench_rounds {
    size_t count;
    double baseline_ns[BENCH_ROUNDS_MAX], worker_ns[BENCH_ROUNDS_MAX];
};

/** The head of a Markdown table on standard output: jobs a second. `baseline` is the other way. */
void bench_print_rates_head(const char *baseline);
void bench_print_rates(const char *work, const struct bench_rounds *rounds);

/** One line of microseconds a job. */
void bench_print_latency(const char *work, const struct bench_rounds *rounds);

#endif
