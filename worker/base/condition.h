/**
 * Condition variables whose waits end by clock_ns(): a wall clock that jumps moves none of them.
 * Every wait with an end goes through here. Threads: any.
 */
#ifndef BASE_CONDITION_H
#define BASE_CONDITION_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/**
 * Waits, with `lock` held, until the condition is signalled (or for no reason, as all such waits)
 * or clock_ns() is `until_ns`; UINT64_MAX: until it is signalled. False when the time is over.
 */
bool condition_wait_until(pthread_cond_t *condition, pthread_mutex_t *lock, uint64_t until_ns);

/** The same for so long from now. */
bool condition_wait_ms(pthread_cond_t *condition, pthread_mutex_t *lock, uint32_t timeout_ms);

#endif
