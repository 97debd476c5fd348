/* Proves: an array keeps the parts of its instances in one resident, side by side; slices, tries
 * and redeliveries change each part once; what all instances share is only read. */
#include <stdlib.h>

#include "cpu_driver/cpu_driver.h"
#include "state/state.h"
#include "support/device_checks.h"
#include "support/run.h"
#include "support/scratch.h"
#include "testing.h"

/* Of four floats each: many slices of the smallest slab. */
enum { COUNT = 5000, FLOATS = 4 };

static int set_up(void **state) {
    int code = run_set_up(state);
    struct run *run = *state;
    run->settings.ordering = ORDERING_KEY;
    run->settings.lanes = 2;
    run->settings.lane_slab_bytes = 64 << 10;
    return code;
}

/* theta += k x in each instance, where x is 1, 2, 3, 4 and k is the instance's number modulo 8;
 * `more` are further keys of the resident. */
static struct memory_place *add_update(struct run *run, const char *id, const char *more) {
    size_t size = 1024 + COUNT * 3;
    char *yaml = malloc(size);
    size_t used = (size_t)snprintf(yaml, size,
        "id: %s\ncount: %d\nbuffers: {x: {data: {f32: [1, 2, 3, 4]}}, "
        "t: {bytes: 16, each: true, resident: theta%s%s}}\n"
        "steps: [{program: saxpy, args: [{each: {f32: [0",
        id, COUNT, more[0] != 0 ? ", " : "", more);
    for (int i = 1; i < COUNT; i++)
        used += (size_t)snprintf(yaml + used, size - used, ", %d", i % 8);
    snprintf(yaml + used, size - used,
        "]}}, x, t, {u32: 4}], elements: 4}]\noutputs: [{buffer: t, offset: 4, bytes: 8}]\n");
    struct memory_place *place = run_add_keyed(run, "k", yaml);
    free(yaml);
    return place;
}

/* A single job, which finds all parts. */
static void add_read(struct run *run, const char *id) {
    char yaml[512];
    snprintf(yaml, sizeof yaml,
        "id: %s\nbuffers: {t: {bytes: %d, resident: theta}, y: {bytes: 4}}\n"
        "steps: [{program: saxpy, args: [{f32: 0}, t, y, {u32: 0}], elements: 1}]\n"
        "outputs: [{buffer: t}]\n",
        id, COUNT * FLOATS * 4);
    run_add_keyed(run, "k", yaml);
}

static float theta(size_t instance, size_t i, float start, int updates) {
    return start + (float)updates * (float)(instance % 8) * (float)(i + 1);
}

/* The two floats in the middle of each part. */
static void assert_middle(struct run *run, const char *id, float start, int updates) {
    static float expected[COUNT][2];
    for (size_t i = 0; i < COUNT; i++)
        for (size_t k = 0; k < 2; k++) expected[i][k] = theta(i, k + 1, start, updates);
    run_assert_output(run, id, 0, expected, sizeof expected);
}

static void assert_whole(
    struct run *run, const char *id, float start, int updates, size_t changed, float change) {
    static float expected[COUNT * FLOATS];
    for (size_t i = 0; i < COUNT * FLOATS; i++)
        expected[i] = theta(i / FLOATS, i % FLOATS, start, updates) + (i == changed ? change : 0);
    run_assert_output(run, id, 0, expected, sizeof expected);
}

static uint64_t generation(struct run *run, const char *id) {
    msgpack_unpacked unpacked;
    msgpack_object result = run_unpack_result(run, id, &unpacked);
    const msgpack_object *residents = msgpack_get(&result, "residents");
    assert_non_null(residents);
    uint64_t value = msgpack_get(residents, "theta")->via.u64;
    msgpack_unpacked_destroy(&unpacked);
    return value;
}

TEST(arrays_seed_and_update_the_parts_of_a_resident_and_a_single_job_reads_them) {
    struct run *run = *state;
    add_update(run, "seed", "init: {fill: 0}");
    add_update(run, "second", "expect: 1");
    add_read(run, "read");
    add_update(run, "old", "expect: 1");
    run_execute_ok(run);
    assert_true(run_telemetry(run, "seed", "slices") > 3);
    assert_int_equal(run_telemetry(run, "seed", "h2d_bytes"), 16);
    assert_middle(run, "seed", 0, 1);
    assert_middle(run, "second", 0, 2);
    assert_whole(run, "read", 0, 2, SIZE_MAX, 0);
    assert_int_equal(generation(run, "seed"), 1);
    assert_int_equal(generation(run, "second"), 2);
    assert_int_equal(generation(run, "read"), 2);
    run_assert_error(run, "old", "resident_generation");
    device_assert_nothing_left();
}

