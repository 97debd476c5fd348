/* Starts that fail: whatever was started until then ends. Stops that fail: what they say. */
#include "pipeline/lifecycle.h"

#include <stdlib.h>

#include "cpu_driver/cpu_driver.h"
#include "support/allocation_faults.h"
#include "support/memory_broker.h"
#include "testing.h"

static atomic_bool stop;
static struct settings settings;

static int set_up(void **state) {
    log_init(LOG_OFF, LOG_TEXT);
    settings_init(&settings);
    settings.driver = DRIVER_CPU;
    settings.ordering = ORDERING_KEY;
    /* As few threads and batches as can be: each of the starts makes them. */
    settings.lanes = settings.lane_depth = settings.prepare.threads = 1;
    free(settings.programs.dir);
    settings.programs.dir = strdup(POISON_FOLDER); /* it has one program: fewer allocations */
    return 0;
}

static int tear_down(void **state) {
    settings_fini(&settings);
    cpu_driver_reset();
    return 0;
}

/* False: starting takes fewer allocations. */
static bool fail_allocation(uint64_t nth) {
    struct memory_broker broker;
    struct stages stages;
    struct error err, stop_error;
    memory_broker_init(&broker, NULL, 0);
    const struct executor_options options = {.settings = &settings,
        .life = {.source = memory_source(&broker), .sink = memory_sink(&broker)},
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
    uint64_t nth = 1;
    while (fail_allocation(nth)) nth++;
    assert_true(nth > 50);
}

static enum err fail_close(struct source *source, int timeout_ms, struct error *err) {
    return error_set(err, ERR_BROKER, 0, "wait", "not committed");
}

static enum err fail_flush(struct sink *sink, int timeout_ms, struct error *err) {
    return error_set(err, ERR_BROKER, 0, "wait", "not acknowledged");
}

/* The sink ends before the source. */
static void assert_stop_tells(bool sink_fails, const char *message) {
    struct memory_broker broker;
    struct stages stages;
    struct error err;
    memory_broker_init(&broker, NULL, 0);
    struct source *source = memory_source(&broker);
    struct sink *sink = memory_sink(&broker);
    struct source_operations failing_source = *source->operations;
    struct sink_operations failing_sink = *sink->operations;
    failing_source.close = fail_close;
    failing_sink.flush = fail_flush;
    source->operations = &failing_source;
    if (sink_fails) sink->operations = &failing_sink;
    const struct executor_options options = {
        .settings = &settings, .life = {.source = source, .sink = sink}, .stop = &stop};
    assert_int_equal(lifecycle_start(&stages, &options, &err), ERR_OK);
    assert_int_equal(lifecycle_stop(&stages, &err), ERR_BROKER);
    assert_string_equal(err.message, message);
    memory_broker_fini(&broker);
}

TEST(a_stop_tells_the_first_of_its_failures) {
    assert_stop_tells(false, "not committed");
    assert_stop_tells(true, "not acknowledged");
}

#define L(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
RUN_TESTS(L(whichever_allocation_fails_a_start_fails_or_succeeds_and_can_be_stopped),
    L(a_stop_tells_the_first_of_its_failures))
