/* Proves: an array that a worker cannot run to its end is left whole to the next owner of its
 * message; blobs and outputs of arrays pass through memory in parts. */
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "blobs/blobs.h"
#include "blobs/folder.h"
#include "cpu_driver/cpu_driver.h"
#include "state/state.h"
#include "support/blob_server.h"
#include "support/device_checks.h"
#include "support/run.h"
#include "support/scratch.h"
#include "testing.h"

/* Launches of the array that are begun before it is interrupted. */
enum { LAUNCHES_BEFORE = 5, LAUNCHES_OF_ALL = 250 };

/* An array that is far from its end when it is interrupted, the next job of its key, and another.
 */
static void add_jobs(struct run *run) {
    run->settings.lanes = 2;
    run->settings.ordering = ORDERING_KEY;
    run_set_text(&run->settings.cpu_driver.faults, "cuLaunchKernel:slow=20ms@*");
    run_add_keyed(run, "k",
        "id: array\ncount: 50000\nbuffers: {x: {bytes: 4}, y: {bytes: 4, each: true}}\n"
        "steps: [{program: saxpy, args: [{f32: 1}, x, y, {u32: 0}], grid: [1]}]\noutputs: []\n");
    run_add_saxpy(run, 1);
    run->places[1].key = "k";
    run_add_saxpy(run, 2);
    run->places[2].key = "other";
    run->stop_after = SIZE_MAX; /* the source does not end */
}

static bool is_under_way(struct run *run) {
    return run_finished_count(run) == 1 &&
           cpu_driver_counters().calls[CPU_launch] >= LAUNCHES_BEFORE;
}

/* What the worker says of its batches, over all of its life. */
static uint64_t reported(const struct run *run, const char *name) {
    uint64_t sum = 0;
    for (size_t i = 0; i < run->telemetry.message_count; i++) {
        struct slice payload = run->telemetry.messages[i].payload;
        msgpack_unpacked report;
        msgpack_unpacked_init(&report);
        assert_int_equal(
            msgpack_unpack_next(&report, (const char *)payload.data, payload.size, NULL),
            MSGPACK_UNPACK_SUCCESS);
        sum += msgpack_get(msgpack_get(&report.data, "batches"), name)->via.u64;
        msgpack_unpacked_destroy(&report);
    }
    return sum;
}

static void assert_left_to_others(struct run *run) {
    run->settings.telemetry.interval_ms = 20;
    assert_int_equal(run_execute(run), ERR_OK);
    assert_int_equal(reported(run, "count"), 1); /* as the one result says */
    assert_int_equal(reported(run, "jobs"), 1);
    assert_int_equal(reported(run, "launches"), 1);
    assert_int_equal(run->broker.finished[0], 0);
    assert_int_equal(run->broker.finished[1], 0); /* it does not overtake the array */
    assert_int_equal(run->broker.finished[2], 1);
    assert_null(memory_find(&run->broker, ROUTE_RESULT, "array"));
    assert_int_equal(memory_count(&run->broker, ROUTE_DEAD_LETTER), 0);
    assert_false(run->summary.is_complete);
    assert_true(cpu_driver_counters().calls[CPU_launch] < LAUNCHES_OF_ALL / 2);
    device_assert_nothing_left();
}

static void stop(struct run *run) {
    if (is_under_way(run)) run->stop = 1;
}

TEST(a_stop_ends_an_array_between_its_slices_and_leaves_it_unanswered) {
    struct run *run = *state;
    add_jobs(run);
    run->on_poll = stop;
    assert_left_to_others(run);
}

static void lose(struct run *run) {
    if (is_under_way(run)) atomic_store(&run->broker.left_count, SIZE_MAX);
}

static void stop_after_launches(struct run *run) {
    if (cpu_driver_counters().calls[CPU_launch] >= LAUNCHES_BEFORE) run->stop = 1;
}

