/**
 * Stacks that one thread switches between, so that a kernel thread can wait at a barrier on a stack
 * of its own. Fibers are kept and used again. AddressSanitizer and ThreadSanitizer are told of each
 * switch. Threads: a pool and its fibers belong to one thread, and need no lock.
 */
#ifndef CPU_DRIVER_FIBER_H
#define CPU_DRIVER_FIBER_H

#include <stdbool.h>

struct cpu_fiber;
struct cpu_fiber_pool;

/** NULL when memory is short. */
struct cpu_fiber_pool *cpu_fiber_pool_create(void);
void cpu_fiber_pool_destroy(struct cpu_fiber_pool *pool); /* NULL is fine */

/** A fiber that will call body(argument) when it is resumed; NULL when memory is short. */
struct cpu_fiber *cpu_fiber_take(
    struct cpu_fiber_pool *pool, void (*body)(void *argument), void *argument);

/**
 * Runs the fiber until it yields (true) or its body returns (false; the fiber is then back in the
 * pool). Not to be called inside a fiber.
 */
bool cpu_fiber_resume(struct cpu_fiber *fiber);

/** Called inside `fiber`: returns to the thread that resumed it. */
void cpu_fiber_yield(struct cpu_fiber *fiber);

/** The fiber that is running, or NULL. */
struct cpu_fiber *cpu_fiber_current(const struct cpu_fiber_pool *pool);

#endif
