/** The fault script: parsed once, asked at every call. Threads: under the driver's lock. */
#ifndef CPU_DRIVER_FAULTS_H
#define CPU_DRIVER_FAULTS_H

#include "cpu_driver/cpu_driver.h"

enum cpu_effect {
    CPU_EFFECT_NONE,
    CPU_EFFECT_ANSWER, /* the call answers `result` and does nothing */
    CPU_EFFECT_NULL,   /* the call answers success and hands out nothing */
    CPU_EFFECT_LOSE,   /* the context is lost with `result` */
    CPU_EFFECT_HANG,
    CPU_EFFECT_SLOW /* by delay_ns */
};

struct cpu_fault {
    enum cpu_effect effect;
    CUresult result;
    uint64_t delay_ns;
};

struct cpu_fault_rule {
    enum cpu_entry entry;
    struct cpu_fault fault;
    uint64_t nth;       /* 0 where `probability` decides */
    double probability; /* 1 for every call */
    uint64_t calls;     /* seen so far */
};

enum { CPU_FAULT_RULES_MAX = 32 };

struct cpu_faults {
    struct cpu_fault_rule rules[CPU_FAULT_RULES_MAX];
    size_t count;
    uint64_t random;
};

/** NULL and "" are the script without faults. ERR_CONFIG names the position; `ret` is then void. */
MUST_CHECK enum err cpu_faults_parse(const char *text, struct cpu_faults *ret, struct error *err);

/** The fault that strikes this call of `entry`; its effect is NONE for most. */
struct cpu_fault cpu_faults_draw(struct cpu_faults *faults, enum cpu_entry entry);

/** True where `entry` puts work on a stream, so that effects of the work strike there. */
bool cpu_entry_enqueues(enum cpu_entry entry);

#endif