/* Each instance has launches of its own, and a message that was contested runs alone. */
TEST(a_stop_ends_an_array_that_runs_alone_between_its_slices) {
    struct run *run = *state;
    char *dir = scratch_create(), path[512];
    struct error set_aside;
    snprintf(path, sizeof path, "%s/state", dir);
    assert_int_equal(state_open(path, 0, &run->state, &set_aside, &run->err), ERR_OK);
    run_set_text(&run->settings.cpu_driver.faults, "cuLaunchKernel:slow=1ms@*");
    run_add_job(run,
        "id: array\ncount: 50000\nbuffers: {x: {bytes: 4}, y: {bytes: 4, each: true}}\n"
        "steps: [{program: saxpy, args: [{f32: 1}, x, y, {u32: 0}], grid: [1, 2]}]\n"
        "outputs: []\n");
    run->places[0].comes_contested = true;
    run->stop_after = SIZE_MAX;
    run->on_poll = stop_after_launches;
    assert_int_equal(run_execute(run), ERR_OK);
    assert_int_equal(run->broker.finished[0], 0);
    assert_true(cpu_driver_counters().calls[CPU_launch] < 10000);
    state_close(run->state);
    run->state = NULL;
    scratch_remove(dir);
}

TEST(a_lost_partition_ends_an_array_between_its_slices_and_leaves_it_unanswered) {
    struct run *run = *state;
    add_jobs(run);
    run->stop_after = 0; /* the run ends by itself once nothing is in hand */
    run->on_poll = lose;
    assert_left_to_others(run);
}

TEST(an_array_is_run_to_its_end_when_no_more_messages_come) {
    struct run *run = *state;
    run_add_job(run,
        "id: array\ncount: 5000\nbuffers: {x: {bytes: 4}, y: {bytes: 4, each: true}}\n"
        "steps: [{program: saxpy, args: [{f32: 1}, x, y, {u32: 0}], grid: [1]}]\noutputs: []\n");
    run_execute_ok(run);
    assert_int_equal(run_telemetry(run, "array", "instances"), 5000);
    assert_int_equal(
        run_batch_telemetry(run, "array", "jobs"), run_telemetry(run, "array", "slices"));
}

/* y = 2 x + y, but for what is written into instance 7 of x; z is x. */
enum { COUNT = 20000, FLOATS = 3, WRITTEN = 7 };

static float x_of(size_t i) {
    return i == WRITTEN * FLOATS + 1 ? 500 : (float)(i % 1000);
}

static void store_blob(const char *dir, struct slice bytes) {
    const struct blobs_options options = {.dir = dir, .bytes_max = bytes.size};
    struct digest digest = digest_of(bytes);
    struct blobs *blobs;
    struct error err;
    assert_int_equal(blobs_create(&options, &blobs, &err), ERR_OK);
    assert_int_equal(blobs_put(blobs, &digest, bytes, &err), ERR_OK);
    blobs_destroy(blobs);
}

static float x[COUNT * FLOATS];

/* The array that has x from the blob store. */
static void add_array_of_blob(struct run *run) {
    char yaml[1024], digest[DIGEST_TEXT_SIZE];
    for (size_t i = 0; i < COUNT * FLOATS; i++) x[i] = (float)(i % 1000);
    struct digest stored = digest_of(slice_of(x, sizeof x));
    run->settings.results.inline_max_bytes = 100;
    run->settings.lane_slab_bytes = 64 << 10;
    run->settings.blobs.bytes_max = 1 << 10;
    run->settings.limits.job_bytes = 4 << 10;
    run->settings.limits.array_bytes = 2 * sizeof x;
    snprintf(yaml, sizeof yaml,
        "id: array\ncount: %d\nbuffers:\n"
        "  x: {bytes: 12, each: true, blob: \"%s\",\n"
        "      writes: [{instance: 7, offset: 4, data: {f32: [500]}}]}\n"
        "  y: {bytes: 12, each: true, fill: 0}\n"
        "steps: [{program: saxpy, args: [{f32: 2}, x, y, {u32: 3}], elements: 3}]\n"
        "outputs: [{buffer: y}, {buffer: x, as: z}]\n",
        COUNT, digest_format(&stored, digest));
    run_add_job(run, yaml);
}

