#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/crew.h"
#include "bench/bench.h"
#include "bench/free_lists.h"

#define BUDGET_BYTES (256ull << 20) /* never reached */

enum {
    SIZES = 8,
    THREADS_MAX = 16,
    HELD_MAX = 8,
    SAMPLED = 32,         /* one operation in this many is timed */
    SAMPLES_MAX = 1 << 16 /* of a thread */
};

static const size_t sizes[SIZES] = {
    256, 512, 1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10};

static const uint32_t thread_counts[] = {1, 2, 4, 8, THREADS_MAX};
enum { THREAD_COUNTS = sizeof thread_counts / sizeof thread_counts[0] };

static const uint32_t held_counts[] = {1, HELD_MAX};
enum { HELD_COUNTS = sizeof held_counts / sizeof held_counts[0] };

/* What hands out blocks: the baseline, or the pools. */
enum side { SIDE_BASELINE, SIDE_POOL, SIDE_COUNT };

/* One kind of memory. */
struct memory {
    const struct device *device;
    struct budget budget;
    struct pool *pool;
    struct free_lists *lists;
    double clock_cost_ns; /* the time that reading the clock takes */
};

struct pool_work {
    struct memory *memory;
    enum side side;
    uint32_t threads;
    uint32_t held;       /* blocks that a thread holds at a time */
    uint64_t operations; /* of each thread */
    pthread_barrier_t start;
};

/* A thread's blocks. An operation returns the block that was taken longest ago, and takes one of a
 * random size. */
struct hand {
    struct pool_work *work;
    struct pool_counters counters;
    struct {
        size_t index; /* of its size */
        struct pool_block block;
    } held[HELD_MAX];
    uint32_t random;
    uint64_t started_ns, ended_ns;
    double *samples;
    size_t sample_count;
    enum err code;
    struct error err;
};

struct measured {
    double operations_per_s, p50_ns, p99_ns;
};

/* --- operations --- */

static enum err take(struct hand *hand, size_t at, size_t index) {
    struct memory *memory = hand->work->memory;
    hand->held[at].index = index;
    if (hand->work->side == SIDE_BASELINE)
        return free_lists_take(memory->lists, index, &hand->held[at].block, &hand->err);
    return pool_acquire(
        memory->pool, &hand->counters, sizes[index], &hand->held[at].block, &hand->err);
}

static enum err give(struct hand *hand, size_t at) {
    struct memory *memory = hand->work->memory;
    if (hand->work->side == SIDE_BASELINE) {
        free_lists_return(memory->lists, hand->held[at].index, &hand->held[at].block);
        return ERR_OK;
    }
    return pool_release(memory->pool, &hand->counters, &hand->held[at].block, &hand->err);
}

static enum err operate(struct hand *hand, size_t at) {
    hand->random = hand->random * 1664525u + 1013904223u;
    enum err code = give(hand, at);
    return code == ERR_OK ? take(hand, at, hand->random >> 16 & (SIZES - 1)) : code;
}

static enum err operate_timed(struct hand *hand, size_t at) {
    uint64_t begun_ns = clock_ns();
    enum err code = operate(hand, at);
    double ns = (double)(clock_ns() - begun_ns) - hand->work->memory->clock_cost_ns;
    if (hand->sample_count < SAMPLES_MAX) hand->samples[hand->sample_count++] = ns > 0 ? ns : 0;
    return code;
}

static void run_hand(void *context, uint32_t index) {
    struct hand *hand = &((struct hand *)context)[index];
    struct pool_work *work = hand->work;
    hand->code = device_bind(work->memory->device, &hand->err);
    pthread_barrier_wait(&work->start);
    hand->started_ns = clock_ns();
    for (uint64_t i = 0; i < work->operations && hand->code == ERR_OK; i++) {
        size_t at = i % work->held;
        hand->code = i % SAMPLED == 0 ? operate_timed(hand, at) : operate(hand, at);
    }
    hand->ended_ns = clock_ns();
    for (size_t i = 0; i < work->held && hand->code == ERR_OK; i++) hand->code = give(hand, i);
}

/* --- a round --- */

