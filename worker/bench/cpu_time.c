#include "bench/cpu_time.h"

#include <ctype.h>
#include <dirent.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "gpu/profile.h"

enum {
    PERIOD = 13, /* one range in this many is measured; must not divide the size of a batch */
    THREADS_MAX = 256,
    RANGES_MAX = 16, /* different names of a thread's ranges */
    DEPTH_MAX = 8,
    THREAD_NAME_SIZE = 16
};

static uint64_t read_clock(clockid_t clock) {
    struct timespec t;
    if (clock_gettime(clock, &t) != 0) return 0; /* the thread has ended */
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t cpu_time_process_ns(void) {
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

uint64_t cpu_time_switches(void) {
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)usage.ru_nvcsw;
}

/* --- ranges --- */

/* Written by its thread, and read when that has ended. */
struct thread_ranges {
    pid_t thread;
    size_t count;
    struct {
        const char *name;
        uint64_t seen;
        double ns; /* of the measured ones */
    } ranges[RANGES_MAX];
};

static struct thread_ranges records[THREADS_MAX];
static atomic_size_t record_count;
static atomic_uint round_number; /* records of earlier rounds are used again */
static atomic_bool is_measuring;
static double clock_cost_ns; /* the time that reading the clock takes */

static _Thread_local struct {
    unsigned round;
    struct thread_ranges *record; /* NULL: there are more threads than records */
    size_t depth;
    size_t open[DEPTH_MAX]; /* ranges, by index */
    bool is_sampled;
    uint64_t since_ns;
} own;

static struct thread_ranges *own_record(void) {
    /* relaxed: cpu_time_start() comes before the threads start */
    unsigned round = atomic_load_explicit(&round_number, memory_order_relaxed);
    if (own.round == round) return own.record;
    size_t index = atomic_fetch_add_explicit(&record_count, 1, memory_order_relaxed);
    own.round = round;
    own.record = index < THREADS_MAX ? &records[index] : NULL;
    if (own.record != NULL) *own.record = (struct thread_ranges){.thread = gettid()};
    return own.record;
}

/* RANGES_MAX if there are too many names. */
static size_t find_range(struct thread_ranges *record, const char *name) {
    size_t i = 0;
    while (i < record->count && record->ranges[i].name != name &&
           strcmp(record->ranges[i].name, name) != 0)
        i++;
    if (i < record->count || i == RANGES_MAX) return i;
    record->ranges[record->count++].name = name;
    return i;
}

/* Adds the time since the last boundary to the innermost open range. */
static void end_slice(struct thread_ranges *record) {
    uint64_t now_ns = read_clock(CLOCK_THREAD_CPUTIME_ID);
    if (own.depth > 0 && own.depth <= DEPTH_MAX)
        record->ranges[own.open[own.depth - 1]].ns +=
            (double)(now_ns - own.since_ns) - clock_cost_ns;
    own.since_ns = now_ns;
}

static int push(const char *name) {
    struct thread_ranges *record = own_record();
    size_t range = record != NULL ? find_range(record, name) : RANGES_MAX;
    if (own.depth == 0) /* relaxed: a range at the edge may be measured or not */
        own.is_sampled = range < RANGES_MAX && record->ranges[range].seen++ % PERIOD == 0 &&
                         atomic_load_explicit(&is_measuring, memory_order_relaxed);
    if (own.is_sampled) end_slice(record);
    if (own.depth < DEPTH_MAX)
        own.open[own.depth] =
            range < RANGES_MAX || own.depth == 0 ? range : own.open[own.depth - 1];
    own.depth++;
    return 0;
}

static int pop(void) {
    if (own.depth == 0) return 0;
    if (own.is_sampled) end_slice(own_record());
    own.depth--;
    return 0;
}

static int compare(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* The median of many readings. */
static double measure_clock_cost(void) {
    enum { READINGS = 101 };
    double costs[READINGS];
    for (size_t i = 0; i < READINGS; i++) {
        uint64_t begun_ns = read_clock(CLOCK_THREAD_CPUTIME_ID);
        costs[i] = (double)(read_clock(CLOCK_THREAD_CPUTIME_ID) - begun_ns);
    }
    qsort(costs, READINGS, sizeof costs[0], compare);
    return costs[READINGS / 2];
}

void cpu_time_start(void) {
    clock_cost_ns = measure_clock_cost();
    atomic_store(&record_count, 0);
    atomic_fetch_add(&round_number, 1);
    profile_use((struct profile_hooks){.push = push, .pop = pop});
}

/* --- threads --- */

struct thread_time {
    pid_t thread;
    char name[THREAD_NAME_SIZE];
    uint64_t ns;
};

struct thread_times {
    size_t count;
    struct thread_time of[THREADS_MAX];
    uint64_t process_ns, switches;
};

static struct thread_times at_begin, at_end;

/* The clock of any thread of this process, as pthread_getcpuclockid() makes it of a pthread_t. */
static clockid_t thread_clock(pid_t thread) {
    enum { PER_THREAD = 4, SCHEDULED = 2 };
    return (clockid_t)(~(unsigned)thread << 3 | PER_THREAD | SCHEDULED);
}

/* Thread "lane-3" belongs to the crew "lane". The first thread of a process is the intake. */
static void read_crew(pid_t thread, char ret[static THREAD_NAME_SIZE]) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/comm", (int)thread);
    FILE *file = fopen(path, "r");
    if (file == NULL || fgets(ret, THREAD_NAME_SIZE, file) == NULL) strcpy(ret, "ended");
    if (file != NULL) fclose(file);
    if (thread == getpid()) strcpy(ret, "intake");
    size_t size = strcspn(ret, "\n");
    size_t digits = size;
    while (digits > 0 && isdigit((unsigned char)ret[digits - 1])) digits--;
    bool has_number = digits < size && digits > 1 && ret[digits - 1] == '-';
    ret[has_number ? digits - 1 : size] = 0;
}

static void read_threads(struct thread_times *ret) {
    DIR *folder = opendir("/proc/self/task");
    ret->count = 0;
    ret->process_ns = cpu_time_process_ns();
    ret->switches = cpu_time_switches();
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        pid_t thread = (pid_t)strtol(entry->d_name, NULL, 10);
        if (thread == 0 || ret->count == THREADS_MAX) continue;
        struct thread_time *time = &ret->of[ret->count++];
        *time = (struct thread_time){.thread = thread, .ns = read_clock(thread_clock(thread))};
        read_crew(thread, time->name);
    }
    if (folder != NULL) closedir(folder);
}

