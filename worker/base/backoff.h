/** How long to wait before something that failed is tried again. Threads: pure. */
#ifndef BASE_BACKOFF_H
#define BASE_BACKOFF_H

#include <stdint.h>

/**
 * Milliseconds to wait after the `failed_count`-th failure in a row, from 1: the longest wait
 * doubles from `base_ms` up to `max_ms`, and `random` picks a wait between half of it and all of
 * it, so that jobs that failed together do not all return at once.
 */
uint64_t backoff_ms(uint32_t base_ms, uint32_t max_ms, uint32_t failed_count, uint64_t random);

#endif
