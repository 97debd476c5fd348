/** A state file of its own in a scratch folder, opened again and again as life follows life. */
#ifndef TESTS_SUPPORT_STATE_RIG_H
#define TESTS_SUPPORT_STATE_RIG_H

#include "state/state.h"

struct state_rig {
    char *folder;
    char path[256];
    struct state *state; /* open */
};

/** A cmocka setup and teardown: *state is the rig. */
int state_rig_set_up(void **state);
int state_rig_tear_down(void **state);

/** Closes the file and opens it, which must not be set aside. */
void state_rig_open_again(struct state_rig *rig);

/** A scratch folder, and the path of a state file in it that is not there yet. */
struct state_place {
    char *folder;
    char path[256];
};

/** A cmocka setup and teardown: *state is the place. */
int state_place_set_up(void **state);
int state_place_tear_down(void **state);

#endif
