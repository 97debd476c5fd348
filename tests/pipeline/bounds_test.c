/* What a sender can make a worker keep: counted, bounded by the configuration, refused beyond that.
 */
#include "support/run.h"
#include "testing.h"

enum { KEYS = 60, MANY_SHAPES = 6000 };

/* id: creates residents of no bytes, under a key. */
static void add_residents(struct run *run, const char *id, const char *key, int count) {
    static char yaml[8192];
    size_t used = (size_t)snprintf(yaml, sizeof yaml, "id: %s\nbuffers: {", id);
    for (int i = 0; i < count; i++)
        used += (size_t)snprintf(yaml + used, sizeof yaml - used,
            "r%d: {resident: name-%d, bytes: 0, init: {fill: 0}}, ", i, i);
    snprintf(yaml + used, sizeof yaml - used,
        "x: {bytes: 4}, y: {bytes: 4}}\n"
        "steps: [{program: saxpy, args: [{f32: 1}, x, y, {u32: 1}], elements: 1}]\n"
        "outputs: [{buffer: y}]\n");
    (void)run_add_keyed(run, key, yaml);
}

TEST(residents_of_no_bytes_are_counted_and_bounded) {
    struct run *run = *state;
    static char keys[KEYS][16];
    run->settings.ordering = ORDERING_KEY;
    run->settings.residents.entries_max = 100;
    for (int i = 0; i < KEYS; i++) {
        snprintf(keys[i], sizeof keys[i], "k%d", i);
        add_residents(run, keys[i], keys[i], 10);
        run->places[i].comes_last = true; /* one after the other */
    }
    run_execute_ok(run);
    assert_int_equal(run->summary.ok, 10);
    assert_int_equal(run->summary.errors, KEYS - 10);
    for (int i = 10; i < KEYS; i++) run_assert_error(run, keys[i], "residents_full");
    assert_int_equal(err_retry(ERR_RESIDENTS_FULL), RETRY_SENDER);
}

TEST(those_that_are_there_are_used_on_while_no_more_are_taken) {
    struct run *run = *state;
    run->settings.ordering = ORDERING_KEY;
    run->settings.residents.entries_max = 10;
    run->settings.residents.entries_per_key = 10;
    add_residents(run, "first", "key", 10);
    add_residents(run, "other", "other key", 1);
    run->places[1].comes_last = true;
    add_residents(run, "again", "key", 10);
    run->places[2].comes_last = true;
    run_execute_ok(run);
    run_assert_error(run, "other", "residents_full");
    assert_int_equal(run->summary.ok, 2);
}

/* The pool's own bound is for jobs, and residents have the other half of the device at most. */
TEST(residents_leave_the_memory_of_the_pool_to_the_jobs_of_other_keys) {
    struct run *run = *state;
    static char keys[KEYS][16];
    run->settings.ordering = ORDERING_KEY;
    run->settings.cpu_driver.memory_bytes = 64 << 20;
    run->settings.lane_slab_bytes = 1 << 20;
    run->settings.pools.device_bytes = 16 << 20;
    enum { MANY = 14, FIT = 8 }; /* of 4 MiB */
    for (int i = 0; i < MANY; i++) {
        snprintf(keys[i], sizeof keys[i], "k%d", i);
        char yaml[512];
        snprintf(yaml, sizeof yaml,
            "id: k%d\nbuffers: {r: {resident: r, bytes: 4194304, init: {fill: 0}}, y: {bytes: 4}}\n"
            "steps: [{program: saxpy, args: [{f32: 1}, r, y, {u32: 1}], elements: 1}]\n"
            "outputs: [{buffer: y}]\n",
            i);
        run_add_keyed(run, keys[i], yaml)->comes_last = true;
    }
    run_add_keyed(run, "large",
        "id: large\nbuffers: {x: {bytes: 4194304}, y: {bytes: 4}}\n"
        "steps: [{program: saxpy, args: [{f32: 1}, x, y, {u32: 1}], elements: 1}]\n"
        "outputs: [{buffer: y}]\n")
        ->comes_last = true;
    run_execute_ok(run);
    for (int i = FIT; i < MANY; i++) run_assert_error(run, keys[i], "residents_full");
    assert_int_equal(run->summary.ok, FIT + 1);
}

TEST(a_key_that_is_too_long_to_be_kept_has_no_residents) {
    struct run *run = *state;
    static char key[2000];
    memset(key, 'k', sizeof key - 1);
    run->settings.ordering = ORDERING_KEY;
    add_residents(run, "long", key, 1);
    run_execute_ok(run);
    run_assert_error(run, "long", "too_large");
}

/* What decoding makes of a message is larger than the message. */
TEST(what_is_decoded_counts_as_held) {
    struct run *run = *state;
    static char yaml[1 << 16];
    for (int k = 0; k < 200; k++) {
        size_t used = (size_t)snprintf(yaml, sizeof yaml, "id: j%d\nbuffers: {", k);
        for (int i = 0; i < 60; i++)
            used += (size_t)snprintf(yaml + used, sizeof yaml - used, "b%d: {bytes: 4}, ", i);
        snprintf(yaml + used, sizeof yaml - used,
            "x: {bytes: 4}, y: {bytes: 4}}\n"
            "steps: [{program: saxpy, args: [{f32: 1}, x, y, {u32: 1}], elements: 1}]\n"
            "outputs: [{buffer: y}]\n");
        run_add_job(run, yaml);
    }
    run->settings.ordering = ORDERING_KEY; /* the intake admits all */
    run->settings.limits.bytes_in_flight = 256 << 10;
    run->settings.limits.message_bytes = 16 << 10;
    run_execute_ok(run);
    print_message("open at most: %zu\n", run->broker.open_max);
    assert_in_range(run->broker.open_max, 1, 64 + 24); /* a group, and what fits */
}

/* Jobs that wait take no places from others, but memory. */
TEST(jobs_that_wait_behind_others_of_their_key_are_bounded_by_their_bytes) {
    struct run *run = *state;
    for (int k = 0; k < 1000; k++) {
        run_add_saxpy(run, k);
        run->places[k].key = "key";
    }
    run->settings.ordering = ORDERING_KEY;
    run->settings.limits.jobs_in_flight = 16;
    run->settings.limits.bytes_in_flight = 512 << 10;
    run->settings.limits.message_bytes = 16 << 10;
    run_execute_ok(run);
    print_message("open at most: %zu\n", run->broker.open_max);
    assert_in_range(run->broker.open_max, 17, 64 + 128); /* a group, and what fits of 4 KiB each */
}

RUN_TESTS(FLOW(residents_of_no_bytes_are_counted_and_bounded),
    FLOW(residents_leave_the_memory_of_the_pool_to_the_jobs_of_other_keys),
    FLOW(those_that_are_there_are_used_on_while_no_more_are_taken),
    FLOW(a_key_that_is_too_long_to_be_kept_has_no_residents), FLOW(what_is_decoded_counts_as_held),
    FLOW(jobs_that_wait_behind_others_of_their_key_are_bounded_by_their_bytes))
