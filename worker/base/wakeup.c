#include "base/wakeup.h"

#include <sched.h>

#include "base/clock.h"
#include "base/condition.h"

/* Between two looks at what else there is on this core, and at the clock: about a microsecond. */
enum { PAUSES = 32 };

/* Leaves the core to the other hyperthread for a moment. */
static void pause_core(void) {
#if defined __x86_64__
    __builtin_ia32_pause();
#elif defined __aarch64__
    __asm__ volatile("isb");
#endif
}

void wakeup_init(struct wakeup *wakeup, bool spins) {
    pthread_cond_init(&wakeup->signalled, NULL);
    atomic_init(&wakeup->signals, 0);
    wakeup->spins = spins;
}

void wakeup_fini(struct wakeup *wakeup) {
    pthread_cond_destroy(&wakeup->signalled);
}

/* relaxed, as all access: the lock, which is taken before and after, orders what is said */
static unsigned signals(const struct wakeup *wakeup) {
    return atomic_load_explicit(&wakeup->signals, memory_order_relaxed);
}

static void count_signal(struct wakeup *wakeup) {
    atomic_fetch_add_explicit(&wakeup->signals, 1, memory_order_relaxed);
}

void wakeup_signal(struct wakeup *wakeup) {
    if (wakeup->spins) count_signal(wakeup);
    else pthread_cond_signal(&wakeup->signalled);
}

void wakeup_broadcast(struct wakeup *wakeup) {
    if (wakeup->spins) count_signal(wakeup);
    else pthread_cond_broadcast(&wakeup->signalled);
}

/* Who signals still has the lock: sleeping until it is free would take longer than that lasts. */
static void lock_soon(pthread_mutex_t *lock) {
    for (int i = 0; i < PAUSES; i++) {
        if (pthread_mutex_trylock(lock) == 0) return;
        pause_core();
    }
    pthread_mutex_lock(lock);
}

static void spin_until(struct wakeup *wakeup, pthread_mutex_t *lock, uint64_t until_ns) {
    unsigned seen = signals(wakeup);
    pthread_mutex_unlock(lock);
    while (signals(wakeup) == seen && clock_ns() < until_ns) {
        for (int i = 0; i < PAUSES && signals(wakeup) == seen; i++) pause_core();
        sched_yield();
    }
    lock_soon(lock);
}

void wakeup_wait_until(struct wakeup *wakeup, pthread_mutex_t *lock, uint64_t until_ns) {
    if (wakeup->spins) spin_until(wakeup, lock, until_ns);
    else (void)condition_wait_until(&wakeup->signalled, lock, until_ns);
}
