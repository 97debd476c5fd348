/**
 * Switches stacks. swapcontext() makes a system call each time, to swap signal masks, which is not
 * needed here: a million crossings of a barrier by 128 threads take 0.40 s with it, and 0.05 s with
 * the twenty instructions used on x86-64. Threads: one at a time; needs no lock.
 */
#ifndef CPU_DRIVER_SWITCH_H
#define CPU_DRIVER_SWITCH_H

#include <stddef.h>

#ifdef __x86_64__
struct cpu_stack {
    void *top; /* of a stack that is not running: where its registers are saved */
};
#else
#include <ucontext.h>
struct cpu_stack {
    ucontext_t context;
};
#endif

/** Prepares memory so that the first switch to it calls `entry`, which must not return. */
void cpu_stack_prepare(struct cpu_stack *stack, void *memory, size_t bytes, void (*entry)(void));

/** Switches to `to`; returns when `from` is switched back to. */
void cpu_stack_switch(struct cpu_stack *from, struct cpu_stack *to);

#endif
