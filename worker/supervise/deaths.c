#include "supervise/deaths.h"

enum { BACK_OFF_MS = 100, BACK_OFF_MAX_MS = 30000 };

static const char *const names[STATE_DEATH_KINDS] = {[STATE_DEATH_NONE] = "unexplained",
    [STATE_DEATH_STICKY] = "gpu_lost",
    [STATE_DEATH_HANG] = "hang",
    [STATE_DEATH_SIGNAL] = "crash",
    [STATE_DEATH_STALL] = "stall",
    [STATE_DEATH_STOP] = "stop",
    [STATE_DEATH_OWN] = "own"};

const char *death_name(enum state_death_kind kind) {
    return names[kind];
}

uint64_t death_back_off_ms(uint32_t deaths) {
    uint64_t ret = BACK_OFF_MS;
    for (uint32_t i = 1; i < deaths && ret < BACK_OFF_MAX_MS; i++) ret *= 2;
    return ret < BACK_OFF_MAX_MS ? ret : BACK_OFF_MAX_MS;
}