static int compare(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* Appends all threads' samples to those of the first. */
static enum err sum_up(
    struct hand *hands, uint32_t count, struct measured *ret, struct error *err) {
    uint64_t started_ns = hands[0].started_ns, ended_ns = hands[0].ended_ns;
    double *samples = hands[0].samples;
    size_t sample_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (hands[i].code != ERR_OK) {
            *err = hands[i].err;
            return hands[i].code;
        }
        if (hands[i].started_ns < started_ns) started_ns = hands[i].started_ns;
        if (hands[i].ended_ns > ended_ns) ended_ns = hands[i].ended_ns;
        memmove(samples + sample_count, hands[i].samples,
            hands[i].sample_count * sizeof hands[i].samples[0]);
        sample_count += hands[i].sample_count;
    }
    qsort(samples, sample_count, sizeof samples[0], compare);
    double operations = (double)count * (double)hands[0].work->operations;
    *ret = (struct measured){.operations_per_s = operations * 1e9 / (double)(ended_ns - started_ns),
        .p50_ns = samples[sample_count / 2],
        .p99_ns = samples[sample_count * 99 / 100]};
    return ERR_OK;
}

static enum err run_hands(struct hand *hands, double *samples, struct pool_work *work,
    struct measured *ret, struct error *err) {
    for (uint32_t i = 0; i < work->threads; i++) {
        hands[i].work = work;
        hands[i].random = i + 1;
        hands[i].samples = samples + (size_t)i * SAMPLES_MAX;
    }
    const struct crew_options options = {
        .name = "pools", .count = work->threads, .run = run_hand, .context = hands};
    struct crew *crew;
    enum err code = crew_start(&options, &crew, err);
    if (code != ERR_OK) return code;
    crew_join(&crew);
    return sum_up(hands, work->threads, ret, err);
}

static enum err run_round(struct pool_work *work, struct measured *ret, struct error *err) {
    struct hand *hands = calloc(work->threads, sizeof hands[0]);
    double *samples = calloc((size_t)work->threads * SAMPLES_MAX, sizeof samples[0]);
    enum err code = ERR_OK;
    pthread_barrier_init(&work->start, NULL, work->threads);
    if (hands == NULL || samples == NULL) code = error_no_memory(err, "no memory for samples");
    else code = run_hands(hands, samples, work, ret, err);
    pthread_barrier_destroy(&work->start);
    free(samples);
    free(hands);
    return code;
}

/* --- rows --- */

/* Measures both sides in turns. The first round of each only determines the number of operations
 * for a round. */
static enum err measure(const struct bench_options *options, struct pool_work *work,
    struct measured (*ret)[BENCH_ROUNDS_MAX], struct error *err) {
    struct measured probe;
    work->operations = 1000;
    work->side = SIDE_POOL;
    enum err code = run_round(work, &probe, err);
    work->side = SIDE_BASELINE;
    if (code == ERR_OK) code = run_round(work, &probe, err);
    if (code != ERR_OK) return code;
    work->operations =
        (uint64_t)(options->milliseconds * probe.operations_per_s / 1000 / work->threads) + 1;
    for (unsigned i = 0; i < options->table.rounds; i++)
        for (work->side = 0; work->side < SIDE_COUNT; work->side++) {
            code = run_round(work, &ret[work->side][i], err);
            if (code != ERR_OK) return code;
        }
    return ERR_OK;
}

/* Of one field of `measured`, which stands `offset` bytes behind its start. */
static struct bench_spread spread_of(const struct measured *rounds, unsigned count, size_t offset) {
    double values[BENCH_ROUNDS_MAX];
    for (unsigned i = 0; i < count; i++)
        values[i] = *(const double *)(const void *)((const char *)&rounds[i] + offset);
    return bench_spread_of(values, count);
}

static void print_row(const struct bench_table *table, const char *name,
    const struct measured (*rounds)[BENCH_ROUNDS_MAX]) {
    static const struct {
        struct bench_figure figures[SIDE_COUNT];
        size_t offset;
        bool has_spread;
    } cells[] = {
        {{{"baseline_operations_per_s", 0, NULL}, {"pool_operations_per_s", 0, NULL}},
            offsetof(struct measured, operations_per_s), false},
        {{{"baseline_p50_ns", 0, NULL}, {"pool_p50_ns", 0, NULL}},
            offsetof(struct measured, p50_ns), false},
        {{{"baseline_p99_ns", 0, NULL}, {"pool_p99_ns", 0, NULL}},
            offsetof(struct measured, p99_ns), true},
    };
    bench_row_begin(table, name);
    for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++)
        for (enum side side = 0; side < SIDE_COUNT; side++) {
            struct bench_spread spread = spread_of(rounds[side], table->rounds, cells[i].offset);
            if (cells[i].has_spread) bench_spread(table, cells[i].figures[side], &spread);
            else bench_median(table, cells[i].figures[side], &spread);
        }
    bench_row_end(table);
}

