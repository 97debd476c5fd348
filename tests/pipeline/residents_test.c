/* Proves: residents; memory of residents; shutdown and loss give everything back; partial
 * copies. */
#include <stdlib.h>

#include "cpu_driver/cpu_driver.h"
#include "support/device_checks.h"
#include "support/run.h"
#include "testing.h"

enum { UPDATES = 50 };

static int set_up(void **state) {
    int code = run_set_up(state);
    ((struct run *)*state)->settings.ordering = ORDERING_KEY;
    return code;
}

static void inject(struct run *run, const char *faults) {
    free(run->settings.cpu_driver.faults);
    run->settings.cpu_driver.faults = strdup(faults);
}

/* theta += x, with theta = resident `theta` of two floats; `more` are further keys of the buffer.
 */
static struct memory_place *add_update(
    struct run *run, const char *key, const char *id, const char *more) {
    char yaml[640];
    snprintf(yaml, sizeof yaml,
        "id: %s\nbuffers: {x: {data: {f32: [1, 2]}}, t: {bytes: 8, resident: theta%s%s}}\n"
        "steps: [{program: saxpy, args: [{f32: 1}, x, t, {u32: 2}], elements: 2}]\n"
        "outputs: [{buffer: t}]\n",
        id, more[0] != 0 ? ", " : "", more);
    return run_add_keyed(run, key, yaml);
}

static const char seed[] = "init: {data: {f32: [10, 20]}}";

/* Reads a range of theta, which no kernel of the job writes. */
static struct memory_place *add_read(
    struct run *run, const char *key, const char *id, const char *more) {
    char yaml[640];
    snprintf(yaml, sizeof yaml,
        "id: %s\nbuffers: {t: {bytes: 8, resident: theta%s%s}, y: {bytes: 8}}\n"
        "steps: [{program: saxpy, args: [{f32: 1}, t, y, {u32: 2}], elements: 2}]\n"
        "outputs: [{buffer: t, offset: 4, bytes: 4}, {buffer: y}]\n",
        id, more[0] != 0 ? ", " : "", more);
    return run_add_keyed(run, key, yaml);
}

static void assert_theta(struct run *run, const char *id, float a, float b) {
    const float expected[] = {a, b};
    run_assert_output(run, id, 0, expected, sizeof expected);
}

static uint64_t generation(struct run *run, const char *id, const char *resident) {
    msgpack_unpacked unpacked;
    msgpack_object result = run_unpack_result(run, id, &unpacked);
    const msgpack_object *residents = msgpack_get(&result, "residents");
    assert_non_null(residents);
    uint64_t value = msgpack_get(residents, resident)->via.u64;
    msgpack_unpacked_destroy(&unpacked);
    return value;
}

TEST(a_pipeline_seeds_updates_fifty_times_and_reads) {
    struct run *run = *state;
    char id[32], more[32];
    add_update(run, "k", "seed", seed);
    for (int i = 1; i <= UPDATES; i++) {
        snprintf(id, sizeof id, "update-%d", i);
        snprintf(more, sizeof more, "expect: %d", i);
        add_update(run, "k", id, more);
    }
    add_read(run, "k", "read", "");
    run_execute_ok(run);
    assert_int_equal(run->summary.errors, 0);
    assert_theta(run, "seed", 11, 22);
    assert_int_equal(generation(run, "seed", "theta"), 1);
    assert_int_equal(run_telemetry(run, "seed", "h2d_bytes"), 16);
    for (int i = 1; i <= UPDATES; i++) {
        snprintf(id, sizeof id, "update-%d", i);
        assert_theta(run, id, 11 + (float)i, 22 + 2 * (float)i);
        assert_int_equal(generation(run, id, "theta"), i + 1);
        assert_int_equal(run_telemetry(run, id, "h2d_bytes"), 8);
    }
    const float second[] = {122}, whole[] = {61, 122};
    run_assert_output(run, "read", 0, second, sizeof second);
    run_assert_output(run, "read", 1, whole, sizeof whole);
    assert_int_equal(generation(run, "read", "theta"), UPDATES + 1);
    device_assert_nothing_left();
}

