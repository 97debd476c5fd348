/* Proves: what is in flight counts with all that it may take, and whoever waits hears of a change.
 */
#include "pipeline/flight.h"

#include "base/clock.h"
#include "base/crew.h"
#include "support/wait.h"
#include "testing.h"

enum { UNKNOWN = 1000, WAIT_MS = 60000 };

TEST(a_message_counts_with_its_job_before_that_is_known) {
    struct flight flight;
    flight_init(&flight, UNKNOWN);
    assert_int_equal(flight_begin(&flight, 2, 30), UNKNOWN);
    assert_int_equal(flight.messages, 2);
    assert_int_equal(flight.bytes, 30 + 2 * UNKNOWN);
    flight_decoded(&flight, 200, 2 * UNKNOWN, 150);
    assert_int_equal(flight.bytes, 30 + 200);
    flight_end(&flight, 2, 230);
    assert_int_equal(flight_messages(&flight), 0);
    assert_int_equal(flight.bytes, 0);
    flight_fini(&flight);
}

TEST(the_largest_job_is_expected_again_until_smaller_ones_came_for_a_while) {
    struct flight flight;
    flight_init(&flight, UNKNOWN);
    flight_decoded(&flight, 0, 0, 100);
    assert_int_equal(flight_expect(&flight), 100);
    flight_decoded(&flight, 0, 0, 400);
    assert_int_equal(flight_expect(&flight), 400);
    flight_decoded(&flight, 0, 0, 100);
    assert_int_equal(flight_expect(&flight), 325);
    for (int i = 0; i < 30; i++) flight_decoded(&flight, 0, 0, 100);
    assert_int_equal(flight_expect(&flight), 100);
    flight_fini(&flight);
}

TEST(the_first_failure_is_kept) {
    struct flight flight;
    struct error first = {.code = ERR_IO}, second = {.code = ERR_BROKER};
    flight_init(&flight, UNKNOWN);
    assert_false(flight_has_failed(&flight));
    assert_true(flight_fail(&flight, &first));
    assert_false(flight_fail(&flight, &second));
    assert_true(flight_has_failed(&flight));
    assert_int_equal(flight.failure.code, ERR_IO);
    flight_fini(&flight);
}

/* ---- who waits ---- */

static void end_one(struct flight *flight) {
    flight_end(flight, 1, 0);
}

static void let_in_more(struct flight *flight) {
    flight_set_bytes_max(flight, 1);
}

static void break_off(struct flight *flight) {
    const struct error err = {.code = ERR_IO};
    (void)flight_fail(flight, &err);
}

static uint32_t count_waiters(struct flight *flight) {
    flight_lock(flight);
    uint32_t waiters = flight->waiters;
    flight_unlock(flight);
    return waiters;
}

struct waiter {
    struct flight flight;
    uint64_t waited_ns;
};

static void wait_for_change(void *context, uint32_t index) {
    struct waiter *waiter = context;
    flight_lock(&waiter->flight);
    uint64_t begun_ns = clock_ns();
    flight_wait(&waiter->flight, WAIT_MS);
    waiter->waited_ns = clock_ns() - begun_ns;
    flight_unlock(&waiter->flight);
}

static void assert_wakes(void (*change)(struct flight *flight)) {
    struct waiter waiter;
    struct crew *crew;
    struct error err;
    flight_init(&waiter.flight, UNKNOWN);
    (void)flight_begin(&waiter.flight, 1, 0);
    flight_begin_room(&waiter.flight);
    const struct crew_options options = {
        .name = "wait", .count = 1, .run = wait_for_change, .context = &waiter};
    assert_int_equal(crew_start(&options, &crew, &err), ERR_OK);
    WAIT_FOR(count_waiters(&waiter.flight), ==, 1);
    change(&waiter.flight);
    crew_join(&crew);
    assert_true(waiter.waited_ns < WAIT_MS * 1000000ull);
    flight_fini(&waiter.flight);
}

TEST(whoever_waits_hears_when_a_message_ends_when_the_limit_moves_and_of_a_failure) {
    assert_wakes(end_one);
    assert_wakes(let_in_more);
    assert_wakes(flight_end_room);
    assert_wakes(break_off);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_counts_with_its_job_before_that_is_known),
        cmocka_unit_test(the_largest_job_is_expected_again_until_smaller_ones_came_for_a_while),
        cmocka_unit_test(the_first_failure_is_kept),
        cmocka_unit_test(
            whoever_waits_hears_when_a_message_ends_when_the_limit_moves_and_of_a_failure)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