static enum err measure_row(const struct bench_options *options, struct memory *memory,
    uint32_t threads, uint32_t held, struct error *err) {
    struct pool_work work = {.memory = memory, .threads = threads, .held = held};
    struct measured rounds[SIDE_COUNT][BENCH_ROUNDS_MAX];
    enum err code = measure(options, &work, rounds, err);
    if (code != ERR_OK) return code;
    char name[96], thread_text[32];
    snprintf(
        thread_text, sizeof thread_text, threads == 1 ? "alone" : "%" PRIu32 " threads", threads);
    snprintf(name, sizeof name, "%s, %s, %" PRIu32 " held", memory->budget.name, thread_text, held);
    print_row(&options->table, name, (const struct measured(*)[BENCH_ROUNDS_MAX])rounds);
    return ERR_OK;
}

/* --- memory --- */

/* Fills the lists with as many blocks of each size as all threads can hold, so that none comes from
 * the driver later. */
static enum err fill(struct memory *memory, struct error *err) {
    struct pool_counters counters = {0};
    struct pool_block blocks[2][THREADS_MAX * HELD_MAX];
    size_t count = sizeof blocks[0] / sizeof blocks[0][0];
    enum err code = ERR_OK;
    for (size_t index = 0; index < SIZES && code == ERR_OK; index++) {
        for (size_t i = 0; i < count && code == ERR_OK; i++) {
            code = free_lists_take(memory->lists, index, &blocks[0][i], err);
            if (code == ERR_OK)
                code = pool_acquire(memory->pool, &counters, sizes[index], &blocks[1][i], err);
        }
        for (size_t i = 0; i < count && code == ERR_OK; i++) {
            free_lists_return(memory->lists, index, &blocks[0][i]);
            code = pool_release(memory->pool, &counters, &blocks[1][i], err);
        }
    }
    return code;
}

/* The median of many readings. */
static double clock_cost(void) {
    enum { READINGS = 1001 };
    double costs[READINGS];
    for (size_t i = 0; i < READINGS; i++) {
        uint64_t begun_ns = clock_ns();
        costs[i] = (double)(clock_ns() - begun_ns);
    }
    return bench_spread_of(costs, READINGS).median;
}

static enum err measure_memory(const struct bench_options *options, const struct device *device,
    enum pool_kind kind, struct error *err) {
    struct memory memory = {.device = device, .clock_cost_ns = clock_cost()};
    struct pool_counters counters = {0};
    budget_init(&memory.budget, kind == POOL_DEVICE ? "device" : "pinned",
        kind == POOL_DEVICE ? ERR_DEVICE_MEMORY : ERR_NO_MEMORY, BUDGET_BYTES);
    enum err code = pool_create(device, kind, &memory.budget, &memory.pool, err);
    if (code == ERR_OK) code = free_lists_create(device, kind, sizes, SIZES, &memory.lists, err);
    if (code == ERR_OK) code = fill(&memory, err);
    for (size_t h = 0; h < HELD_COUNTS; h++)
        for (size_t t = 0; t < THREAD_COUNTS && code == ERR_OK; t++)
            code = measure_row(options, &memory, thread_counts[t], held_counts[h], err);
    free_lists_destroy(memory.lists);
    pool_destroy(memory.pool, &counters);
    return code;
}

static enum err measure_all(
    const struct bench_options *options, const struct device *device, struct error *err) {
    static const char *const names[] = {"blocks, threads", "baseline, operations/s",
        "pool, operations/s", "baseline p50, ns", "pool p50, ns", "baseline p99, ns",
        "least .. most", "pool p99, ns", "least .. most"};
    bench_note(&options->table,
        "An operation takes a block of one of %d sizes and returns another; %u rounds; the "
        "clock's own %.0f ns are taken off\n\n",
        SIZES, options->table.rounds, clock_cost());
    bench_head(&options->table, names, sizeof names / sizeof names[0]);
    enum err code = measure_memory(options, device, POOL_DEVICE, err);
    return code == ERR_OK ? measure_memory(options, device, POOL_PINNED, err) : code;
}

enum err bench_pools(const struct bench_options *options, struct error *err) {
    const struct gpu_cpu_options cpu = {.device_count = 1, .memory_bytes = 2 * BUDGET_BYTES};
    const struct gpu_driver *driver;
    struct device device;
    bool on_cpu = options->settings->driver == DRIVER_CPU;
    enum err code = gpu_driver_open(on_cpu ? GPU_DRIVER_CPU : GPU_DRIVER_CUDA, &cpu, &driver, err);
    if (code == ERR_OK) code = device_open(&device, driver, 0, err);
    if (code != ERR_OK) return code;
    code = measure_all(options, &device, err);
    device_close(&device);
    return code;
}
