/* A disk in trouble below the cache of blobs costs no job, and puts no wrong byte into one. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "blobs/cache_rig.h"
#include "blobs/folder.h"
#include "support/io_faults.h"

enum { BLOB_COUNT = 8, ROOM = 3 };

static unsigned not_cached;

static void count_not_cached(void *context, const struct error *why) {
    not_cached++;
    assert_int_equal(why->code, ERR_IO);
    assert_null(strstr(why->message, dir));
}

static void end(void) {
    io_faults_arm(NULL);
    end_cache(NULL);
}

static int set_up(void **state) {
    not_cached = 0;
    on_not_cached = count_not_cached;
    start_cache(BLOB_COUNT, ROOM);
    return 0;
}

static int tear_down(void **state) {
    end();
    return 0;
}

static struct io_faults fault_of(int error, uint64_t nth, bool is_once) {
    return (struct io_faults){
        .folder = dir, .calls = IO_CALLS_ALL, .nth = nth, .is_once = is_once, .error = error};
}

/* Fetched, read from the disk, driven out, fetched again. */
static void use_cache(void) {
    for (size_t i = 0; i < ROOM + 2; i++) {
        (void)is_fetched(i);
        (void)is_fetched(i % 3);
    }
}

TEST(whichever_call_fails_every_blob_is_right) {
    static const int errors[] = {ENOSPC, EIO, EACCES, IO_FAULT_CUT};
    for (size_t e = 0; e < sizeof errors / sizeof errors[0]; e++) {
        for (int is_once = 0; is_once < 2; is_once++) {
            uint64_t nth = 0, seen;
            do {
                end();
                start_cache(BLOB_COUNT, ROOM);
                struct io_faults fault = fault_of(errors[e], ++nth, is_once);
                io_faults_arm(&fault);
                use_cache();
                seen = io_faults_seen();
                io_faults_arm(NULL);
                use_cache(); /* and nothing wrong was kept */
            } while (seen >= nth);
            assert_true(nth > ROOM);
        }
    }
}

TEST(a_full_disk_is_told_and_costs_no_blob) {
    const struct io_faults full = {
        .folder = dir, .calls = 1 << IO_CALL_WRITE, .nth = 1, .error = ENOSPC};
    io_faults_arm(&full);
    for (size_t i = 0; i < ROOM; i++) assert_true(is_fetched(i));
    assert_int_equal(not_cached, ROOM);
}

TEST(a_full_disk_costs_the_cache_nothing_that_it_has) {
    const struct io_faults full = {
        .folder = dir, .calls = 1 << IO_CALL_WRITE, .nth = 1, .error = ENOSPC};
    for (size_t i = 0; i < ROOM; i++) assert_true(is_fetched(i));
    io_faults_arm(&full);
    for (size_t i = ROOM; i < BLOB_COUNT; i++) assert_true(is_fetched(i));
    for (size_t i = 0; i < ROOM; i++) assert_false(is_fetched(i));
}

#define S(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        S(whichever_call_fails_every_blob_is_right),
        S(a_full_disk_is_told_and_costs_no_blob),
        S(a_full_disk_costs_the_cache_nothing_that_it_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
