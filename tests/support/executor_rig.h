/** An executor as its supervisor sees it, with a state folder of its own and no process. */
#ifndef TESTS_SUPPORT_EXECUTOR_RIG_H
#define TESTS_SUPPORT_EXECUTOR_RIG_H

#include "settings/settings.h"
#include "state/state.h"
#include "supervise/executors.h"

struct executor_rig {
    char *folder;
    struct settings settings; /* the defaults */
    struct probed_device device;
    struct supervise_options options;
    struct executor executor;
};

/* A cmocka setup and teardown: *state is the rig. */
int executor_rig_set_up(void **state);
int executor_rig_tear_down(void **state);

/** As the executor's process would, or its supervisor after it. */
struct state *executor_rig_open_state(const struct executor_rig *rig);

#endif
