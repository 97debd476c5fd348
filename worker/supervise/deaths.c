#include "supervise/deaths.h"

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