TEST(keys_keep_their_order_among_others) {
    struct run *run = *state;
    enum { KEYS = 8, JOBS = 60 };
    static const char *const keys[KEYS] = {"a", "b", "c", "d", "e", "f", "g", ""};
    char id[32];
    run->settings.lanes = 8;
    for (int i = 0; i < JOBS; i++)
        for (int k = 0; k < KEYS; k++) {
            snprintf(id, sizeof id, "%d-%d", k, i);
            /* Every job brings a seed; only the first of its key may use it. */
            add_update(run, keys[k], id, seed);
            run_add_saxpy(run, i * KEYS + k);
        }
    run_execute_ok(run);
    for (int i = 0; i < JOBS; i++)
        for (int k = 0; k < KEYS; k++) {
            snprintf(id, sizeof id, "%d-%d", k, i);
            assert_theta(run, id, 11 + (float)i, 22 + 2 * (float)i);
            assert_int_equal(generation(run, id, "theta"), i + 1);
        }
    device_assert_nothing_left();
}

TEST(results_of_a_key_come_in_the_order_of_its_jobs) {
    struct run *run = *state;
    char id[32];
    for (int i = 0; i < 200; i++) {
        snprintf(id, sizeof id, "%d", i);
        add_update(run, "k", id, seed);
    }
    run_execute_ok(run);
    int next = 0;
    for (size_t i = 0; i < run->broker.message_count; i++, next++)
        assert_int_equal(atoi(memory_header(&run->broker.messages[i], "gpu-worker-job-id")), next);
    assert_int_equal(next, 200);
}

TEST(scopes_are_topic_partition_and_key) {
    struct run *run = *state;
    add_update(run, "k", "k0", seed);
    add_update(run, "k", "k1", seed)->partition = 1;
    add_update(run, "l", "l0", seed);
    add_update(run, NULL, "none", seed);
    run_add_keyed(run, "k",
        "id: other\nbuffers: {x: {data: {f32: [1, 2]}}, "
        "t: {bytes: 8, resident: other, init: {fill: 0}}}\n"
        "steps: [{program: saxpy, args: [{f32: 1}, x, t, {u32: 2}], elements: 2}]\n"
        "outputs: [{buffer: t}]\n");
    run_execute_ok(run);
    assert_theta(run, "k0", 11, 22);
    assert_theta(run, "k1", 11, 22);
    assert_theta(run, "l0", 11, 22);
    assert_theta(run, "none", 11, 22);
    assert_theta(run, "other", 1, 2);
}

TEST(writes_at_an_offset_change_a_resident_in_order) {
    struct run *run = *state;
    run_add_keyed(run, "k",
        "id: s\nbuffers: {t: {bytes: 8, resident: theta, init: {fill: 1}}, y: {bytes: 8}}\n"
        "steps: [{program: saxpy, args: [{f32: 1}, t, y, {u32: 2}], elements: 2}]\n"
        "outputs: [{buffer: t}]\n");
    run_add_keyed(run, "k",
        "id: w\nbuffers: {t: {bytes: 8, resident: theta, writes: [{offset: 2, data: {u8: [7, 8]}},"
        " {offset: 3, data: {u8: [9]}}]}, y: {bytes: 8}}\n"
        "steps: [{program: saxpy, args: [{f32: 0}, t, y, {u32: 2}], elements: 2}]\n"
        "outputs: [{buffer: t, offset: 1, bytes: 4}]\n");
    run_execute_ok(run);
    const uint8_t whole[] = {1, 1, 1, 1, 1, 1, 1, 1}, range[] = {1, 7, 9, 1};
    run_assert_output(run, "s", 0, whole, sizeof whole);
    run_assert_output(run, "w", 0, range, sizeof range);
    assert_int_equal(generation(run, "s", "theta"), 0);
    assert_int_equal(generation(run, "w", "theta"), 1);
    assert_int_equal(run_telemetry(run, "w", "h2d_bytes"), 3);
}

