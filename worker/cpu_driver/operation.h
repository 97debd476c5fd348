/** One piece of work on a stream. Created by a call, run and destroyed by the stream's thread. */
#ifndef CPU_DRIVER_OPERATION_H
#define CPU_DRIVER_OPERATION_H

#include "cpu_driver/block.h"
#include "cpu_driver/event.h"
#include "cpu_driver/launch.h"

enum cpu_operation_kind {
    CPU_OPERATION_TO_DEVICE,
    CPU_OPERATION_TO_HOST,
    CPU_OPERATION_FILL,
    CPU_OPERATION_LAUNCH,
    CPU_OPERATION_RECORD,
    CPU_OPERATION_WAIT
};

struct cpu_copy {
    void *to;
    const void *from;
    size_t bytes;
    bool is_pageable;
};

struct cpu_fill {
    void *to;
    size_t bytes;
    uint8_t value;
};

struct cpu_operation {
    struct cpu_operation *next;
    enum cpu_operation_kind kind;
    struct cpu_fault fault;
    uint64_t number; /* in its stream, from 1 */
    uint64_t due_ns; /* when it runs even if its result is not asked for */
    unsigned use_count;
    struct cpu_use uses[KERNEL_PARAMS_MAX];
    union {
        struct cpu_copy copy;
        struct cpu_fill fill;
        struct cpu_launch *launch; /* owned */
        struct cpu_event *event;   /* +1 */
        struct cpu_point wait;
    };
};

/** NULL when memory is short. */
struct cpu_operation *cpu_operation_create(enum cpu_operation_kind kind, struct cpu_fault fault);

/** Notes that the operation uses a block. At most KERNEL_PARAMS_MAX times. */
void cpu_operation_use(struct cpu_operation *operation, struct cpu_use use);

/** Releases everything the operation names. NULL is fine. */
void cpu_operation_destroy(struct cpu_operation *operation);

#endif
