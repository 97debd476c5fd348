#include "batch/slow_lanes.h"

#include "base/invariant.h"

void slow_lanes_enter(
    struct slow_lanes *lanes, uint32_t lane, uint64_t signature, uint64_t now_ns) {
    lanes->of[lane] = (struct slow_lane){.is_taken = true,
        .signature = signature,
        .number = ++lanes->batches,
        .others = lanes->count++,
        .taken_ns = now_ns};
}

void slow_lanes_leave(struct slow_lanes *lanes, uint32_t lane) {
    INVARIANT(lanes->of[lane].is_taken, "the lane has a slow batch");
    lanes->of[lane].is_taken = false;
    lanes->count--;
}

bool slow_lanes_have(
    const struct slow_lanes *lanes, uint64_t signature, uint64_t within_ns, uint64_t now_ns) {
    for (uint32_t i = 0; i < ARRAY_CLOCK_LANES_MAX; i++) {
        const struct slow_lane *lane = &lanes->of[i];
        if (lane->is_taken && lane->signature == signature && now_ns - lane->taken_ns < within_ns)
            return true;
    }
    return false;
}

uint64_t slow_lanes_beside(const struct slow_lanes *lanes, uint32_t lane) {
    const struct slow_lane *own = &lanes->of[lane];
    if (!own->is_taken) return lanes->count;
    return own->others + (lanes->batches - own->number);
}
