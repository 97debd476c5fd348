/**
 * A bound on log lines of one kind: so many in so much time. Further lines are counted, and the
 * next line that is written can say how many were left out.
 *
 * Lifetime: static; starts as one of the two below. Threads: any.
 */
#ifndef BASE_LOG_LIMIT_H
#define BASE_LOG_LIMIT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct log_limit {
    uint32_t lines_max, per_ms;
    pthread_mutex_t lock;
    uint64_t from_ns; /* when the lines began to be counted */
    uint32_t lines;
    uint64_t left_out;
};
/** For lines that senders can cause. */
#define LOG_LIMIT_OF_SENDERS                                                                       \
    { .lines_max = 10, .per_ms = 10000, .lock = PTHREAD_MUTEX_INITIALIZER }

/** For trouble that lasts. */
#define LOG_LIMIT_ONCE_A_MINUTE                                                                    \
    { .lines_max = 1, .per_ms = 60000, .lock = PTHREAD_MUTEX_INITIALIZER }

/**
 * Whether a line may be written at `now_ns`. If so, *left_out is how many were left out before it.
 * `left_out` may be NULL.
 */
bool log_limit_take(struct log_limit *limit, uint64_t now_ns, uint64_t *left_out);

#endif
