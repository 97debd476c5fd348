#include "bench/table.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/json_writer.h"

static struct json_writer row; /* while one is printed, with --json */

static int compare(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

struct bench_spread bench_spread_of(double *values, size_t count) {
    qsort(values, count, sizeof values[0], compare);
    return (struct bench_spread){values[0], values[count / 2], values[count - 1]};
}

void bench_note(const struct bench_table *table, const char *format, ...) {
    if (table->is_json) return;
    va_list args;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    fflush(stdout);
}

void bench_head(const struct bench_table *table, const char *const *names, size_t count) {
    if (table->is_json) return;
    for (size_t i = 0; i < count; i++) printf("| %s ", names[i]);
    printf("|\n");
    for (size_t i = 0; i < count; i++) printf("| --- ");
    printf("|\n");
}

static void begin_json(const struct bench_table *table, const char *work) {
    row = (struct json_writer){.out = stdout, .is_spaced = true};
    json_object(&row, NULL);
    json_text(&row, "bench", table->bench);
    json_text(&row, "driver", table->settings->driver == DRIVER_CPU ? "cpu" : "cuda");
    json_int(&row, "processors", sysconf(_SC_NPROCESSORS_ONLN));
    json_uint(&row, "rounds", table->rounds);
    json_text(&row, "work", work);
}

void bench_row_begin(const struct bench_table *table, const char *work) {
    if (table->is_json) begin_json(table, work);
    else printf("| %s ", work);
}

void bench_row_end(const struct bench_table *table) {
    if (table->is_json) json_end_line(&row);
    else printf("|\n");
    fflush(stdout);
}

void bench_count(const struct bench_table *table, const char *key, uint64_t value) {
    if (table->is_json) json_uint(&row, key, value);
    else printf("| %" PRIu64 " ", value);
}

static void write_figure(struct bench_figure figure, const struct bench_spread *spread) {
    json_object(&row, figure.key);
    fprintf(json_value(&row, "least"), "%.*f", figure.decimals, spread->least);
    fprintf(json_value(&row, "median"), "%.*f", figure.decimals, spread->median);
    fprintf(json_value(&row, "most"), "%.*f", figure.decimals, spread->most);
    json_end(&row);
}

static const char *unit_of(struct bench_figure figure) {
    return figure.unit != NULL ? figure.unit : "";
}

void bench_median(const struct bench_table *table, struct bench_figure figure,
    const struct bench_spread *spread) {
    if (table->is_json) write_figure(figure, spread);
    else printf("| %.*f%s ", figure.decimals, spread->median, unit_of(figure));
}

void bench_spread(const struct bench_table *table, struct bench_figure figure,
    const struct bench_spread *spread) {
    bench_median(table, figure, spread);
    if (!table->is_json)
        printf("| %.*f .. %.*f%s ", figure.decimals, spread->least, figure.decimals, spread->most,
            unit_of(figure));
}

void bench_print_rates_head(const struct bench_table *table, const char *baseline) {
    char rate[64], ratio[64];
    snprintf(rate, sizeof rate, "%s, jobs/s", baseline);
    snprintf(ratio, sizeof ratio, "worker / %s", baseline);
    const char *const names[] = {"work", rate, "worker, jobs/s", ratio, "least .. most"};
    bench_head(table, names, sizeof names / sizeof names[0]);
}

void bench_print_rates(
    const struct bench_table *table, const char *work, const struct bench_rounds *rounds) {
    double baseline[BENCH_ROUNDS_MAX], worker[BENCH_ROUNDS_MAX], ratio[BENCH_ROUNDS_MAX];
    for (size_t i = 0; i < rounds->count; i++) {
        baseline[i] = 1e9 / rounds->baseline_ns[i];
        worker[i] = 1e9 / rounds->worker_ns[i];
        ratio[i] = 100 * worker[i] / baseline[i];
    }
    const struct bench_spread baselines = bench_spread_of(baseline, rounds->count),
                              workers = bench_spread_of(worker, rounds->count),
                              ratios = bench_spread_of(ratio, rounds->count);
    bench_row_begin(table, work);
    bench_median(table, (struct bench_figure){"baseline_jobs_per_s", 0, NULL}, &baselines);
    bench_median(table, (struct bench_figure){"worker_jobs_per_s", 0, NULL}, &workers);
    bench_spread(table, (struct bench_figure){"ratio_percent", 0, " %"}, &ratios);
    bench_row_end(table);
}

void bench_print_latency(
    const struct bench_table *table, const char *work, const struct bench_rounds *rounds) {
    double baseline[BENCH_ROUNDS_MAX], worker[BENCH_ROUNDS_MAX], added[BENCH_ROUNDS_MAX];
    for (size_t i = 0; i < rounds->count; i++) {
        baseline[i] = rounds->baseline_ns[i] / 1e3;
        worker[i] = rounds->worker_ns[i] / 1e3;
        added[i] = worker[i] - baseline[i];
    }
    const struct bench_spread baselines = bench_spread_of(baseline, rounds->count),
                              workers = bench_spread_of(worker, rounds->count),
                              more = bench_spread_of(added, rounds->count);
    if (!table->is_json) {
        printf("\n%s: baseline %.1f us, worker %.1f us, %.1f us more (%.1f .. %.1f)\n", work,
            baselines.median, workers.median, more.median, more.least, more.most);
        fflush(stdout);
        return;
    }
    bench_row_begin(table, work);
    bench_median(table, (struct bench_figure){"baseline_us", 1, NULL}, &baselines);
    bench_median(table, (struct bench_figure){"worker_us", 1, NULL}, &workers);
    bench_median(table, (struct bench_figure){"added_us", 1, NULL}, &more);
    bench_row_end(table);
}
