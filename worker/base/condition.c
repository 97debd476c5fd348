#include "base/condition.h"

#include <time.h>

#include "base/clock.h"

bool condition_wait_until(pthread_cond_t *condition, pthread_mutex_t *lock, uint64_t until_ns) {
    if (until_ns == UINT64_MAX) return pthread_cond_wait(condition, lock) == 0;
    const struct timespec until = {
        .tv_sec = (time_t)(until_ns / 1000000000u), .tv_nsec = (long)(until_ns % 1000000000u)};
    return pthread_cond_clockwait(condition, lock, CLOCK_MONOTONIC, &until) == 0;
}

bool condition_wait_ms(pthread_cond_t *condition, pthread_mutex_t *lock, uint32_t timeout_ms) {
    return condition_wait_until(condition, lock, clock_ns_in(timeout_ms));
}
