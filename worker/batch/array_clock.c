#include "batch/array_clock.h"

uint32_t array_clock_lanes(const struct array_clock *clock) {
    return (uint32_t)__builtin_popcountll(clock->lanes);
}

uint64_t array_clock_read(struct array_clock *clock, uint64_t now_ns) {
    uint32_t lanes = array_clock_lanes(clock);
    if (lanes > 0) clock->ns += (now_ns - clock->moved_ns) / lanes;
    clock->moved_ns = now_ns;
    return clock->ns;
}

void array_clock_note(struct array_clock *clock, uint32_t lane, bool is_running, uint64_t now_ns) {
    uint64_t bit = UINT64_C(1) << lane;
    if (((clock->lanes & bit) != 0) == is_running) return;
    (void)array_clock_read(clock, now_ns);
    clock->lanes ^= bit;
}
