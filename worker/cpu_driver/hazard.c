#include "cpu_driver/hazard.h"

static bool conflicts(enum cpu_access a, enum cpu_access b) {
    return a != b || a == CPU_WRITES;
}

void cpu_hazard_note(struct cpu_block *block, enum cpu_access access, struct cpu_point here,
    const uint64_t *known, bool (*is_done)(struct cpu_point point)) {
    bool is_hazard = false;
    for (enum cpu_access other = 0; other < CPU_ACCESS_COUNT; other++) {
        if (!conflicts(access, other)) continue;
        for (unsigned slot = 0; slot < CPU_STREAMS_MAX; slot++) {
            struct cpu_point earlier = {.slot = slot, .number = block->touched[other][slot]};
            bool is_ordered = earlier.number == 0 || slot == here.slot ||
                              known[slot] >= earlier.number || is_done(earlier);
            is_hazard = is_hazard || !is_ordered;
        }
    }
    if (is_hazard) cpu.counters.hazards++;
    block->touched[access][here.slot] = here.number;
}

void cpu_hazard_learn(uint64_t *known, const uint64_t *from) {
    for (unsigned slot = 0; slot < CPU_STREAMS_MAX; slot++)
        if (known[slot] < from[slot]) known[slot] = from[slot];
}
