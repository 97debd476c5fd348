/** The fault script: parsed once, consulted at every call. Threads: under the driver's lock. */
#ifndef CPU_DRIVER_FAULTS_H
#define CPU_DRIVER_FAULTS_H

#include "cpu_driver/cpu_driver.h"

enum cpu_effect {
    CPU_EFFECT_NONE,
    CPU_EFFECT_ANSWER, /* the call answers `result` and does nothing */
    CPU_EFFECT_NULL,   /* the call answers success and returns a null pointer */
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
    uint64_t nth;       /* 0: `probability` decides */
    double probability; /* 1 for every call */
    uint64_t calls;     /* seen so far */
};

enum { CPU_FAULT_RULES_MAX = 32 };

struct cpu_faults {
    struct cpu_fault_rule rules[CPU_FAULT_RULES_MAX];
    size_t count;
    uint64_t random;
};

/**
 * NULL and "" mean no faults. Errors: ERR_CONFIG with the position; `ret` must not be used then.
 */
MUST_CHECK enum err cpu_faults_parse(const char *text, struct cpu_faults *ret, struct error *err);

/** The fault for this call of `entry`; for most calls its effect is NONE. */
struct cpu_fault cpu_faults_draw(struct cpu_faults *faults, enum cpu_entry entry);

/** True if `entry` puts work on a stream, where effects of the work happen. */
bool cpu_entry_enqueues(enum cpu_entry entry);

#endif
