/*
 * What threads of the worker wait with, and the clocks and random numbers that they read: the
 * linker puts these in the place of the C library's (tests/world/CMakeLists.txt). Outside of a
 * world they do what they did.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "world/scheduler.h"

enum { POLL_NS = 1000000, LONG_POLL_NS = 100000000 };

#define WRAPPED(type, name, ...)                                                                   \
    type __real_##name(__VA_ARGS__);                                                               \
    type __wrap_##name(__VA_ARGS__)

int __real_pthread_mutex_unlock(pthread_mutex_t *lock);

WRAPPED(int, pthread_mutex_lock, pthread_mutex_t *lock);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock) {
    if (!scheduler_is_on()) return __real_pthread_mutex_lock(lock);
    scheduler_maybe_yield();
    int code;
    while ((code = pthread_mutex_trylock(lock)) == EBUSY) (void)scheduler_wait(lock, UINT64_MAX);
    return code;
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock) {
    int code = __real_pthread_mutex_unlock(lock);
    if (scheduler_is_on()) scheduler_wake_all(lock);
    return code;
}

static int wait_until(pthread_cond_t *condition, pthread_mutex_t *lock, uint64_t until_ns) {
    __wrap_pthread_mutex_unlock(lock);
    bool is_in_time = scheduler_wait(condition, until_ns);
    __wrap_pthread_mutex_lock(lock);
    return is_in_time ? 0 : ETIMEDOUT;
}

WRAPPED(int, pthread_cond_wait, pthread_cond_t *condition, pthread_mutex_t *lock);
int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *lock) {
    if (!scheduler_is_on()) return __real_pthread_cond_wait(condition, lock);
    return wait_until(condition, lock, UINT64_MAX);
}

static uint64_t ns_of(const struct timespec *time) {
    return (uint64_t)time->tv_sec * 1000000000u + (uint64_t)time->tv_nsec;
}

/* The worker waits by the monotonic clock alone (base/condition.h). */
WRAPPED(int, pthread_cond_clockwait, pthread_cond_t *condition, pthread_mutex_t *lock,
    clockid_t clock, const struct timespec *until);
int __wrap_pthread_cond_clockwait(pthread_cond_t *condition, pthread_mutex_t *lock, clockid_t clock,
    const struct timespec *until) {
    if (!scheduler_is_on()) return __real_pthread_cond_clockwait(condition, lock, clock, until);
    return wait_until(condition, lock, ns_of(until));
}

WRAPPED(int, pthread_cond_signal, pthread_cond_t *condition);
int __wrap_pthread_cond_signal(pthread_cond_t *condition) {
    if (!scheduler_is_on()) return __real_pthread_cond_signal(condition);
    scheduler_wake_one(condition);
    return 0;
}

WRAPPED(int, pthread_cond_broadcast, pthread_cond_t *condition);
int __wrap_pthread_cond_broadcast(pthread_cond_t *condition) {
    if (!scheduler_is_on()) return __real_pthread_cond_broadcast(condition);
    scheduler_wake_all(condition);
    return 0;
}

WRAPPED(int, pthread_create, pthread_t *ret, const pthread_attr_t *attributes, void *(*run)(void *),
    void *context);
int __wrap_pthread_create(
    pthread_t *ret, const pthread_attr_t *attributes, void *(*run)(void *), void *context) {
    if (!scheduler_is_on()) return __real_pthread_create(ret, attributes, run, context);
    return scheduler_create(ret, attributes, run, context);
}

WRAPPED(int, pthread_join, pthread_t thread, void **ret);
int __wrap_pthread_join(pthread_t thread, void **ret) {
    if (!scheduler_is_on()) return __real_pthread_join(thread, ret);
    return scheduler_join(thread, ret);
}

/* A day of 2026 plus the world's time, where a wall clock is asked for. */
WRAPPED(int, clock_gettime, clockid_t clock, struct timespec *ret);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret) {
    bool is_wall = clock == CLOCK_REALTIME;
    if (!scheduler_is_on() || (!is_wall && clock != CLOCK_MONOTONIC))
        return __real_clock_gettime(clock, ret);
    uint64_t now_ns = is_wall ? scheduler_wall_ns() : scheduler_now_ns();
    ret->tv_sec = (time_t)(now_ns / 1000000000u);
    ret->tv_nsec = (long)(now_ns % 1000000000u);
    return 0;
}

WRAPPED(int, nanosleep, const struct timespec *time, struct timespec *left);
int __wrap_nanosleep(const struct timespec *time, struct timespec *left) {
    if (!scheduler_is_on()) return __real_nanosleep(time, left);
    scheduler_sleep_ns(ns_of(time));
    return 0;
}

/* No signal comes to a worker. */
WRAPPED(int, pause, void);
int __wrap_pause(void) {
    if (!scheduler_is_on()) return __real_pause();
    (void)scheduler_wait(NULL, UINT64_MAX);
    return -1;
}

WRAPPED(int, sched_yield, void);
int __wrap_sched_yield(void) {
    if (!scheduler_is_on()) return __real_sched_yield();
    scheduler_yield();
    return 0;
}

WRAPPED(int, poll, struct pollfd *fds, nfds_t count, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms) {
    if (!scheduler_is_on()) return __real_poll(fds, count, timeout_ms);
    uint64_t until_ns =
        timeout_ms < 0 ? UINT64_MAX : scheduler_now_ns() + (uint64_t)timeout_ms * 1000000u;
    int ready;
    while ((ready = __real_poll(fds, count, 0)) == 0 && scheduler_now_ns() < until_ns)
        scheduler_sleep_ns(timeout_ms < 0 ? LONG_POLL_NS : POLL_NS); /* signals can wait a little */
    return ready;
}

/* The seed decides on these, too: they give keys to hash tables, and names to lives. What is asked
 * for before the world begins is the same in each. */
WRAPPED(ssize_t, getrandom, void *bytes, size_t size, unsigned flags);
ssize_t __wrap_getrandom(void *bytes, size_t size, unsigned flags) {
    for (size_t i = 0; i < size; i++)
        ((unsigned char *)bytes)[i] = (unsigned char)(scheduler_is_on() ? scheduler_draw(256) : i);
    return (ssize_t)size;
}
