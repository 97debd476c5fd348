/** How long to wait before something that failed is tried again. Threads: pure. */
#ifndef BASE_BACKOFF_H
#define BASE_BACKOFF_H

#include <stdint.h>

/**
 * Milliseconds to wait after the `failed_count`-th failure in a row, from 1: the longest wait
 * doubles from `base_ms` up to `max_ms`, and the wait is anything from its half to the whole of it,
 * as `random` falls, so that those who failed together do not come back together.
 */
uint64_t backoff_ms(uint32_t base_ms, uint32_t max_ms, uint32_t failed_count, uint64_t random);

#endif
