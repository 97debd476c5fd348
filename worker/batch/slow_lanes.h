/**
 * The lanes that have a slow batch, each to itself.
 *
 * Units: nanoseconds of clock_ns(). Lifetime: zeros to begin with. Threads: one at a time.
 */
#ifndef BATCH_SLOW_LANES_H
#define BATCH_SLOW_LANES_H

#include "batch/array_clock.h"

/** The slow batch that a lane has, or had last. */
struct slow_lane {
    bool is_taken;
    uint64_t signature;
    uint64_t number; /* of all slow batches, when it was taken */
    uint32_t others; /* lanes that had one then */
    uint64_t taken_ns;
};

struct slow_lanes {
    uint32_t count;   /* of those that have one */
    uint64_t batches; /* so far */
    struct slow_lane of[ARRAY_CLOCK_LANES_MAX];
};

void slow_lanes_enter(struct slow_lanes *lanes, uint32_t lane, uint64_t signature, uint64_t now_ns);

void slow_lanes_leave(struct slow_lanes *lanes, uint32_t lane);

/** Whether a lane took a batch of the signature less than `within_ns` ago, and still has it. */
bool slow_lanes_have(
    const struct slow_lanes *lanes, uint64_t signature, uint64_t within_ns, uint64_t now_ns);

/** How many other slow batches may have had a part of the device while the lane's ran. A quick one
 * is over before others begin; without this it would seem slow beside them. */
uint64_t slow_lanes_beside(const struct slow_lanes *lanes, uint32_t lane);

#endif
