/**
 * Measures where a process's CPU time goes: by thread, exactly, with each thread's clock; and
 * within a thread by the ranges that profilers show (gpu/profile.h), from samples.
 *
 * Reading a thread's clock costs about as much as decoding a small message, so only some ranges are
 * measured, and stand for the others of the same name. If ranges are nested, the time counts for
 * the inner one. New ranges in the worker need no change here.
 *
 * Units: nanoseconds of CPU time. Threads: cpu_time_begin() and cpu_time_end() any, one at a time;
 * cpu_time_take() when the threads with ranges have ended.
 */
#ifndef BENCH_CPU_TIME_H
#define BENCH_CPU_TIME_H

#include <stddef.h>
#include <stdint.h>

enum { CPU_TIME_NAME_SIZE = 32, CPU_TIME_PARTS_MAX = 64 };

/** A part of the time: "lane: stage", or "lane: other" for what no range covers. */
struct cpu_time_part {
    char name[CPU_TIME_NAME_SIZE];
    double ns;
};

struct cpu_time {
    struct cpu_time_part parts[CPU_TIME_PARTS_MAX];
    size_t count;
    double threads_ns, process_ns; /* the sum of the parts; by the process's clock */
    uint64_t switches;             /* voluntary context switches */
};

/** Ranges are noted from now on. Call it before the threads start. */
void cpu_time_start(void);

/** Starts the measurement, which cpu_time_end() ends. Neither allocates memory. */
void cpu_time_begin(void);
void cpu_time_end(void);

void cpu_time_take(struct cpu_time *ret);

/** CPU time of the whole process since it started. */
uint64_t cpu_time_process_ns(void);
uint64_t cpu_time_switches(void);

#endif
