#include "support/executor_rig.h"

#include <stdlib.h>

#include "base/log.h"
#include "support/scratch.h"
#include "testing.h"

int executor_rig_set_up(void **state) {
    struct error err;
    struct executor_rig *rig = calloc(1, sizeof *rig);
    assert_non_null(rig);
    log_init(LOG_OFF, LOG_TEXT);
    rig->folder = scratch_create();
    rig->device = (struct probed_device){.index = 3, .uuid = "GPU-3"};
    settings_init(&rig->settings);
    rig->options = (struct supervise_options){
        .settings = &rig->settings, .state_dir = rig->folder, .devices = &rig->device};
    assert_int_equal(executor_init(&rig->executor, &rig->options, &rig->device, &err), ERR_OK);
    *state = rig;
    return 0;
}

int executor_rig_tear_down(void **state) {
    struct executor_rig *rig = *state;
    executor_fini(&rig->executor);
    settings_fini(&rig->settings);
    scratch_remove(rig->folder);
    free(rig);
    return 0;
}

struct state *executor_rig_open_state(const struct executor_rig *rig) {
    struct error set_aside, err;
    struct state *state;
    assert_int_equal(state_open(rig->executor.state_path, 0, &state, &set_aside, &err), ERR_OK);
    return state;
}
