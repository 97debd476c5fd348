/* Outputs that the blob store does not take at once: the job is tried again, as after any failure
 * with `retry: worker`, and counted once. */
#include <stdlib.h>

#include "support/blob_server.h"
#include "support/run.h"
#include "support/scratch.h"
#include "testing.h"

struct rig {
    struct run *run;
    struct blob_server *server;
    char *cache;
};

static void rig_start(struct rig *rig, struct run *run) {
    *rig = (struct rig){.run = run, .server = blob_server_start(), .cache = scratch_create()};
    run_set_text(&run->settings.blobs.url, blob_server_url(rig->server));
    run_set_text(&run->settings.blobs.cache_dir, rig->cache);
    run->settings.results.inline_max_bytes = 100;
}

static void rig_stop(struct rig *rig) {
    blob_server_stop(rig->server);
    scratch_remove(rig->cache);
}

static void add_large(struct run *run, const char *id) {
    char yaml[512];
    snprintf(yaml, sizeof yaml,
        "id: %s\nbuffers: {x: {bytes: 4, fill: 1}, large: {bytes: 200000, fill: 3}}\n"
        "steps: [{program: saxpy, args: [{f32: 0}, x, large, {u32: 1}], elements: 1}]\n"
        "outputs: [{buffer: large}]\n",
        id);
    run_add_keyed(run, "one", yaml);
}

/* What the worker said of itself in all: how many messages ended so. */
static uint64_t counted(struct run *run, const char *code) {
    uint64_t total = 0;
    for (size_t i = 0; i < run->telemetry.message_count; i++) {
        struct slice payload = run->telemetry.messages[i].payload;
        msgpack_unpacked unpacked;
        msgpack_unpacked_init(&unpacked);
        assert_int_equal(
            msgpack_unpack_next(&unpacked, (const char *)payload.data, payload.size, NULL),
            MSGPACK_UNPACK_SUCCESS);
        const msgpack_object *value = msgpack_get(msgpack_get(&unpacked.data, "outcomes"), code);
        if (value != NULL) total += value->via.u64;
        msgpack_unpacked_destroy(&unpacked);
    }
    return total;
}

TEST(a_store_that_fails_twice_costs_two_tries_and_no_result) {
    struct rig rig;
    rig_start(&rig, *state);
    blob_server_set_mishaps(rig.server, MISHAP_STATUS_500, 2);
    add_large(rig.run, "large");
    run_execute_ok(rig.run);
    assert_int_equal(rig.run->summary.ok, 1);
    assert_int_equal(memory_count(&rig.run->broker, ROUTE_DEAD_LETTER), 0);
    assert_int_equal(counted(rig.run, "ok"), 1);
    assert_int_equal(counted(rig.run, "io"), 0);
    rig_stop(&rig);
}

TEST(a_store_that_is_away_for_long_costs_no_job_and_the_keys_line_goes_on) {
    struct rig rig;
    rig_start(&rig, *state);
    rig.run->settings.ordering = ORDERING_KEY;
    blob_server_set_mishaps(rig.server, MISHAP_STATUS_500, 20); /* of 5 tries */
    add_large(rig.run, "large");
    add_large(rig.run, "next");
    run_execute_ok(rig.run);
    assert_int_equal(rig.run->summary.ok, 2);
    assert_string_equal(memory_header(&rig.run->broker.messages[0], "gpu-worker-job-id"), "large");
    assert_int_equal(counted(rig.run, "ok"), 2);
    assert_int_equal(counted(rig.run, "io"), 0);
    rig_stop(&rig);
}

TEST(a_result_that_is_refused_counts_as_refused) {
    struct run *run = *state;
    run->broker.refuse_over_bytes = 3000;
    run_add_job(run, "id: big\nbuffers: {x: {bytes: 4000}, y: {bytes: 4000}}\n"
                     "steps: [{program: saxpy, args: [{f32: 1}, x, y, {u32: 1}], elements: 1}]\n"
                     "outputs: [{buffer: y}]\n");
    run_execute_ok(run);
    assert_int_equal(counted(run, "publish_refused"), 1);
    assert_int_equal(counted(run, "ok"), 0);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        FLOW(a_store_that_fails_twice_costs_two_tries_and_no_result),
        FLOW(a_store_that_is_away_for_long_costs_no_job_and_the_keys_line_goes_on),
        FLOW(a_result_that_is_refused_counts_as_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
