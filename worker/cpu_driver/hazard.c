#include "cpu_driver/hazard.h"

static bool conflicts(enum cpu_access a, enum cpu_access b) {
    return a != b || a == CPU_WRITES;
}

static bool overlap(const struct cpu_use *use, const struct cpu_touch *touch) {
    return use->first < touch->end && touch->first < use->first + use->bytes;
}

static void note_touch(struct cpu_touch *touch, const struct cpu_use *use, uint64_t number) {
    const uint8_t *end = use->first + use->bytes;
    bool follows = touch->number != 0 && use->first == touch->end; /* as the chunks of an upload */
    bool is_same = touch->number == number;                        /* another pointer of a kernel */
    if (!follows && (!is_same || use->first < touch->first)) touch->first = use->first;
    if (!is_same || end > touch->end) touch->end = end;
    touch->number = number;
}

void cpu_hazard_note(const struct cpu_use *use, struct cpu_point here, const uint64_t *known,
    bool (*is_done)(struct cpu_point point)) {
    struct cpu_block *block = use->block;
    bool is_hazard = false;
    for (enum cpu_access other = 0; other < CPU_ACCESS_COUNT; other++) {
        if (!conflicts(use->access, other)) continue;
        for (unsigned slot = 0; slot < CPU_STREAMS_MAX; slot++) {
            const struct cpu_touch *touch = &block->touched[other][slot];
            struct cpu_point earlier = {.slot = slot, .number = touch->number};
            bool is_ordered = earlier.number == 0 || slot == here.slot || !overlap(use, touch) ||
                              known[slot] >= earlier.number || is_done(earlier);
            is_hazard = is_hazard || !is_ordered;
        }
    }
    if (is_hazard) cpu.counters.hazards++;
    note_touch(&block->touched[use->access][here.slot], use, here.number);
}

void cpu_hazard_learn(uint64_t *known, const uint64_t *from) {
    for (unsigned slot = 0; slot < CPU_STREAMS_MAX; slot++)
        if (known[slot] < from[slot]) known[slot] = from[slot];
}
