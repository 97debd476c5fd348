#include "bench/table.h"

#include <stdio.h>
#include <stdlib.h>

struct spread {
    double min, median, max;
};

static int compare(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* Sorts. */
static struct spread spread_of(double *values, size_t count) {
    qsort(values, count, sizeof values[0], compare);
    return (struct spread){values[0], values[count / 2], values[count - 1]};
}

void bench_print_rates_head(const char *baseline) {
    printf("| work | %s, jobs/s | worker, jobs/s | worker / %s | least .. most |\n"
           "| --- | --- | --- | --- | --- |\n",
        baseline, baseline);
}

void bench_print_rates(const char *work, const struct bench_rounds *rounds) {
    double baseline[BENCH_ROUNDS_MAX], worker[BENCH_ROUNDS_MAX], ratio[BENCH_ROUNDS_MAX];
    for (size_t i = 0; i < rounds->count; i++) {
        baseline[i] = 1e9 / rounds->baseline_ns[i];
        worker[i] = 1e9 / rounds->worker_ns[i];
        ratio[i] = 100 * worker[i] / baseline[i];
    }
    struct spread ratios = spread_of(ratio, rounds->count);
    printf("| %s | %.0f | %.0f | %.0f %% | %.0f .. %.0f %% |\n", work,
        spread_of(baseline, rounds->count).median, spread_of(worker, rounds->count).median,
        ratios.median, ratios.min, ratios.max);
    fflush(stdout);
}

void bench_print_latency(const char *work, const struct bench_rounds *rounds) {
    double baseline[BENCH_ROUNDS_MAX], worker[BENCH_ROUNDS_MAX], added[BENCH_ROUNDS_MAX];
    for (size_t i = 0; i < rounds->count; i++) {
        baseline[i] = rounds->baseline_ns[i] / 1e3;
        worker[i] = rounds->worker_ns[i] / 1e3;
        added[i] = worker[i] - baseline[i];
    }
    struct spread more = spread_of(added, rounds->count);
    printf("%s: baseline %.1f us, worker %.1f us, %.1f us more (%.1f .. %.1f)\n", work,
        spread_of(baseline, rounds->count).median, spread_of(worker, rounds->count).median,
        more.median, more.min, more.max);
    fflush(stdout);
}
