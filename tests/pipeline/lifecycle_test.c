/* Starts that fail: whatever was started until then ends, and the messages stay where they are. */
#include "pipeline/lifecycle.h"

#include <stdlib.h>

#include "cpu_driver/cpu_driver.h"
#include "support/allocation_faults.h"
#include "support/memory_broker.h"
#include "testing.h"

static volatile sig_atomic_t stop;

/* False: starting takes fewer allocations. */
static bool fail_allocation(const struct settings *settings, uint64_t nth) {
    struct memory_broker broker;
    struct stages stages;
    struct error err, stop_error;
    memory_broker_init(&broker, NULL, 0);
    const struct executor_options options = {.settings = settings,
        .source = memory_source(&broker),
        .sink = memory_sink(&broker),
        .stop = &stop};
    allocation_faults_arm(nth);
    enum err code = lifecycle_start(&stages, &options, &err);
    bool has_failed = allocation_faults_end();
    /* A table that cannot grow is slower, that is all. */
    if (code != ERR_OK && err.code != code)
        fail_msg("allocation %llu: %s", (unsigned long long)nth, err.message);
    if (!has_failed) assert_int_equal(code, ERR_OK);
    assert_int_equal(lifecycle_stop(&stages, &stop_error), ERR_OK);
    memory_broker_fini(&broker);
    cpu_driver_reset();
    return has_failed;
}

TEST(whichever_allocation_fails_a_start_fails_or_succeeds_and_can_be_stopped) {
    struct settings settings;
    uint64_t nth = 1;
    log_init(LOG_OFF, LOG_TEXT);
    settings_init(&settings);
    settings.driver = DRIVER_CPU;
    settings.ordering = ORDERING_KEY;
    /* As few threads and batches as can be: each of the starts makes them. */
    settings.lanes = settings.lane_depth = settings.prepare.threads = 1;
    free(settings.programs.dir);
    settings.programs.dir = strdup(POISON_FOLDER); /* it has one program: fewer allocations */
    while (fail_allocation(&settings, nth)) nth++;
    assert_true(nth > 50);
    settings_fini(&settings);
}

RUN_TESTS(T(whichever_allocation_fails_a_start_fails_or_succeeds_and_can_be_stopped))
