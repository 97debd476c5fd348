/* How the device is used, while NVML answers and when it hangs; it is a fake one
 * (tests/gpu/fake_nvml.c). */
#include "metrics/meter.h"

#include <sched.h>
#include <stdlib.h>

#include "base/clock.h"
#include "support/wait.h"
#include "testing.h"

/* What worker/metrics/meter.h promises. */
#define KNOWN_FOR_NS 10000000000u

static struct meter *start(const char *gpu) {
    struct error err;
    struct meter *meter;
    setenv("FAKE_NVML", gpu, 1);
    assert_int_equal(meter_start("GPU-0", &meter, &err), ERR_OK);
    return meter;
}

TEST(what_was_read_is_known_until_it_is_old) {
    struct meter *meter = start("fine");
    struct usage_reading reading;
    meter_read(meter, clock_ns(), &reading);
    WAIT_DOING(reading.known, !=, 0, {
        wait_pause(&wait_);
        meter_read(meter, clock_ns(), &reading);
    });
    assert_int_equal(reading.of[USAGE_utilisation_percent], 75);
    meter_read(meter, clock_ns() + KNOWN_FOR_NS, &reading);
    assert_int_equal(reading.known, 0);
    assert_true(meter_stop(meter));
}

TEST(without_a_meter_nothing_is_known) {
    struct usage_reading reading = {.known = 1};
    meter_read(NULL, clock_ns(), &reading);
    assert_int_equal(reading.known, 0);
    assert_true(meter_stop(NULL));
}

/* The last: its thread stays in the library. */
TEST(a_library_that_hangs_is_left_as_it_is) {
    struct meter *meter = start("hung");
    struct usage_reading reading;
    meter_read(meter, clock_ns(), &reading);
    assert_int_equal(reading.known, 0);
    assert_false(meter_stop(meter));
}

RUN_TESTS(T(what_was_read_is_known_until_it_is_old), T(without_a_meter_nothing_is_known),
    T(a_library_that_hangs_is_left_as_it_is))
