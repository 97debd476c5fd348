/**
 * The clock by which arrays have their time: the time of the device, shared by the lanes that run
 * batches. While three lanes do, it goes a third as fast. So an array whose slices have one of
 * them uses a third of that time, and `timeout_ms` is what it takes alone, whatever runs beside it.
 *
 * Units: nanoseconds of clock_ns(). Lifetime: zeros to begin with. Threads: one at a time.
 */
#ifndef BATCH_ARRAY_CLOCK_H
#define BATCH_ARRAY_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

enum { ARRAY_CLOCK_LANES_MAX = 64 };

struct array_clock {
    uint64_t lanes; /* those that run batches, a bit for each */
    uint64_t moved_ns;
    uint64_t ns;
};

/** The lane has batches in flight, or none any more. */
void array_clock_note(struct array_clock *clock, uint32_t lane, bool is_running, uint64_t now_ns);

/** How many share the time. */
uint32_t array_clock_lanes(const struct array_clock *clock);

uint64_t array_clock_read(struct array_clock *clock, uint64_t now_ns);

#endif
