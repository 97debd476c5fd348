/* Proves: statics are found by their digest; one upload for each static; statics that are
 * missing or wrong. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "base/file.h"
#include "support/blob_server.h"
#include "support/run.h"
#include "support/scratch.h"
#include "support/wait.h"
#include "testing.h"

/* {5, 6} as f32, by its digest */
static const float payload[] = {5, 6};

static void digest_text(struct slice bytes, char text[static DIGEST_TEXT_SIZE]) {
    struct digest digest = digest_of(bytes);
    digest_format(&digest, text);
}

/* y' = x + 0, where x is the payload; `source` is static or blob, `data` the rest of its buffer. */
static void add_copy(struct run *run, const char *id, const char *source, const char *data) {
    char yaml[768], digest[DIGEST_TEXT_SIZE];
    digest_text(slice_of(payload, sizeof payload), digest);
    snprintf(yaml, sizeof yaml,
        "id: %s\nbuffers: {x: {%s: \"%s\", %s}, y: {bytes: 8}}\n"
        "steps: [{program: saxpy, args: [{f32: 1}, x, y, {u32: 2}], elements: 2}]\n"
        "outputs: [{buffer: y}]\n",
        id, source, digest, data);
    run_add_job(run, yaml);
}

TEST(a_static_that_came_inline_is_there_after_a_restart_by_its_digest_alone) {
    char *dir = scratch_create();
    void *second = NULL;
    struct run *first = *state;
    run_set_text(&first->settings.blobs.dir, dir);
    add_copy(first, "inline", "static", "data: {f32: [5, 6]}");
    run_execute_ok(first);
    run_assert_output(first, "inline", 0, payload, sizeof payload);

    run_set_up(&second);
    struct run *again = second;
    run_set_text(&again->settings.blobs.dir, dir);
    add_copy(again, "named", "static", "bytes: 8");
    add_copy(again, "fetched", "blob", "bytes: 8");
    run_execute_ok(again);
    run_assert_output(again, "named", 0, payload, sizeof payload);
    run_assert_output(again, "fetched", 0, payload, sizeof payload);
    run_tear_down(&second);
    scratch_remove(dir);
}

TEST(a_static_that_no_store_keeps_is_for_its_sender_to_send) {
    char *dir = scratch_create();
    struct run *run = *state;
    run_set_text(&run->settings.blobs.dir, dir);
    add_copy(run, "named", "static", "bytes: 8");
    add_copy(run, "fetched", "blob", "bytes: 8");
    run_execute_ok(run);
    run_assert_error(run, "named", "static_missing");
    run_assert_error(run, "fetched", "blob_missing");
    scratch_remove(dir);
}

TEST(a_result_whose_output_is_being_stored_is_not_overtaken_by_its_key) {
    char *dir = scratch_create();
    struct run *run = *state;
    run_set_text(&run->settings.blobs.dir, dir);
    run->settings.results.inline_max_bytes = 1000;
    run->settings.ordering = ORDERING_KEY;
    for (int k = 0; k < 100; k++) {
        char yaml[512];
        /* every other output is large, and different, so that storing it takes a while */
        snprintf(yaml, sizeof yaml,
            "id: key-%d\nbuffers: {x: {bytes: 4}, y: {bytes: %d, fill: %d}}\n"
            "steps: [{program: saxpy, args: [{f32: 1}, x, y, {u32: 1}], elements: 1}]\n"
            "outputs: [{buffer: y}]\n",
            k, k % 2 == 0 ? 200000 : 4, k + 1);
        run_add_keyed(run, "one", yaml);
    }
    run_execute_ok(run);
    assert_int_equal(run->broker.message_count, 100);
    for (int k = 0; k < 100; k++) {
        char id[32];
        snprintf(id, sizeof id, "key-%d", k);
        assert_string_equal(memory_header(&run->broker.messages[k], "gpu-worker-job-id"), id);
    }
    scratch_remove(dir);
}

