/* Waits that are under way while the wall clock is set back by a day. */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/queue.h"
#include "pipeline/flight.h"
#include "support/scratch.h"
#include "support/wait.h"
#include "testing.h"

void wall_clock_follow(const char *path); /* wall_clock.c */

enum { WAIT_MS = 300, DAY_S = 86400 };

static _Atomic int64_t *shift;

static void set_clock(int64_t seconds) {
    atomic_store_explicit(shift, seconds, memory_order_relaxed); /* alone */
}

static void map_clock(const char *folder) {
    char path[256];
    snprintf(path, sizeof path, "%s/clock", folder);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0);
    assert_return_code(ftruncate(fd, sizeof *shift), 0);
    shift = mmap(NULL, sizeof *shift, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(shift != MAP_FAILED);
    close(fd);
    wall_clock_follow(path);
}

static void *wait_for_a_count(void *context) {
    struct flight *flight = context;
    flight_lock(flight);
    flight_wait(flight, WAIT_MS);
    flight_unlock(flight);
    return NULL;
}

static bool is_waiting(struct flight *flight) {
    flight_lock(flight);
    bool is_waiting = flight->waiters > 0;
    flight_unlock(flight);
    return is_waiting;
}

TEST(the_intake_goes_on_when_the_wall_clock_is_set_back) {
    struct flight flight;
    pthread_t thread;
    flight_init(&flight, 0);
    set_clock(0);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_a_count, &flight), 0);
    WAIT_FOR(is_waiting(&flight), ==, true);
    set_clock(-DAY_S);
    assert_int_equal(pthread_join(thread, NULL), 0); /* a day later, where the wall clock counts */
    flight_fini(&flight);
}

static void *wait_for_an_item(void *context) {
    void *item;
    assert_int_equal(queue_pop(context, &item, 1, WAIT_MS), 0);
    return NULL;
}

TEST(a_stage_goes_on_when_the_wall_clock_is_set_back) {
    struct queue *queue = queue_create(1);
    pthread_t thread;
    set_clock(0);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_an_item, queue), 0);
    set_clock(-DAY_S);
    assert_int_equal(pthread_join(thread, NULL), 0);
    queue_destroy(queue);
}

TEST(the_wall_clock_that_these_tests_move_is_that_of_deadlines) {
    set_clock(0);
    uint64_t before_ms = clock_unix_ms();
    set_clock(-DAY_S);
    assert_true(clock_unix_ms() < before_ms);
    set_clock(DAY_S);
    assert_true(clock_unix_ms() >= before_ms + DAY_S * 1000ull);
}

TEST_MAIN() {
    char *folder = scratch_create();
    map_clock(folder);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_intake_goes_on_when_the_wall_clock_is_set_back),
        cmocka_unit_test(a_stage_goes_on_when_the_wall_clock_is_set_back),
        cmocka_unit_test(the_wall_clock_that_these_tests_move_is_that_of_deadlines),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    scratch_remove(folder);
    return failed;
}