static void add_blob_array(struct run *run, const char *dir) {
    add_array_of_blob(run);
    store_blob(dir, slice_of(x, sizeof x));
    run_set_text(&run->settings.blobs.dir, dir);
}

static void assert_stored(
    struct run *run, const char *dir, uint32_t output, float (*expected)(size_t)) {
    msgpack_unpacked unpacked;
    msgpack_object result = run_unpack_result(run, "array", &unpacked);
    const msgpack_object *name =
        msgpack_get(&msgpack_get(&result, "outputs")->via.array.ptr[output], "blob");
    assert_non_null(name);
    char path[512], blob[BLOB_NAME_SIZE], *bytes;
    struct digest digest;
    struct error err;
    size_t size;
    assert_true(digest_parse(slice_of(name->via.str.ptr, name->via.str.size), &digest));
    snprintf(path, sizeof path, "%s/%s", dir, blob_name(&digest, blob));
    assert_int_equal(file_read(path, SIZE_MAX, &bytes, &size, &err), ERR_OK);
    assert_int_equal(size, COUNT * FLOATS * sizeof(float));
    for (size_t i = 0; i < COUNT * FLOATS; i++) {
        float got;
        memcpy(&got, bytes + i * sizeof got, sizeof got);
        assert_true(got == expected(i));
    }
    free(bytes);
    msgpack_unpacked_destroy(&unpacked);
}

static void count_unfinished(void *context, const struct folder_file *file) {
    *(size_t *)context += file->is_temp;
}

/* Nothing is left of what was not stored. */
static void assert_nothing_unfinished(const char *dir) {
    struct folder folder;
    struct error err;
    size_t count = 0;
    assert_int_equal(folder_open(&folder, "blobs.dir", dir, 0777, &err), ERR_OK);
    folder_visit(&folder, count_unfinished, &count);
    folder_close(&folder);
    assert_int_equal(count, 0);
}

static float y_of(size_t i) {
    return 2 * x_of(i);
}

TEST(blobs_and_outputs_that_are_larger_than_a_job_may_be_pass_in_parts) {
    struct run *run = *state;
    char *dir = scratch_create();
    add_blob_array(run, dir);
    run_execute_ok(run);
    assert_true(run_telemetry(run, "array", "slices") > 10);
    assert_stored(run, dir, 0, y_of);
    assert_stored(run, dir, 1, x_of);
    assert_nothing_unfinished(dir);
    device_assert_nothing_left();
    scratch_remove(dir);
}

TEST(blobs_and_outputs_of_a_store_behind_http_pass_in_parts) {
    struct run *run = *state;
    char *cache_dir = scratch_create(), device_dir[512];
    static float y[COUNT * FLOATS];
    struct blob_server *server = blob_server_start();
    add_array_of_blob(run);
    blob_server_add(server, slice_of(x, sizeof x));
    run_set_text(&run->settings.blobs.url, blob_server_url(server));
    run_set_text(&run->settings.blobs.cache_dir, cache_dir);
    run_execute_ok(run);
    assert_true(run_telemetry(run, "array", "slices") > 10);
    for (size_t i = 0; i < COUNT * FLOATS; i++) y[i] = y_of(i);
    assert_true(blob_server_has(server, slice_of(y, sizeof y)));
    for (size_t i = 0; i < COUNT * FLOATS; i++) y[i] = x_of(i);
    assert_true(blob_server_has(server, slice_of(y, sizeof y)));
    snprintf(device_dir, sizeof device_dir, "%s/gpu0", cache_dir);
    assert_nothing_unfinished(device_dir);
    blob_server_stop(server);
    scratch_remove(cache_dir);
}

TEST(what_was_spooled_of_an_array_that_failed_once_is_written_anew) {
    struct run *run = *state;
    char *dir = scratch_create();
    add_blob_array(run, dir);
    run->settings.retry.base_ms = run->settings.retry.max_ms = 1;
    run_set_text(&run->settings.cpu_driver.faults, "cuMemcpyDtoHAsync:invalid_value@9");
    run_execute_ok(run);
    assert_int_equal(cpu_driver_counters().faults, 1);
    assert_stored(run, dir, 0, y_of);
    assert_stored(run, dir, 1, x_of);
    assert_nothing_unfinished(dir);
    scratch_remove(dir);
}