void cpu_time_begin(void) {
    read_threads(&at_begin);
    atomic_store_explicit(&is_measuring, true, memory_order_relaxed);
}

void cpu_time_end(void) {
    atomic_store_explicit(&is_measuring, false, memory_order_relaxed);
    read_threads(&at_end);
}

/* --- both --- */

static void add(struct cpu_time *time, const char *crew, const char *what, double ns) {
    char name[CPU_TIME_NAME_SIZE];
    size_t i = 0;
    snprintf(name, sizeof name, "%s: %s", crew, what);
    while (i < time->count && strcmp(time->parts[i].name, name) != 0) i++;
    if (i == CPU_TIME_PARTS_MAX) return;
    if (i == time->count) {
        strcpy(time->parts[i].name, name);
        time->parts[time->count++].ns = 0;
    }
    time->parts[i].ns += ns;
}

static uint64_t ns_at_begin(pid_t thread) {
    for (size_t i = 0; i < at_begin.count; i++)
        if (at_begin.of[i].thread == thread) return at_begin.of[i].ns;
    return 0; /* it started after that */
}

/* Adds the ranges of a thread, and returns their sum. */
static double add_ranges(struct cpu_time *time, const struct thread_time *thread) {
    size_t count = atomic_load(&record_count);
    double sum_ns = 0;
    for (size_t i = 0; i < count && i < THREADS_MAX; i++) {
        if (records[i].thread != thread->thread) continue;
        for (size_t r = 0; r < records[i].count; r++) {
            double ns = records[i].ranges[r].ns * PERIOD;
            add(time, thread->name, records[i].ranges[r].name, ns);
            sum_ns += ns;
        }
    }
    return sum_ns;
}

void cpu_time_take(struct cpu_time *ret) {
    *ret = (struct cpu_time){.process_ns = (double)(at_end.process_ns - at_begin.process_ns),
        .switches = at_end.switches - at_begin.switches};
    for (size_t i = 0; i < at_end.count; i++) {
        const struct thread_time *thread = &at_end.of[i];
        uint64_t before_ns = ns_at_begin(thread->thread);
        double ns = thread->ns > before_ns ? (double)(thread->ns - before_ns) : 0;
        double in_ranges_ns = add_ranges(ret, thread);
        add(ret, thread->name, "other", ns - in_ranges_ns);
        ret->threads_ns += ns;
    }
}