TEST(the_data_that_a_resident_begins_with_has_the_parts_of_all_instances) {
    struct run *run = *state;
    const float expected[] = {2, 3, 4, 5, 7, 9, 11, 13};
    run_add_keyed(run, "k",
        "id: a\ncount: 2\nbuffers: {x: {data: {f32: [1, 2, 3, 4]}}, t: {bytes: 16, each: true, "
        "resident: theta, init: {data: {f32: [1, 1, 1, 1, 5, 5, 5, 5]}}}}\n"
        "steps: [{program: saxpy, args: [{each: {f32: [1, 2]}}, x, t, {u32: 4}], elements: 4}]\n"
        "outputs: [{buffer: t}]\n");
    run_execute_ok(run);
    run_assert_output(run, "a", 0, expected, sizeof expected);
    assert_int_equal(run_telemetry(run, "a", "h2d_bytes"), 16 + 32);
}

TEST(writes_change_the_parts_of_the_instances_that_they_name) {
    struct run *run = *state;
    enum { CHANGED = 4321 };
    add_update(run, "seed", "init: {fill: 0}");
    run_add_keyed(run, "k",
        "id: write\ncount: 5000\nbuffers: {y: {bytes: 4}, t: {bytes: 16, each: true, resident: "
        "theta, writes: [{instance: 4321, offset: 8, data: {f32: [1003]}}]}}\n"
        "steps: [{program: saxpy, args: [{f32: 0}, y, t, {u32: 0}], elements: 1}]\noutputs: []\n");
    add_read(run, "read");
    run_execute_ok(run);
    assert_whole(run, "read", 0, 1, CHANGED * FLOATS + 2, 1003 - theta(CHANGED, 2, 0, 1));
    assert_int_equal(generation(run, "write"), 2);
    assert_int_equal(run_telemetry(run, "write", "h2d_bytes"), 4);
}

TEST(an_array_that_is_delivered_again_is_not_applied_twice) {
    struct run *run = *state;
    add_update(run, "seed", "init: {fill: 0}");
    add_update(run, "first", "expect: 1")->offset = 7;
    struct memory_place *again = add_update(run, "again", "expect: 1");
    again->offset = 7;
    again->comes_last = true;
    add_read(run, "read");
    run->places[3].offset = 8;
    run_execute_ok(run);
    assert_middle(run, "first", 0, 2);
    assert_middle(run, "again", 0, 2);
    assert_int_equal(run_telemetry(run, "again", "kernel_launches"), 0);
    assert_whole(run, "read", 0, 2, SIZE_MAX, 0);
}

TEST(a_resident_of_other_instances_than_the_array_has_is_an_error) {
    struct run *run = *state;
    add_update(run, "seed", "init: {fill: 0}");
    run_add_keyed(run, "k",
        "id: fewer\ncount: 3\nbuffers: {x: {bytes: 16}, t: {bytes: 16, each: true, resident: "
        "theta}}\nsteps: [{program: saxpy, args: [{f32: 0}, x, t, {u32: 4}], elements: 4}]\n"
        "outputs: []\n");
    add_read(run, "read");
    run_execute_ok(run);
    run_assert_error(run, "fewer", "resident_size");
    assert_whole(run, "read", 0, 1, SIZE_MAX, 0);
}

TEST(a_slice_that_fails_takes_the_resident_along) {
    struct run *run = *state;
    run_set_text(&run->settings.cpu_driver.faults, "cuMemcpyDtoHAsync:invalid_value@5");
    add_update(run, "seed", "init: {fill: 0}");
    add_read(run, "gone");
    add_update(run, "again", "init: {fill: 0}");
    run_execute_ok(run);
    run_assert_error(run, "seed", "driver_error");
    run_assert_error(run, "gone", "resident_gone");
    assert_middle(run, "again", 0, 1);
    device_assert_nothing_left();
}