TEST(an_array_that_fails_or_is_left_to_others_leaves_no_part_of_its_outputs) {
    struct run *run = *state;
    char *dir = scratch_create();
    add_blob_array(run, dir);
    run->settings.retry.max_attempts = 2;
    run->settings.retry.base_ms = run->settings.retry.max_ms = 1;
    run_set_text(&run->settings.cpu_driver.faults, "cuMemcpyDtoHAsync:invalid_value@*");
    run_execute_ok(run);
    run_assert_error(run, "array", "driver_error");
    assert_nothing_unfinished(dir);

    run_restart(run);
    run_set_text(&run->settings.cpu_driver.faults, "cuLaunchKernel:slow=20ms@*");
    run->stop_after = SIZE_MAX;
    run->on_poll = stop_after_launches;
    assert_int_equal(run_execute(run), ERR_OK);
    assert_int_equal(run->broker.finished[0], 0);
    assert_nothing_unfinished(dir);
    scratch_remove(dir);
}

/* Eight outputs of two instances, each of which goes to the store. */
static void add_array_of_outputs(struct run *run, int number) {
    char yaml[1024], outputs[512] = "";
    for (int i = 0; i < 8; i++) {
        size_t used = strlen(outputs);
        snprintf(outputs + used, sizeof outputs - used,
            "%s{buffer: y, offset: %d, bytes: 4, as: y%d}", i > 0 ? ", " : "", 4 * i, i);
    }
    snprintf(yaml, sizeof yaml,
        "id: array-%d\ncount: 2\nbuffers: {x: {data: {f32: [1, 2, 3, 4, 5, 6, 7, 8]}}, y: {bytes: "
        "32, each: true}}\n"
        "steps: [{program: saxpy, args: [{f32: %d}, x, y, {u32: 8}], elements: 8}]\n"
        "outputs: [%s]\n",
        number, number, outputs);
    run_add_job(run, yaml);
}

TEST(arrays_wait_for_room_that_outputs_on_their_way_to_the_store_have) {
    enum { ARRAYS = 300 };
    struct run *run = *state;
    char *dir = scratch_create();
    run_set_text(&run->settings.blobs.dir, dir);
    run->settings.results.inline_max_bytes = 4;
    for (int i = 0; i < ARRAYS; i++) add_array_of_outputs(run, i);
    run_execute_ok(run);
    assert_int_equal(run->summary.ok, ARRAYS);
    assert_nothing_unfinished(dir);
    scratch_remove(dir);
}

TEST(an_array_whose_blob_is_not_there_says_so) {
    struct run *run = *state;
    char *dir = scratch_create(), *other = scratch_create();
    add_blob_array(run, dir);
    run_set_text(&run->settings.blobs.dir, other);
    run_execute_ok(run);
    run_assert_error(run, "array", "blob_missing");
    scratch_remove(dir);
    scratch_remove(other);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        FLOW(a_stop_ends_an_array_between_its_slices_and_leaves_it_unanswered),
        FLOW(a_stop_ends_an_array_that_runs_alone_between_its_slices),
        FLOW(a_lost_partition_ends_an_array_between_its_slices_and_leaves_it_unanswered),
        FLOW(blobs_and_outputs_that_are_larger_than_a_job_may_be_pass_in_parts),
        FLOW(blobs_and_outputs_of_a_store_behind_http_pass_in_parts),
        FLOW(what_was_spooled_of_an_array_that_failed_once_is_written_anew),
        FLOW(an_array_that_fails_or_is_left_to_others_leaves_no_part_of_its_outputs),
        FLOW(arrays_wait_for_room_that_outputs_on_their_way_to_the_store_have),
        FLOW(an_array_whose_blob_is_not_there_says_so),
        FLOW(an_array_is_run_to_its_end_when_no_more_messages_come),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
