/**
 * Finds memory that two streams use at once without an event between them.
 *
 * Operations of a stream are numbered. For every other stream, a stream knows the last operation
 * that must have ended before its own next one (a vector clock, updated by the events it waits
 * for). A block remembers each stream's last read, write and kernel, with the bytes of it and of
 * those just before it that it follows on. An access is a hazard if another stream has a
 * conflicting one of the same bytes that is neither known nor finished.
 *
 * What it does not see: which bytes a kernel uses beside the first of each pointer, whether it
 * writes (two kernels on one block are no hazard), and pointers that a kernel finds in memory.
 */
#ifndef CPU_DRIVER_HAZARD_H
#define CPU_DRIVER_HAZARD_H

#include "cpu_driver/block.h"
#include "cpu_driver/event.h"

/**
 * Notes that the operation at `here` is going to use the bytes, and counts hazards. `known` is what
 * its stream knows; `is_done` tells whether a stream has passed a point.
 */
void cpu_hazard_note(const struct cpu_use *use, struct cpu_point here, const uint64_t *known,
    bool (*is_done)(struct cpu_point point));

/** Takes over what `from` knows; both are vectors of CPU_STREAMS_MAX numbers. */
void cpu_hazard_learn(uint64_t *known, const uint64_t *from);

#endif
