#include "support/state_rig.h"

#include <stdio.h>
#include <stdlib.h>

#include "support/scratch.h"
#include "testing.h"

void state_rig_open_again(struct state_rig *rig) {
    struct error set_aside, err;
    state_close(rig->state);
    assert_int_equal(state_open(rig->path, 0, &rig->state, &set_aside, &err), ERR_OK);
    assert_int_equal(set_aside.code, ERR_OK);
}

int state_rig_set_up(void **state) {
    struct state_rig *rig = calloc(1, sizeof *rig);
    assert_non_null(rig);
    rig->folder = scratch_create();
    snprintf(rig->path, sizeof rig->path, "%s/gpu0.state", rig->folder);
    state_rig_open_again(rig);
    *state = rig;
    return 0;
}

int state_rig_tear_down(void **state) {
    struct state_rig *rig = *state;
    state_close(rig->state);
    scratch_remove(rig->folder);
    free(rig);
    return 0;
}

int state_place_set_up(void **state) {
    struct state_place *place = calloc(1, sizeof *place);
    assert_non_null(place);
    place->folder = scratch_create();
    snprintf(place->path, sizeof place->path, "%s/gpu0.state", place->folder);
    *state = place;
    return 0;
}

int state_place_tear_down(void **state) {
    struct state_place *place = *state;
    scratch_remove(place->folder);
    free(place);
    return 0;
}