TEST(a_store_that_takes_nothing_fails_no_job) {
    char *cache = scratch_create();
    struct run *run = *state;
    struct blob_server *server = blob_server_start();
    blob_server_set_mishap(server, MISHAP_STATUS_500);
    run_set_text(&run->settings.blobs.url, blob_server_url(server));
    run_set_text(&run->settings.blobs.cache_dir, cache);
    add_copy(run, "inline", "static", "data: {f32: [5, 6]}");
    run_execute_ok(run);
    run_assert_output(run, "inline", 0, payload, sizeof payload);
    blob_server_stop(server);
    scratch_remove(cache);
}

/* --- outputs --- */

/* The name that output `index` has in the blob store; "" where it is in the result. */
static void blob_of(
    struct run *run, const char *id, uint32_t index, char name[static DIGEST_TEXT_SIZE]) {
    msgpack_unpacked unpacked;
    msgpack_object result = run_unpack_result(run, id, &unpacked);
    const msgpack_object *output = &msgpack_get(&result, "outputs")->via.array.ptr[index];
    const msgpack_object *blob = msgpack_get(output, "blob");
    assert_true((blob != NULL) != (msgpack_get(output, "data") != NULL));
    name[0] = 0;
    if (blob != NULL)
        snprintf(name, DIGEST_TEXT_SIZE, "%.*s", (int)blob->via.str.size, blob->via.str.ptr);
    msgpack_unpacked_destroy(&unpacked);
}

static void add_two_outputs(struct run *run, const char *id) {
    char yaml[512];
    snprintf(yaml, sizeof yaml,
        "id: %s\nbuffers: {x: {bytes: 4, fill: 1}, small: {bytes: 100, fill: 2}, "
        "large: {bytes: 2000000, fill: 3}}\n"
        "steps: [{program: saxpy, args: [{f32: 0}, x, small, {u32: 1}], elements: 1}]\n"
        "outputs: [{buffer: small}, {buffer: large}]\n",
        id);
    run_add_job(run, yaml);
}

static void use_small_results(struct run *run) {
    run->settings.results.inline_max_bytes = 100;
    run->settings.limits.result_bytes = 10000;
}

TEST(a_large_output_is_a_blob_whose_file_has_its_bytes) {
    char *dir = scratch_create(), *bytes, *path;
    char name[DIGEST_TEXT_SIZE], expected[DIGEST_TEXT_SIZE];
    size_t size;
    struct run *run = *state;
    run_set_text(&run->settings.blobs.dir, dir);
    use_small_results(run);
    add_two_outputs(run, "job");
    add_two_outputs(run, "again");
    run_execute_ok(run);
    blob_of(run, "job", 0, name);
    assert_string_equal(name, "");
    blob_of(run, "again", 1, name);
    assert_memory_equal(name, "sha256:", 7);
    assert_return_code(asprintf(&path, "%s/%.2s/%s", dir, name + 7, name + 7), 0);
    assert_int_equal(file_read(path, 1 << 22, &bytes, &size, &run->err), ERR_OK);
    assert_int_equal(size, 2000000);
    for (size_t i = 0; i < size; i++) assert_int_equal(bytes[i], 3);
    digest_text(slice_of(bytes, size), expected);
    assert_string_equal(name, expected);
    free(bytes);
    free(path);
    scratch_remove(dir);
}

TEST(an_output_that_cannot_be_stored_waits_until_it_can) {
    char *cache = scratch_create();
    struct run *run = *state;
    struct blob_server *server = blob_server_start();
    blob_server_set_mishaps(server, MISHAP_STATUS_500, 10);
    run_set_text(&run->settings.blobs.url, blob_server_url(server));
    run_set_text(&run->settings.blobs.cache_dir, cache);
    use_small_results(run);
    add_two_outputs(run, "job");
    run_execute_ok(run);
    assert_int_equal(run->summary.ok, 1);
    blob_server_stop(server);
    scratch_remove(cache);
}

