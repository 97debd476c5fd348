/**
 * Waits on condition variables that end by clock_ns(), so a wall clock that jumps does not affect
 * them. Every wait with a time limit uses these. Threads: any.
 */
#ifndef BASE_CONDITION_H
#define BASE_CONDITION_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/**
 * Waits, with `lock` held, until the condition is signalled or clock_ns() reaches `until_ns`;
 * UINT64_MAX: no time limit. Spurious wake-ups happen, as with all condition variables. False when
 * the time is over.
 */
bool condition_wait_until(pthread_cond_t *condition, pthread_mutex_t *lock, uint64_t until_ns);

/** As condition_wait_until(), for `timeout_ms` from now. */
bool condition_wait_ms(pthread_cond_t *condition, pthread_mutex_t *lock, uint32_t timeout_ms);

#endif
