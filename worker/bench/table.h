/**
 * Prints the results of a bench: as a Markdown table or, with --json, as one JSON object per row
 * with the same figures.
 *
 * The ways to do the same work are measured in turns, so that a disturbance of the machine slows
 * all of them. A figure is the median of its rounds, with the least and the most.
 *
 * Threads: one.
 */
#ifndef BENCH_TABLE_H
#define BENCH_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "settings/settings.h"

enum { BENCH_ROUNDS_MAX = 99 };

struct bench_table {
    const char *bench; /* the subcommand */
    const struct settings *settings;
    unsigned rounds;
    bool is_json;
};

struct bench_spread {
    double least, median, most;
};

/** Sorts `values`; `count` must not be 0. */
struct bench_spread bench_spread_of(double *values, size_t count);

/** A line of text before or after a table; nothing in JSON. */
__attribute__((format(printf, 2, 3))) void bench_note(
    const struct bench_table *table, const char *format, ...);

/** The table's head, with `count` names. Nothing in JSON. */
void bench_head(const struct bench_table *table, const char *const *names, size_t count);

/** A row: its begin, a cell for each name of the head, its end. */
void bench_row_begin(const struct bench_table *table, const char *work);
void bench_row_end(const struct bench_table *table);

/**
 * How a figure is printed, such as "12.3 %". Its name in JSON is `key`, which includes the unit.
 */
struct bench_figure {
    const char *key;
    int decimals;
    const char *unit; /* " %", or NULL if the head names the unit */
};

/** A cell with a number that is no figure: what the row is about. */
void bench_count(const struct bench_table *table, const char *key, uint64_t value);

/** A cell with the median. */
void bench_median(
    const struct bench_table *table, struct bench_figure figure, const struct bench_spread *spread);

/** A cell with the median, and one with the least and the most. */
void bench_spread(
    const struct bench_table *table, struct bench_figure figure, const struct bench_spread *spread);

/** Nanoseconds per job, by round. */
struct bench_rounds {
    size_t count;
    double baseline_ns[BENCH_ROUNDS_MAX], worker_ns[BENCH_ROUNDS_MAX];
};

/** A table of jobs per second. `baseline` names the other way. */
void bench_print_rates_head(const struct bench_table *table, const char *baseline);
void bench_print_rates(
    const struct bench_table *table, const char *work, const struct bench_rounds *rounds);

/** A line with microseconds per job. */
void bench_print_latency(
    const struct bench_table *table, const char *work, const struct bench_rounds *rounds);

#endif