TEST(an_output_over_the_largest_blob_is_refused_before_it_runs) {
    char *dir = scratch_create();
    struct run *run = *state;
    run_set_text(&run->settings.blobs.dir, dir);
    use_small_results(run);
    run->settings.blobs.bytes_max = 1999999;
    add_two_outputs(run, "job");
    run_execute_ok(run);
    run_assert_error(run, "job", "result_too_large");
    scratch_remove(dir);
}

/* --- a slow store --- */

enum { OTHERS = 20 };

struct slow {
    struct run *run;
    bool others_are_done;
};

/* Holds the blob back until every other job is answered. */
static void hold_until_others_are_done(void *context) {
    struct slow *slow = context;
    struct wait wait = wait_begin();
    while (!slow->others_are_done && wait_goes_on(&wait)) {
        slow->others_are_done = run_finished_count(slow->run) == OTHERS;
        wait_pause(&wait);
    }
}

TEST(a_slow_blob_holds_no_other_job) {
    char *cache = scratch_create();
    struct run *run = *state;
    struct blob_server *server = blob_server_start();
    struct slow slow = {.run = run};
    blob_server_add(server, slice_of(payload, sizeof payload));
    blob_server_set_gate(server, hold_until_others_are_done, &slow);
    run_set_text(&run->settings.blobs.url, blob_server_url(server));
    run_set_text(&run->settings.blobs.cache_dir, cache);
    add_copy(run, "slow", "blob", "bytes: 8");
    for (int k = 0; k < OTHERS; k++) run_add_saxpy(run, k);
    run_execute_ok(run);
    assert_true(slow.others_are_done);
    assert_int_equal(blob_server_gets(server), 1); /* none was given up and asked for again */
    run_assert_output(run, "slow", 0, payload, sizeof payload);
    blob_server_stop(server);
    scratch_remove(cache);
}

/* As many slow blobs as there are threads to fetch them, and a static that waits for none of them.
 */
TEST(slow_blobs_hold_no_cold_work_that_needs_no_store) {
    char *cache = scratch_create();
    struct run *run = *state;
    struct blob_server *server = blob_server_start();
    struct slow slow = {.run = run};
    run->settings.prepare.threads = 1;
    blob_server_add(server, slice_of(payload, sizeof payload));
    blob_server_set_gate(server, hold_until_others_are_done, &slow);
    run_set_text(&run->settings.blobs.url, blob_server_url(server));
    run_set_text(&run->settings.blobs.cache_dir, cache);
    add_copy(run, "slow", "blob", "bytes: 8");
    for (int k = 0; k < OTHERS; k++) {
        char yaml[768], digest[DIGEST_TEXT_SIZE];
        const float own[] = {(float)k, 1};
        digest_text(slice_of(own, sizeof own), digest);
        snprintf(yaml, sizeof yaml,
            "id: cold-%d\nbuffers: {x: {static: \"%s\", data: {f32: [%d, 1]}}, y: {bytes: 8}}\n"
            "steps: [{program: saxpy, args: [{f32: 1}, x, y, {u32: 2}], elements: 2}]\n"
            "outputs: [{buffer: y}]\n",
            k, digest, k);
        run_add_job(run, yaml);
    }
    run_execute_ok(run);
    assert_true(slow.others_are_done);
    assert_int_equal(blob_server_gets(server), 1); /* none was given up and asked for again */
    run_assert_output(run, "slow", 0, payload, sizeof payload);
    blob_server_stop(server);
    scratch_remove(cache);
}

static size_t result_index(struct run *run, const char *id) {
    const struct memory_message *message = memory_find(&run->broker, ROUTE_RESULT, id);
    assert_non_null(message);
    return (size_t)(message - run->broker.messages);
}