TEST(instances_share_a_resident_that_they_read) {
    struct run *run = *state;
    const float expected[] = {3, 3, 6, 6};
    run_add_keyed(run, "k",
        "id: seed\nbuffers: {t: {bytes: 8, resident: theta, init: {data: {f32: [3, 3]}}}, "
        "y: {bytes: 8}}\n"
        "steps: [{program: saxpy, args: [{f32: 0}, t, y, {u32: 0}], elements: 1}]\noutputs: []\n");
    run_add_keyed(run, "k",
        "id: a\ncount: 2\nbuffers: {t: {bytes: 8, resident: theta, expect: 0}, "
        "y: {bytes: 8, each: true}}\n"
        "steps: [{program: saxpy, args: [{each: {f32: [1, 2]}}, t, y, {u32: 2}], elements: 2}]\n"
        "outputs: [{buffer: y}]\n");
    run_execute_ok(run);
    run_assert_output(run, "a", 0, expected, sizeof expected);
    assert_int_equal(generation(run, "a"), 0);
}

TEST(a_shared_resident_is_not_made_changed_or_written_by_an_array) {
    struct run *run = *state;
    static const char *const more[] = {"init: {fill: 0}", "writes: [{offset: 0, data: {u8: [1]}}]"};
    char yaml[512];
    for (int i = 0; i < 2; i++) {
        snprintf(yaml, sizeof yaml,
            "id: a%d\ncount: 2\nbuffers: {t: {bytes: 8, resident: theta, %s}, "
            "y: {bytes: 8, each: true}}\n"
            "steps: [{program: saxpy, args: [{f32: 1}, t, y, {u32: 2}], elements: 2}]\n"
            "outputs: []\n",
            i, more[i]);
        run_add_keyed(run, "k", yaml);
    }
    run_add_keyed(run, "k",
        "id: a2\ncount: 2\nbuffers: {t: {bytes: 8, resident: theta}, x: {bytes: 8, each: true}}\n"
        "steps: [{program: saxpy, args: [{f32: 1}, x, t, {u32: 2}], elements: 2}]\noutputs: []\n");
    run_execute_ok(run);
    for (int i = 0; i < 3; i++) {
        snprintf(yaml, sizeof yaml, "a%d", i);
        run_assert_error(run, yaml, "bad_argument");
    }
}

TEST(parts_of_a_resident_that_would_not_be_aligned_are_an_error) {
    struct run *run = *state;
    run_add_keyed(run, "k",
        "id: a\ncount: 2\nbuffers: {t: {bytes: 20, each: true, resident: theta, init: {fill: 0}}, "
        "x: {bytes: 20}}\n"
        "steps: [{program: saxpy, args: [{f32: 1}, x, t, {u32: 5}], elements: 5}]\noutputs: []\n");
    run_execute_ok(run);
    run_assert_error(run, "a", "bad_argument");
}

/* A message that was contested runs alone, and looks for culprits. */
TEST(an_array_that_runs_alone_changes_each_part_once) {
    struct run *run = *state;
    char *dir = scratch_create(), path[512];
    struct error set_aside;
    snprintf(path, sizeof path, "%s/state", dir);
    assert_int_equal(state_open(path, 0, &run->state, &set_aside, &run->err), ERR_OK);
    add_update(run, "seed", "init: {fill: 0}")->comes_contested = true;
    add_update(run, "second", "")->comes_contested = true;
    add_read(run, "read");
    run_execute_ok(run);
    assert_middle(run, "second", 0, 2);
    assert_whole(run, "read", 0, 2, SIZE_MAX, 0);
    state_close(run->state);
    run->state = NULL;
    scratch_remove(dir);
}

#define KEYED(name) cmocka_unit_test_setup_teardown(name, set_up, run_tear_down)

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        KEYED(arrays_seed_and_update_the_parts_of_a_resident_and_a_single_job_reads_them),
        KEYED(the_data_that_a_resident_begins_with_has_the_parts_of_all_instances),
        KEYED(writes_change_the_parts_of_the_instances_that_they_name),
        KEYED(an_array_that_is_delivered_again_is_not_applied_twice),
        KEYED(a_resident_of_other_instances_than_the_array_has_is_an_error),
        KEYED(a_slice_that_fails_takes_the_resident_along),
        KEYED(instances_share_a_resident_that_they_read),
        KEYED(a_shared_resident_is_not_made_changed_or_written_by_an_array),
        KEYED(parts_of_a_resident_that_would_not_be_aligned_are_an_error),
        KEYED(an_array_that_runs_alone_changes_each_part_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
