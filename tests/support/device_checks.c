#include "support/device_checks.h"

#include "cpu_driver/cpu_driver.h"
#include "testing.h"

void device_assert_no_mistakes(void) {
    cpu_driver_check_memory();
    const struct cpu_driver_counters counters = cpu_driver_counters();
    assert_int_equal(counters.hazards, 0);
    assert_int_equal(counters.freed_in_use, 0);
    assert_int_equal(counters.writes_after_free, 0);
    assert_int_equal(counters.guards_broken, 0);
}

void device_assert_nothing_left(void) {
    device_assert_no_mistakes();
    const struct cpu_driver_counters counters = cpu_driver_counters();
    assert_int_equal(counters.allocations_live, 0);
    assert_int_equal(counters.device_bytes_live, 0);
    assert_int_equal(counters.pinned_bytes_live, 0);
    assert_int_equal(counters.registered_bytes_live, 0);
    assert_int_equal(counters.streams_live, 0);
    assert_int_equal(counters.events_live, 0);
    assert_int_equal(counters.modules_live, 0);
}