TEST(a_job_that_waits_for_a_blob_is_not_overtaken_by_its_key) {
    char *cache = scratch_create();
    struct run *run = *state;
    struct blob_server *server = blob_server_start();
    struct slow slow = {.run = run};
    run->settings.ordering = ORDERING_KEY;
    blob_server_add(server, slice_of(payload, sizeof payload));
    blob_server_set_gate(server, hold_until_others_are_done, &slow);
    run_set_text(&run->settings.blobs.url, blob_server_url(server));
    run_set_text(&run->settings.blobs.cache_dir, cache);
    add_copy(run, "slow", "blob", "bytes: 8");
    run->places[0].key = "slow";
    for (int k = 0; k <= OTHERS; k++) {
        run_add_saxpy(run, k);
        run->places[k + 1].key = k == 0 ? "slow" : "other";
    }
    run_execute_ok(run);
    assert_true(slow.others_are_done);
    assert_int_equal(blob_server_gets(server), 1); /* none was given up and asked for again */
    assert_true(result_index(run, "slow") < result_index(run, "job-0"));
    blob_server_stop(server);
    scratch_remove(cache);
}

/* Holds the blob back until the deadline of the job behind it has passed. */
static void hold_until_the_deadline(void *context) {
    const uint64_t *deadline_ms = context;
    struct wait wait = wait_begin();
    while (clock_unix_ms() <= *deadline_ms) wait_pause(&wait);
}

TEST(what_is_late_while_it_waits_for_the_store_is_not_fetched) {
    static const float other[] = {7, 8};
    char *cache = scratch_create(), digest[DIGEST_TEXT_SIZE], yaml[512];
    struct run *run = *state;
    struct blob_server *server = blob_server_start();
    uint64_t deadline_ms = clock_unix_ms() + 1000;
    run->settings.prepare.threads = 1;
    blob_server_add(server, slice_of(payload, sizeof payload));
    blob_server_add(server, slice_of(other, sizeof other));
    blob_server_set_gate(server, hold_until_the_deadline, &deadline_ms);
    run_set_text(&run->settings.blobs.url, blob_server_url(server));
    run_set_text(&run->settings.blobs.cache_dir, cache);
    add_copy(run, "slow", "blob", "bytes: 8");
    digest_text(slice_of(other, sizeof other), digest);
    snprintf(yaml, sizeof yaml,
        "id: late\ndeadline_ms: %llu\nbuffers: {x: {blob: \"%s\", bytes: 8}, y: {bytes: 8}}\n"
        "steps: [{program: saxpy, args: [{f32: 1}, x, y, {u32: 2}], elements: 2}]\noutputs: []\n",
        (unsigned long long)deadline_ms, digest);
    run_add_job(run, yaml);
    run_execute_ok(run);
    run_assert_output(run, "slow", 0, payload, sizeof payload);
    run_assert_error(run, "late", "deadline_exceeded");
    assert_int_equal(blob_server_gets(server), 1);
    blob_server_stop(server);
    scratch_remove(cache);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        FLOW(a_static_that_came_inline_is_there_after_a_restart_by_its_digest_alone),
        FLOW(a_static_that_no_store_keeps_is_for_its_sender_to_send),
        FLOW(a_job_that_waits_for_a_blob_is_not_overtaken_by_its_key),
        FLOW(what_is_late_while_it_waits_for_the_store_is_not_fetched),
        FLOW(a_result_whose_output_is_being_stored_is_not_overtaken_by_its_key),
        FLOW(a_store_that_takes_nothing_fails_no_job),
        FLOW(a_large_output_is_a_blob_whose_file_has_its_bytes),
        FLOW(an_output_that_cannot_be_stored_waits_until_it_can),
        FLOW(an_output_over_the_largest_blob_is_refused_before_it_runs),
        FLOW(a_slow_blob_holds_no_other_job),
        FLOW(slow_blobs_hold_no_cold_work_that_needs_no_store),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
