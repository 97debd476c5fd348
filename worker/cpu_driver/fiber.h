/**
 * Stacks that one thread switches between: a kernel's thread that waits at a barrier is left on its
 * own. Fibers are kept and used again. AddressSanitizer and ThreadSanitizer are told of each
 * switch. Threads: a pool and its fibers belong to one thread. No lock.
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
 * pool). Not from inside a fiber.
 */
bool cpu_fiber_resume(struct cpu_fiber *fiber);

/** Inside `fiber`: back to who resumed it. */
void cpu_fiber_yield(struct cpu_fiber *fiber);

/** The fiber that is running, or NULL. */
struct cpu_fiber *cpu_fiber_current(const struct cpu_fiber_pool *pool);

#endif
