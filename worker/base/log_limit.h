/**
 * A bound on log lines of one kind that senders can cause: LOG_LIMIT_LINES in LOG_LIMIT_MS. Further
 * lines are counted, and the next line that is written says how many were left out. Threads: any.
 */
#ifndef BASE_LOG_LIMIT_H
#define BASE_LOG_LIMIT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum { LOG_LIMIT_LINES = 10, LOG_LIMIT_MS = 10000 };

/* Starts as LOG_LIMIT_INIT. */
struct log_limit {
    pthread_mutex_t lock;
    uint64_t from_ns; /* when the lines began to be counted */
    uint32_t lines;
    uint64_t left_out;
};
#define LOG_LIMIT_INIT                                                                             \
    { .lock = PTHREAD_MUTEX_INITIALIZER }

/**
 * Whether a line may be written at `now_ns`. If so, *left_out is how many were left out before it.
 */
bool log_limit_take(struct log_limit *limit, uint64_t now_ns, uint64_t *left_out);

#endif
