#include "bench/scale.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "metrics/board.h"
#include "process/child.h"
#include "supervise/probe.h"

enum {
    COUNTS_MAX = 8,       /* 1, 2, 4 ... 64 devices, and how many there are */
    PATIENCE_MS = 600000, /* an executor that answers nothing for so long never will */
    LOOK_INTERVAL_MS = 2, /* between two looks at the executors */
    CPU_DEVICES_AT_LEAST = 2
};

/* ---- executors ---- */

struct scale_executor {
    pid_t pid; /* 0: it does not run */
    struct board *board;
    int board_fd;
};

struct group {
    const struct bench_options *options;
    const struct scale_work *work;
    size_t count;
    struct scale_executor executors[PROBED_DEVICES_MAX];
};

/* What all executors of a group have done so far. */
struct reading {
    uint64_t at_ns, messages, cpu_ns, to_device_bytes, to_host_bytes;
};

static enum err start(struct group *group, uint32_t device, struct error *err) {
    const struct bench_options *options = group->options;
    struct scale_executor *executor = &group->executors[group->count];
    char work[24], number[16], board[16], devices[16], instances[16], iterations[16];
    const char *arguments[] = {"scale", "--driver",
        options->settings->driver == DRIVER_CPU ? "cpu" : "cuda", "--device", number, "--board",
        board, "--work", work, "--devices", devices, "--instances", instances, "--iterations",
        iterations, options->config != NULL ? "--config" : NULL, options->config, NULL};
    *executor = (struct scale_executor){.board_fd = -1};
    group->count++;
    enum err code = board_create(&executor->board, &executor->board_fd, err);
    snprintf(work, sizeof work, "%td", group->work - scale_works);
    snprintf(number, sizeof number, "%" PRIu32, device);
    snprintf(board, sizeof board, "%d", executor->board_fd);
    snprintf(devices, sizeof devices, "%" PRIu32, options->settings->cpu_driver.devices);
    snprintf(instances, sizeof instances, "%" PRIu32, options->instances);
    snprintf(iterations, sizeof iterations, "%" PRIu32, options->iterations);
    const int kept[] = {executor->board_fd, -1};
    return code == ERR_OK ? child_start(arguments, -1, kept, &executor->pid, err) : code;
}

/* What executors still run is nobody's, so nothing waits for it. */
static void end_all(struct group *group) {
    for (size_t i = 0; i < group->count; i++)
        if (group->executors[i].pid != 0) kill(group->executors[i].pid, SIGKILL);
    for (size_t i = 0; i < group->count; i++) {
        struct scale_executor *executor = &group->executors[i];
        while (executor->pid != 0 && waitpid(executor->pid, NULL, 0) < 0 && errno == EINTR) {
        }
        board_destroy(executor->board);
        if (executor->board_fd >= 0) close(executor->board_fd);
    }
    group->count = 0;
}

static enum err check_outcomes(
    const struct scale_executor *executor, const struct totals *totals, struct error *err) {
    uint64_t failed = 0;
    struct ledger_failure last;
    for (size_t i = 0; i < ERR_COUNT; i++)
        if (i != ERR_OK) failed += totals->outcomes[i];
    if (failed == 0) return ERR_OK;
    /* acquire: pairs with the release in note_failure() of the ledger */
    uint64_t number =
        atomic_load_explicit(&executor->board->ledger.failure_count, memory_order_acquire);
    if (!ledger_read_failure(&executor->board->ledger, number, &last)) last.message[0] = 0;
    return error_set(err, ERR_INTERNAL, 0, "run one such job alone to see why",
        "%" PRIu64 " of the bench's jobs failed: %s", failed, last.message);
}

