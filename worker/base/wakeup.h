/**
 * A condition variable whose waiters sleep, or spin: look for the signal again and again.
 *
 * A thread that sleeps needs 5 to 8 us to go on. One that spins goes on at once, and keeps a core
 * busy meanwhile; where other threads want that core, it lets them run.
 *
 * Lifetime: wakeup_init() to wakeup_fini(). Threads: any. Those that signal or wait hold one lock,
 * the same for all.
 */
#ifndef BASE_WAKEUP_H
#define BASE_WAKEUP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct wakeup {
    pthread_cond_t signalled; /* for those that sleep */
    atomic_uint signals;      /* so far, for those that spin */
    bool spins;
};

void wakeup_init(struct wakeup *wakeup, bool spins);
void wakeup_fini(struct wakeup *wakeup);

/** Wakes one thread that sleeps, or all that spin. */
void wakeup_signal(struct wakeup *wakeup);

/** Wakes all. */
void wakeup_broadcast(struct wakeup *wakeup);

/**
 * Waits, with `lock` held, until there is a signal or clock_ns() reaches `until_ns`; UINT64_MAX: no
 * time limit. The lock is free meanwhile. It may also return without either.
 */
void wakeup_wait_until(struct wakeup *wakeup, pthread_mutex_t *lock, uint64_t until_ns);

#endif
