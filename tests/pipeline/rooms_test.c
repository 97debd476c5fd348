/* Proves: results of large jobs leave from the pinned memory that their outputs came to. They are
 * as any others; the memory comes back, whatever becomes of them. */
#include <stdlib.h>

#include "base/digest.h"
#include "support/blob_server.h"
#include "support/device_checks.h"
#include "support/run.h"
#include "support/scratch.h"
#include "testing.h"

enum { SLAB_BYTES = 64 << 10, LARGE_BYTES = 300000, JOBS = 40 };

static int set_up(void **state) {
    int code = run_set_up(state);
    struct run *run = *state;
    run->settings.lane_slab_bytes = SLAB_BYTES;
    run->settings.limits.result_bytes = 4 << 20;
    return code;
}

static int tear_down(void **state) {
    device_assert_nothing_left();
    return run_tear_down(state);
}

/* z is filled with k, and y = 2 x + y; the end of z is an output of its own. */
static void add_large(struct run *run, int k) {
    char yaml[1024];
    snprintf(yaml, sizeof yaml,
        "id: large-%d\nbuffers: {x: {data: {f32: [%d, 1]}}, y: {data: {f32: [1, 1]}},\n"
        "  z: {bytes: %d, fill: %d, shape: [3, %d], datatype: UINT8}}\n"
        "steps: [{program: saxpy, args: [{f32: 2}, x, y, {u32: 2}], elements: 2}]\n"
        "outputs: [{buffer: y}, {buffer: z}, {buffer: z, offset: %d, bytes: 3, as: end}]\n",
        k, k, LARGE_BYTES, k, LARGE_BYTES / 3, LARGE_BYTES - 3);
    run_add_job(run, yaml);
}

static void assert_outputs(struct run *run, int k, bool is_z_stored) {
    static uint8_t z[LARGE_BYTES];
    const float y[] = {2 * (float)k + 1, 3};
    char id[32];
    snprintf(id, sizeof id, "large-%d", k);
    memset(z, k, sizeof z);
    run_assert_output(run, id, 0, y, sizeof y);
    if (!is_z_stored) run_assert_output(run, id, 1, z, sizeof z);
    run_assert_output(run, id, 2, z, 3);
}

static void run_large(struct run *run) {
    for (int k = 0; k < JOBS; k++) {
        add_large(run, k);
        run_add_saxpy(run, k);
    }
    run_execute_ok(run);
    assert_int_equal(run->summary.ok, 2 * JOBS);
    for (int k = 0; k < JOBS; k++) assert_outputs(run, k, false);
    /* Each output by itself: what is read back to a slab is padded. */
    assert_int_equal(
        run_batch_telemetry(run, "large-0", "d2h_bytes"), 2 * sizeof(float) + LARGE_BYTES + 3);
}

TEST(results_around_outputs_of_any_size_are_as_any_others) {
    run_large(*state);
}

/* Two results fit that are not acknowledged yet, and those come all at once. */
TEST(a_job_waits_for_memory_that_results_on_their_way_hold) {
    struct run *run = *state;
    run->settings.lanes = 1;
    run->settings.lane_depth = 1;
    run->settings.prepare.threads = 1;
    run->settings.pools.pinned_bytes = 10 << 20;
    run->broker.settle_ns = 2000000;
    run_large(run);
}

TEST(results_that_the_sink_refuses_are_errors_and_dead_letters) {
    struct run *run = *state;
    run->broker.refuse_over_bytes = LARGE_BYTES;
    for (int k = 0; k < JOBS; k++) add_large(run, k);
    run_execute_ok(run);
    assert_int_equal(run->summary.errors, JOBS);
    run_assert_error(run, "large-7", "publish_refused");
}

TEST(outputs_go_to_the_blob_store_from_where_they_came_to) {
    char *dir = scratch_create(), text[DIGEST_TEXT_SIZE];
    static uint8_t z[LARGE_BYTES];
    struct run *run = *state;
    run_set_text(&run->settings.blobs.dir, dir);
    run->settings.results.inline_max_bytes = 1000;
    for (int k = 0; k < JOBS; k++) add_large(run, k);
    run_execute_ok(run);
    assert_int_equal(run->summary.ok, JOBS);
    for (int k = 0; k < JOBS; k++) {
        char id[32];
        msgpack_unpacked unpacked;
        snprintf(id, sizeof id, "large-%d", k);
        assert_outputs(run, k, true);
        memset(z, k, sizeof z);
        struct digest digest = digest_of(slice_of(z, sizeof z));
        msgpack_object result = run_unpack_result(run, id, &unpacked);
        const msgpack_object *outputs = msgpack_get(&result, "outputs");
        const msgpack_object *blob = msgpack_get(&outputs->via.array.ptr[1], "blob");
        assert_non_null(blob);
        assert_int_equal(blob->via.str.size, strlen(digest_format(&digest, text)));
        assert_memory_equal(blob->via.str.ptr, text, blob->via.str.size);
        msgpack_unpacked_destroy(&unpacked);
    }
    scratch_remove(dir);
}

/* Each of them is run again, into other memory. */
TEST(jobs_whose_outputs_could_not_be_stored_are_tried_again) {
    char *cache = scratch_create();
    struct blob_server *server = blob_server_start();
    struct run *run = *state;
    run_set_text(&run->settings.blobs.url, blob_server_url(server));
    run_set_text(&run->settings.blobs.cache_dir, cache);
    run->settings.results.inline_max_bytes = 1000;
    blob_server_set_mishaps(server, MISHAP_STATUS_500, 6);
    for (int k = 0; k < 4; k++) add_large(run, k);
    run_execute_ok(run);
    assert_int_equal(run->summary.ok, 4);
    for (int k = 0; k < 4; k++) assert_outputs(run, k, true);
    blob_server_stop(server);
    scratch_remove(cache);
}

/* Jobs that others answer, since their partition has left. */
TEST(results_that_are_dropped_give_their_memory_back) {
    struct run *run = *state;
    run->broker.revoke_from = JOBS / 2;
    for (int k = 0; k < JOBS; k++) add_large(run, k);
    assert_int_equal(run_execute(run), ERR_OK);
    for (int k = 0; k < JOBS / 2; k++) assert_outputs(run, k, false);
}

#define R(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

RUN_TESTS(R(results_around_outputs_of_any_size_are_as_any_others),
    R(a_job_waits_for_memory_that_results_on_their_way_hold),
    R(results_that_the_sink_refuses_are_errors_and_dead_letters),
    R(outputs_go_to_the_blob_store_from_where_they_came_to),
    R(jobs_whose_outputs_could_not_be_stored_are_tried_again),
    R(results_that_are_dropped_give_their_memory_back))