TEST(a_redelivered_job_does_not_apply_its_update_twice) {
    struct run *run = *state;
    add_update(run, "k", "seed", seed);
    add_update(run, "k", "first", "expect: 1")->offset = 7;
    struct memory_place *again = add_update(run, "k", "again", "expect: 1");
    again->offset = 7;
    again->comes_last = true;
    add_update(run, "k", "next", "expect: 2")->offset = 8;
    struct memory_place *late = add_update(run, "k", "late", "expect: 1");
    late->offset = 7;
    late->comes_last = true;
    add_read(run, "k", "read", "")->offset = 9;
    run_execute_ok(run);
    assert_theta(run, "first", 12, 24);
    assert_theta(run, "again", 12, 24);
    assert_int_equal(generation(run, "again", "theta"), 2);
    assert_int_equal(run_telemetry(run, "again", "kernel_launches"), 0);
    assert_int_equal(run_telemetry(run, "again", "h2d_bytes"), 0);
    assert_theta(run, "next", 13, 26);
    run_assert_error(run, "late", "resident_generation");
    const float second[] = {26};
    run_assert_output(run, "read", 0, second, sizeof second);
}

TEST(a_redelivered_job_whose_outputs_are_lost_is_an_error) {
    struct run *run = *state;
    static const char yaml[] =
        "id: %s\nbuffers: {x: {data: {f32: [1, 2]}}, y: {bytes: 8},"
        " t: {bytes: 8, resident: theta, init: {fill: 0}}}\n"
        "steps: [{program: saxpy, args: [{f32: 1}, x, t, {u32: 2}], elements: 2},"
        " {program: saxpy, args: [{f32: 1}, t, y, {u32: 2}], elements: 2}]\n"
        "outputs: [{buffer: y}]\n";
    char text[512];
    snprintf(text, sizeof text, yaml, "first");
    run_add_keyed(run, "k", text);
    snprintf(text, sizeof text, yaml, "again");
    run_add_keyed(run, "k", text)->offset = 0;
    add_read(run, "k", "read", "expect: 1");
    run_execute_ok(run);
    assert_theta(run, "first", 1, 2);
    run_assert_error(run, "again", "resident_generation");
    const float second[] = {2};
    run_assert_output(run, "read", 0, second, sizeof second);
}

TEST(another_generation_or_size_than_expected_is_an_error) {
    struct run *run = *state;
    add_update(run, "k", "seed", seed);
    add_update(run, "k", "old", "expect: 0");
    add_update(run, "k", "young", "expect: 2");
    run_add_keyed(run, "k",
        "id: size\nbuffers: {x: {bytes: 8}, t: {bytes: 12, resident: theta}}\n"
        "steps: [{program: saxpy, args: [{f32: 1}, x, t, {u32: 2}], elements: 2}]\n"
        "outputs: []\n");
    add_update(run, "k", "right", "expect: 1");
    run_execute_ok(run);
    run_assert_error(run, "old", "resident_generation");
    run_assert_error(run, "young", "resident_generation");
    run_assert_error(run, "size", "resident_size");
    assert_theta(run, "right", 12, 24);
}

TEST(a_resident_that_is_not_there_is_an_error_until_it_is_seeded) {
    struct run *run = *state;
    add_update(run, "k", "gone", "");
    add_update(run, "k", "later", "init: {data: {f32: [10, 20]}}, expect: 3");
    add_update(run, "k", "seed", "init: {data: {f32: [10, 20]}}, expect: 0");
    add_update(run, "k", "next", "");
    run_execute_ok(run);
    run_assert_error(run, "gone", "resident_gone");
    run_assert_error(run, "later", "resident_gone");
    assert_theta(run, "seed", 11, 22);
    assert_theta(run, "next", 12, 24);
}

