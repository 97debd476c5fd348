/** The clocks that the worker uses. Threads: any. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/** Monotonic nanoseconds; only differences have a meaning. */
static inline uint64_t clock_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/** What clock_ns() will be in `ms` milliseconds. */
static inline uint64_t clock_ns_in(uint64_t ms) {
    return clock_ns() + ms * 1000000u;
}

/** Nanoseconds since 1970, for what others are to show beside their own times. */
static inline uint64_t clock_unix_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/** Milliseconds since 1970, as deadlines in messages are given. */
static inline uint64_t clock_unix_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / 1000000u;
}

#endif
