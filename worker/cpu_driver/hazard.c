#include "cpu_driver/hazard.h"

#include "cpu_driver/stream.h"

static bool conflicts(enum cpu_access a, enum cpu_access b) {
    return a != b || a == CPU_WRITES;
}

static bool is_ordered(const struct cpu_stream *stream, struct cpu_point earlier) {
    return stream->slot == earlier.slot || stream->known[earlier.slot] >= earlier.number ||
           cpu_point_is_done(earlier);
}

static bool is_hazard(
    const struct cpu_block *block, enum cpu_access access, const struct cpu_stream *stream) {
    for (enum cpu_access other = 0; other < CPU_ACCESS_COUNT; other++) {
        if (!conflicts(access, other)) continue;
        for (unsigned slot = 0; slot < CPU_STREAMS_MAX; slot++) {
            struct cpu_point earlier = {.slot = slot, .number = block->touched[other][slot]};
            if (earlier.number != 0 && !is_ordered(stream, earlier)) return true;
        }
    }
    return false;
}

void cpu_hazard_note(struct cpu_block *block, enum cpu_access access,
    const struct cpu_stream *stream, uint64_t number) {
    if (is_hazard(block, access, stream)) cpu.counters.hazards++;
    block->touched[access][stream->slot] = number;
}

void cpu_hazard_learn(uint64_t *known, const uint64_t *from) {
    for (unsigned slot = 0; slot < CPU_STREAMS_MAX; slot++)
        if (known[slot] < from[slot]) known[slot] = from[slot];
}
