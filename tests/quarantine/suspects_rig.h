/**
 * Suspects over a state file of its own, without a worker: the test is the intake, and counts what
 * is in flight.
 */
#ifndef TESTS_QUARANTINE_SUSPECTS_RIG_H
#define TESTS_QUARANTINE_SUSPECTS_RIG_H

#include <pthread.h>

#include "quarantine/suspects.h"
#include "support/state_rig.h"

enum { SUSPECTS_RIG_OFFSETS_MAX = 16 };

struct suspects_rig {
    struct state_rig *file;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t in_flight;
    bool has_no_memory;   /* to keep a message that waits */
    bool keeps_key_order; /* both from the next start on */
    struct suspension_rules rules;
    size_t dropped;
    int64_t dropped_offsets[SUSPECTS_RIG_OFFSETS_MAX];
    struct suspects *suspects;
};

/** A cmocka setup and teardown: *state is the rig. */
int suspects_rig_set_up(void **state);
int suspects_rig_tear_down(void **state);

/** After suspects_stop(): what stands in the state file is known from then on. */
void suspects_rig_start(struct suspects_rig *rig);

#endif