TEST(a_revoked_partition_takes_its_residents_along) {
    struct run *run = *state;
    add_update(run, "k", "seed", seed);
    add_update(run, "k", "elsewhere", seed)->partition = 1;
    add_update(run, "k", "gone", "")->comes_revoked = true;
    add_update(run, "k", "again", seed);
    add_update(run, "k", "next", "")->partition = 1;
    run_execute_ok(run);
    run_assert_error(run, "gone", "resident_gone");
    assert_theta(run, "again", 11, 22);
    assert_theta(run, "next", 12, 24);
    device_assert_nothing_left();
}

TEST(a_job_that_fails_on_the_way_takes_its_resident_along) {
    struct run *run = *state;
    inject(run, "cuLaunchKernel:launch_out_of_resources@2");
    add_update(run, "k", "seed", seed);
    add_update(run, "k", "fails", "");
    add_update(run, "k", "gone", "");
    add_update(run, "k", "again", seed);
    run_execute_ok(run);
    const struct memory_message *letter = memory_find(&run->broker, ROUTE_DEAD_LETTER, "fails");
    assert_non_null(letter);
    assert_string_equal(memory_header(letter, "dlq.error.code"), "driver_error");
    run_assert_error(run, "gone", "resident_gone");
    assert_theta(run, "again", 11, 22);
    device_assert_nothing_left();
}

TEST(a_job_that_fails_before_it_runs_leaves_its_resident) {
    struct run *run = *state;
    add_update(run, "k", "seed", seed);
    run_add_keyed(run, "k",
        "id: fails\nbuffers: {x: {bytes: 8, static: \"sha256:"
        "0000000000000000000000000000000000000000000000000000000000000000\"}, "
        "t: {bytes: 8, resident: theta}, n: {bytes: 8, resident: new, init: {fill: 0}}}\n"
        "steps: [{program: saxpy, args: [{f32: 1}, x, t, {u32: 2}], elements: 2}]\n"
        "outputs: []\n");
    run_add_keyed(run, "k",
        "id: late\ndeadline_ms: 1\nbuffers: {x: {bytes: 8}, t: {bytes: 8, resident: theta}}\n"
        "steps: [{program: saxpy, args: [{f32: 1}, x, t, {u32: 2}], elements: 2}]\n"
        "outputs: []\n");
    add_update(run, "k", "next", "expect: 1");
    run_add_keyed(run, "k",
        "id: new\nbuffers: {x: {bytes: 8}, n: {bytes: 8, resident: new}}\n"
        "steps: [{program: saxpy, args: [{f32: 1}, x, n, {u32: 2}], elements: 2}]\n"
        "outputs: []\n");
    run_execute_ok(run);
    run_assert_error(run, "fails", "static_missing");
    run_assert_error(run, "late", "deadline_exceeded");
    assert_theta(run, "next", 12, 24);
    run_assert_error(run, "new", "resident_gone");
    device_assert_nothing_left();
}

TEST(a_new_process_knows_no_residents) {
    struct run *run = *state;
    add_update(run, "k", "seed", seed);
    run_execute_ok(run);
    run_forget(run);
    add_update(run, "k", "gone", "");
    run_execute_ok(run);
    run_assert_error(run, "gone", "resident_gone");
}

TEST(a_lost_gpu_ends_the_run_and_no_job_of_a_line_is_answered_in_its_stead) {
    struct run *run = *state;
    inject(run, "cuLaunchKernel:illegal_address@3");
    char id[32];
    for (int i = 0; i < 100; i++) {
        snprintf(id, sizeof id, "%d", i);
        add_update(run, "k", id, seed);
    }
    assert_int_equal(run_execute(run), ERR_GPU_ILLEGAL_ADDRESS);
    assert_true(run->broker.message_count <= 2);
    assert_int_equal(memory_count(&run->broker, ROUTE_DEAD_LETTER), 0);
}

TEST(residents_need_key_order) {
    struct run *run = *state;
    run->settings.ordering = ORDERING_NONE;
    add_update(run, "k", "seed", seed);
    run_execute_ok(run);
    run_assert_error(run, "seed", "unsupported");
}

