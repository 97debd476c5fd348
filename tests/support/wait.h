/**
 * Waits for what other threads, processes and brokers do. The limit is for what hangs, and far
 * above what a busy machine takes; who gives up says where, for what, and what was seen last.
 */
#ifndef TESTS_SUPPORT_WAIT_H
#define TESTS_SUPPORT_WAIT_H

#include <inttypes.h>
#include <sched.h>
#include <time.h>

#include "base/clock.h"
#include "testing.h"

enum { WAIT_LIMIT_MS = 120000 };

struct wait {
    uint64_t until_ns;
    unsigned looks;
};

static inline struct wait wait_begin(void) {
    return (struct wait){.until_ns = clock_ns_in(WAIT_LIMIT_MS)};
}

/** Whether to look again. For threads, which must not fail themselves. */
static inline bool wait_goes_on(const struct wait *wait) {
    return clock_ns() < wait->until_ns;
}

/** Lets others run: at first for a moment, so that what comes soon is seen soon. */
static inline void wait_pause(struct wait *wait) {
    enum { YIELDS = 1000, PAUSE_NS = 1000000 };
    if (wait->looks++ < YIELDS) sched_yield();
    else nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
}

/** WAIT_DOING(source_count(source), ==, 3, poll(source)): does the last until the first holds. */
#define WAIT_DOING(value, is, wanted, ...)                                                         \
    do {                                                                                           \
        struct wait wait_ = wait_begin();                                                          \
        for (;;) {                                                                                 \
            int64_t seen_ = (int64_t)(value);                                                      \
            if (seen_ is(int64_t)(wanted)) break;                                                  \
            if (!wait_goes_on(&wait_))                                                             \
                fail_msg("waited %d s for %s, and saw %" PRId64, WAIT_LIMIT_MS / 1000,             \
                    #value " " #is " " #wanted, seen_);                                            \
            __VA_ARGS__;                                                                           \
        }                                                                                          \
    } while (0)

/** WAIT_FOR(atomic_load(&count), >=, 3) */
#define WAIT_FOR(value, is, wanted) WAIT_DOING(value, is, wanted, wait_pause(&wait_))

#endif
