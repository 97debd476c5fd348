#include "base/pulse.h"

#include "testing.h"

static struct pulse pulses[PULSE_COUNT];

TEST(a_thread_shows_what_it_is_at) {
    pulse_busy(); /* it has no pulse yet */
    pulse_keep(pulses);
    pulse_busy();
    assert_int_equal(pulses[0].busy_ns, 0);
    pulse_start("lane");
    assert_string_equal(pulses[0].name, "lane");
    pulse_busy();
    uint64_t busy_ns = pulses[0].busy_ns;
    assert_true(busy_ns > 0);
    assert_int_equal(pulses[0].is_outside, 0);
    pulse_outside();
    assert_true(pulses[0].busy_ns >= busy_ns);
    assert_int_equal(pulses[0].is_outside, 1);
    pulse_busy();
    assert_int_equal(pulses[0].is_outside, 0);
    pulse_outside();
    pulse_idle();
    assert_int_equal(pulses[0].busy_ns, 0);
    assert_int_equal(pulses[0].is_outside, 0);
}

RUN_TESTS(T(a_thread_shows_what_it_is_at))
