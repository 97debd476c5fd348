#include "base/backoff.h"

uint64_t backoff_ms(uint32_t base_ms, uint32_t max_ms, uint32_t failed_count, uint64_t random) {
    uint64_t longest_ms = base_ms;
    for (uint32_t i = 1; i < failed_count && longest_ms < max_ms; i++) longest_ms *= 2;
    if (longest_ms > max_ms) longest_ms = max_ms;
    uint64_t half_ms = longest_ms / 2;
    return longest_ms - half_ms + random % (half_ms + 1);
}
