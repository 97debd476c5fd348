/**
 * Where a process' CPU time goes: by thread, exactly, from each thread's own clock; and within a
 * thread by the ranges that profilers see (gpu/profile.h), from samples of them.
 *
 * Reading a thread's clock costs about as much as decoding a small message does, so one range in a
 * few is measured, and stands for the others of its name. Of ranges within ranges the inner one
 * has the time. A range that the worker gets anew is found without a change here.
 *
 * Units: nanoseconds of CPU time. Threads: cpu_time_begin() and cpu_time_end() any, one at a time;
 * cpu_time_take() when the threads with ranges have ended.
 */
#ifndef BENCH_CPU_TIME_H
#define BENCH_CPU_TIME_H

#include <stddef.h>
#include <stdint.h>

enum { CPU_TIME_NAME_SIZE = 32, CPU_TIME_PARTS_MAX = 64 };

/** A part of what was measured: "lane: stage", or "lane: other", what no range of it covers. */
struct cpu_time_part {
    char name[CPU_TIME_NAME_SIZE];
    double ns;
};

struct cpu_time {
    struct cpu_time_part parts[CPU_TIME_PARTS_MAX];
    size_t count;
    double threads_ns, process_ns; /* the parts together; by the process' own clock */
    uint64_t switches;             /* voluntary context switches */
};

/** Ranges are seen from now on. Before the threads start. */
void cpu_time_start(void);

/** What comes until cpu_time_end() is measured. Neither needs memory. */
void cpu_time_begin(void);
void cpu_time_end(void);

void cpu_time_take(struct cpu_time *ret);

/** Of the whole process, since it started. */
uint64_t cpu_time_process_ns(void);
uint64_t cpu_time_switches(void);

#endif
