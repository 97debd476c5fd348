/* What the supervisor decides of an executor, without waiting for it. */
#include "supervise/executors.h"

#include <signal.h>
#include <stdlib.h>

#include "base/log.h"
#include "support/scratch.h"
#include "testing.h"

/* What the README promises. */
#define DIES_WITHIN_NS 15000000000u
#define KILLED_NS 1000000000u

static const struct probed_device device = {.index = 0};

struct fixture {
    char *folder;
    struct settings settings;
    struct supervise_options options;
    struct executor executor;
};

/* An executor that was killed just now, and is not dead. */
static int set_up(void **state) {
    struct error err;
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    log_init(LOG_OFF, LOG_TEXT);
    fixture->folder = scratch_create();
    settings_init(&fixture->settings);
    fixture->options = (struct supervise_options){
        .settings = &fixture->settings, .state_dir = fixture->folder, .devices = &device};
    assert_int_equal(executor_init(&fixture->executor, &fixture->options, &device, &err), ERR_OK);
    fixture->executor.standing = STANDING_KILLED;
    fixture->executor.killed_ns = KILLED_NS;
    *state = fixture;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *fixture = *state;
    executor_fini(&fixture->executor);
    settings_fini(&fixture->settings);
    scratch_remove(fixture->folder);
    free(fixture);
    return 0;
}

TEST(a_killed_executor_has_its_time_to_die) {
    struct executor *executor = &((struct fixture *)*state)->executor;
    executor_tend(executor, KILLED_NS + DIES_WITHIN_NS, false);
    assert_int_equal(executor->standing, STANDING_KILLED);
    executor_reap(executor, SIGKILL, false);
    assert_int_equal(executor->standing, STANDING_WAITING);
}

TEST(one_that_does_not_die_makes_its_device_unhealthy_for_good) {
    struct executor *executor = &((struct fixture *)*state)->executor;
    executor_tend(executor, KILLED_NS + DIES_WITHIN_NS + 1, false);
    assert_int_equal(executor->standing, STANDING_UNHEALTHY);
    assert_true(executor_is_over(executor));
    executor_reap(executor, SIGKILL, false); /* it dies after all */
    assert_int_equal(executor->standing, STANDING_UNHEALTHY);
}

#define F(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
RUN_TESTS(F(a_killed_executor_has_its_time_to_die),
    F(one_that_does_not_die_makes_its_device_unhealthy_for_good))