/* An executor ends only when something is wrong, and has said what. */
static enum err check_alive(struct scale_executor *executor, struct error *err) {
    int status;
    if (waitpid(executor->pid, &status, WNOHANG) != executor->pid) return ERR_OK;
    executor->pid = 0;
    return error_set(err, ERR_INTERNAL, 0, "see the line above, if there is one",
        "an executor ended with %s %d", WIFEXITED(status) ? "code" : "signal",
        WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}

static uint64_t cpu_ns_of(pid_t pid) {
    clockid_t clock;
    struct timespec time;
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0) return 0;
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static uint64_t answered_by(const struct scale_executor *executor) {
    struct totals totals;
    counters_read(&executor->board->counters, &totals);
    return totals.outcomes[ERR_OK];
}

static enum err read_all(struct group *group, struct reading *ret, struct error *err) {
    *ret = (struct reading){.at_ns = clock_ns()};
    enum err code = ERR_OK;
    for (size_t i = 0; i < group->count && code == ERR_OK; i++) {
        struct scale_executor *executor = &group->executors[i];
        struct totals totals;
        counters_read(&executor->board->counters, &totals);
        ret->messages += totals.outcomes[ERR_OK];
        ret->to_device_bytes += totals.of[COUNTER_engine_host_to_device_bytes];
        ret->to_host_bytes += totals.of[COUNTER_engine_device_to_host_bytes];
        ret->cpu_ns += cpu_ns_of(executor->pid);
        code = check_outcomes(executor, &totals, err);
    }
    return code;
}

/* Waits until `ms` have passed and each has answered `more` messages than `before` says. */
static enum err await(
    struct group *group, uint32_t ms, const uint64_t *before, uint64_t more, struct error *err) {
    const struct timespec interval = {.tv_nsec = LOOK_INTERVAL_MS * 1000000};
    uint64_t until_ns = clock_ns_in(ms), patience_ns = clock_ns_in(ms + PATIENCE_MS);
    for (;;) {
        bool is_over = clock_ns() >= until_ns;
        for (size_t i = 0; i < group->count; i++) {
            enum err code = check_alive(&group->executors[i], err);
            if (code != ERR_OK) return code;
            is_over = is_over && answered_by(&group->executors[i]) >= before[i] + more;
        }
        if (is_over) return ERR_OK;
        if (clock_ns() > patience_ns)
            return error_set(err, ERR_TIMEOUT, 0, "see whether the machine is busy with other work",
                "an executor answered nothing for %d s", PATIENCE_MS / 1000);
        nanosleep(&interval, NULL);
    }
}

/* ---- measuring ---- */

struct figures {
    double jobs_per_s[BENCH_ROUNDS_MAX], linear[BENCH_ROUNDS_MAX], cores[BENCH_ROUNDS_MAX],
        to_device[BENCH_ROUNDS_MAX], to_host[BENCH_ROUNDS_MAX];
};

struct scale {
    const struct bench_options *options;
    struct probed_device devices[PROBED_DEVICES_MAX];
    size_t count_count, counts[COUNTS_MAX]; /* of devices at a time */
};

static void note(struct figures *ret, unsigned round, const struct group *group,
    const struct reading *from, const struct reading *to) {
    double ns = (double)(to->at_ns - from->at_ns);
    double each = group->work->jobs > 0 ? group->work->jobs : group->options->instances;
    ret->jobs_per_s[round] = (double)(to->messages - from->messages) * each * 1e9 / ns;
    ret->cores[round] = (double)(to->cpu_ns - from->cpu_ns) / ns;
    ret->to_device[round] = (double)(to->to_device_bytes - from->to_device_bytes) * 1e3 / ns;
    ret->to_host[round] = (double)(to->to_host_bytes - from->to_host_bytes) * 1e3 / ns;
}

/* All executors work before the window begins and after it ends. */
static enum err measure_window(
    struct group *group, struct figures *ret, unsigned round, struct error *err) {
    static const uint64_t none[PROBED_DEVICES_MAX];
    uint64_t before[PROBED_DEVICES_MAX];
    uint32_t ms = group->options->milliseconds;
    struct reading from, to;
    enum err code = await(group, 0, none, group->work->warm_up, err);
    if (code == ERR_OK) code = await(group, ms / 2, none, 0, err);
    if (code == ERR_OK) code = read_all(group, &from, err);
    if (code != ERR_OK) return code;
    for (size_t i = 0; i < group->count; i++) before[i] = answered_by(&group->executors[i]);
    code = await(group, ms, before, 1, err);
    if (code == ERR_OK) code = read_all(group, &to, err);
    if (code == ERR_OK) note(ret, round, group, &from, &to);
    return code;
}

static enum err run_group(const struct scale *scale, const struct scale_work *work, size_t count,
    struct figures *ret, unsigned round, struct error *err) {
    struct group group = {.options = scale->options, .work = work};
    enum err code = ERR_OK;
    for (size_t i = 0; i < count && code == ERR_OK; i++)
        code = start(&group, scale->devices[i].index, err);
    if (code == ERR_OK) code = measure_window(&group, ret, round, err);
    end_all(&group);
    return code;
}

static void print_row(const struct scale *scale, const struct scale_work *work, size_t devices,
    struct figures *figures) {
    const struct bench_table *table = &scale->options->table;
    unsigned rounds = table->rounds;
    const struct bench_spread jobs = bench_spread_of(figures->jobs_per_s, rounds),
                              linear = bench_spread_of(figures->linear, rounds),
                              cores = bench_spread_of(figures->cores, rounds),
                              to_device = bench_spread_of(figures->to_device, rounds),
                              to_host = bench_spread_of(figures->to_host, rounds);
    bench_row_begin(table, work->name);
    bench_count(table, "devices", devices);
    bench_spread(table, (struct bench_figure){"jobs_per_s", 0, NULL}, &jobs);
    bench_spread(table, (struct bench_figure){"linear_percent", 1, " %"}, &linear);
    bench_median(table, (struct bench_figure){"cpu_cores", 2, NULL}, &cores);
    bench_median(table, (struct bench_figure){"to_device_mb_per_s", 1, NULL}, &to_device);
    bench_median(table, (struct bench_figure){"to_host_mb_per_s", 1, NULL}, &to_host);
    bench_row_end(table);
}

static enum err measure(
    const struct scale *scale, const struct scale_work *work, struct error *err) {
    struct figures figures[COUNTS_MAX];
    enum err code = ERR_OK;
    for (unsigned round = 0; round < scale->options->table.rounds; round++)
        for (size_t i = 0; i < scale->count_count; i++) {
            code = run_group(scale, work, scale->counts[i], &figures[i], round, err);
            if (code != ERR_OK) return code;
            figures[i].linear[round] = 100 * figures[i].jobs_per_s[round] /
                                       (figures[0].jobs_per_s[round] * (double)scale->counts[i]);
        }
    for (size_t i = 0; i < scale->count_count; i++)
        print_row(scale, work, scale->counts[i], &figures[i]);
    return ERR_OK;
}

/* ---- devices ---- */

static enum err find_devices(struct scale *scale, size_t *ret, struct error *err) {
    const struct bench_options *options = scale->options;
    struct settings *settings = options->settings;
    size_t max = options->devices > 0 ? options->devices : PROBED_DEVICES_MAX;
    if (settings->driver == DRIVER_CPU) {
        if (options->devices > 0) settings->cpu_driver.devices = options->devices;
        else if (settings->cpu_driver.devices < CPU_DEVICES_AT_LEAST)
            settings->cpu_driver.devices = CPU_DEVICES_AT_LEAST;
        *ret = settings->cpu_driver.devices;
        for (size_t i = 0; i < *ret; i++) scale->devices[i].index = (uint32_t)i;
        return ERR_OK;
    }
    int child_exit_code;
    return probe_devices(
        settings, options->config, scale->devices, max, ret, &child_exit_code, err);
}

/* 1, 2, 4 ... and all. */
static void list_counts(struct scale *scale, size_t all) {
    for (size_t count = 1; count < all; count *= 2) scale->counts[scale->count_count++] = count;
    scale->counts[scale->count_count++] = all;
}

enum err bench_scale(const struct bench_options *options, struct error *err) {
    static const char *const names[] = {"work", "devices", "jobs/s", "least .. most", "of linear",
        "least .. most", "CPU cores", "to the device, MB/s", "to the host, MB/s"};
    struct scale scale = {.options = options};
    size_t all;
    if (options->board_fd > 0) return bench_scale_executor(options, err);
    enum err code = find_devices(&scale, &all, err);
    if (code != ERR_OK) return code;
    list_counts(&scale, all);
    bench_note(&options->table,
        "Jobs from memory, an executor process for each device. All executors of a row are "
        "measured "
        "over the same\n%" PRIu32
        " ms, while all of them work: start, warm-up and end are left out. %u rounds. Instances of "
        "arrays\n(%" PRIu32 " each) count as jobs. The main job has %" PRIu32
        " epochs. CPU cores are those that the executors used%s.\n\n",
        options->milliseconds, options->table.rounds, options->instances, options->iterations,
        options->settings->driver == DRIVER_CPU ? ", their simulated devices included" : "");
    bench_head(&options->table, names, sizeof names / sizeof names[0]);
    for (size_t i = 0; i < scale_work_count && code == ERR_OK; i++)
        code = measure(&scale, &scale_works[i], err);
    return code;
}
