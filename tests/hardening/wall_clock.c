/* Preloaded or linked, it moves a process's wall clock by as many seconds as the file that
 * WALL_CLOCK names says (an int64_t, of this machine's byte order), from the moment when that is
 * written: as setting the machine's clock does, waits that end by the wall clock and are under way
 * are moved too. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

enum { SLICE_NS = 5000000, IS_MONOTONIC = 2 /* a bit of a glibc condition variable's __wrefs */ };

static const _Atomic int64_t *shift;

void wall_clock_follow(const char *path);

void wall_clock_follow(const char *path) {
    int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *mapping = fd >= 0 ? mmap(NULL, sizeof *shift, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (mapping != MAP_FAILED) shift = mapping;
    if (fd >= 0) close(fd);
}

__attribute__((constructor)) static void follow(void) {
    wall_clock_follow(getenv("WALL_CLOCK"));
}

static int is_wall_clock(clockid_t clock) {
    return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI;
}

int clock_gettime(clockid_t clock, struct timespec *ret) {
    int failed = (int)syscall(SYS_clock_gettime, clock, ret);
    if (failed == 0 && is_wall_clock(clock) && shift != NULL)
        ret->tv_sec += (time_t)atomic_load_explicit(shift, memory_order_relaxed); /* alone */
    return failed;
}

int timespec_get(struct timespec *ret, int base) {
    return base == TIME_UTC && clock_gettime(CLOCK_REALTIME, ret) == 0 ? base : 0;
}

int gettimeofday(struct timeval *restrict ret, void *restrict zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    *ret = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *ret) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (ret != NULL) *ret = now.tv_sec;
    return now.tv_sec;
}

static int64_t left_ns(clockid_t clock, const struct timespec *until) {
    struct timespec now;
    clock_gettime(clock, &now);
    return ((int64_t)until->tv_sec - (int64_t)now.tv_sec) * 1000000000 + until->tv_nsec -
           now.tv_nsec;
}

/* By the moved clock: looked at again and again, since no wait of the system knows of it. */
static int wait_by(clockid_t clock, pthread_cond_t *condition, pthread_mutex_t *lock,
    const struct timespec *until) {
    for (;;) {
        struct timespec slice;
        if (left_ns(clock, until) <= 0) return ETIMEDOUT;
        clock_gettime(CLOCK_MONOTONIC, &slice);
        slice.tv_nsec += SLICE_NS;
        slice.tv_sec += slice.tv_nsec / 1000000000;
        slice.tv_nsec %= 1000000000;
        int error = pthread_cond_clockwait(condition, lock, CLOCK_MONOTONIC, &slice);
        if (error != ETIMEDOUT) return error;
    }
}

int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict lock,
    const struct timespec *restrict until) {
    if ((condition->__data.__wrefs & IS_MONOTONIC) != 0)
        return pthread_cond_clockwait(condition, lock, CLOCK_MONOTONIC, until);
    return wait_by(CLOCK_REALTIME, condition, lock, until);
}

/* The C library's types are those of POSIX under another name. Weak: the worker has one of its own,
 * where its broker's client is linked. */
__attribute__((weak)) int cnd_timedwait(
    cnd_t *restrict condition, mtx_t *restrict mutex, const struct timespec *restrict until) {
    int error =
        wait_by(CLOCK_REALTIME, (pthread_cond_t *)condition, (pthread_mutex_t *)mutex, until);
    return error == 0 ? thrd_success : thrd_timedout;
}