TEST(one_resident_under_two_names_is_an_error) {
    struct run *run = *state;
    run_add_keyed(run, "k",
        "id: two\nbuffers: {a: {bytes: 8, resident: theta, init: {fill: 0}},"
        " b: {bytes: 8, resident: theta, init: {fill: 0}}}\n"
        "steps: [{program: saxpy, args: [{f32: 1}, a, b, {u32: 2}], elements: 2}]\n"
        "outputs: []\n");
    run_execute_ok(run);
    run_assert_error(run, "two", "bad_argument");
}

/* Creates a resident of its own key that takes `mebibytes`. */
static void add_large(struct run *run, const char *key, const char *id, int mebibytes) {
    char yaml[512];
    snprintf(yaml, sizeof yaml,
        "id: %s\nbuffers: {t: {bytes: %d, resident: large, init: {fill: 3}}, y: {bytes: 4}}\n"
        "steps: [{program: saxpy, args: [{f32: 0}, t, y, {u32: 1}], elements: 1}]\n"
        "outputs: [{buffer: t, offset: 5, bytes: 2}]\n",
        id, mebibytes << 20);
    run_add_keyed(run, key, yaml);
}

TEST(a_resident_over_the_bound_of_its_key_or_of_all_is_refused) {
    struct run *run = *state;
    const uint8_t threes[] = {3, 3};
    run->settings.cpu_driver.memory_bytes = 64 << 20;
    run->settings.residents.bytes_max = 48 << 20;
    run->settings.residents.bytes_per_key = 40 << 20;
    run->settings.lanes = 1;
    run->settings.lane_depth = 1;
    run->settings.lane_slab_bytes = 64 << 10;
    add_large(run, "a", "fits", 32);
    add_large(run, "b", "over", 32);
    add_large(run, "c", "never", 60);
    add_large(run, "d", "small", 16);
    run_execute_ok(run);
    run_assert_output(run, "fits", 0, threes, sizeof threes);
    run_assert_error(run, "over", "residents_full");
    run_assert_error(run, "never", "too_large");
    run_assert_output(run, "small", 0, threes, sizeof threes);
    device_assert_nothing_left();
}

TEST(a_key_order_without_residents_runs_every_job) {
    struct run *run = *state;
    static const char *const keys[] = {"a", "b", NULL};
    for (int i = 0; i < 300; i++) {
        run_add_saxpy(run, i);
        run->places[i].key = keys[i % 3];
    }
    run->settings.limits.jobs_in_flight = 16;
    run_execute_ok(run);
    assert_int_equal(run->summary.ok, 300);
}

#define KEYED(name) cmocka_unit_test_setup_teardown(name, set_up, run_tear_down)

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        KEYED(a_pipeline_seeds_updates_fifty_times_and_reads),
        KEYED(keys_keep_their_order_among_others),
        KEYED(results_of_a_key_come_in_the_order_of_its_jobs),
        KEYED(scopes_are_topic_partition_and_key),
        KEYED(writes_at_an_offset_change_a_resident_in_order),
        KEYED(a_redelivered_job_does_not_apply_its_update_twice),
        KEYED(a_redelivered_job_whose_outputs_are_lost_is_an_error),
        KEYED(another_generation_or_size_than_expected_is_an_error),
        KEYED(a_resident_that_is_not_there_is_an_error_until_it_is_seeded),
        KEYED(a_revoked_partition_takes_its_residents_along),
        KEYED(a_job_that_fails_on_the_way_takes_its_resident_along),
        KEYED(a_job_that_fails_before_it_runs_leaves_its_resident),
        KEYED(a_new_process_knows_no_residents),
        KEYED(a_lost_gpu_ends_the_run_and_no_job_of_a_line_is_answered_in_its_stead),
        KEYED(residents_need_key_order),
        KEYED(one_resident_under_two_names_is_an_error),
        KEYED(a_resident_over_the_bound_of_its_key_or_of_all_is_refused),
        KEYED(a_key_order_without_residents_runs_every_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
