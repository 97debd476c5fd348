/* Proves: statics are found by their digest; one upload for each static; what the cache of
 * statics holds and evicts; statics that are missing or wrong; exact counters. */
#include <stdlib.h>

#include "base/digest.h"
#include "cpu_driver/cpu_driver.h"
#include "support/run.h"
#include "testing.h"

enum { LANES = 16, JOBS = 400, FLOATS = 2 };

/* The payload of number n: {n, n + 0.5}. */
static void payload_of(int n, float payload[FLOATS], char digest[DIGEST_TEXT_SIZE]) {
    payload[0] = (float)n;
    payload[1] = (float)n + 0.5f;
    struct digest d = digest_of(slice_of(payload, FLOATS * sizeof(float)));
    digest_format(&d, digest);
}

/* id: y = x of payload n, under a name of its own; `data` where the message brings the bytes. */
static void add_job(struct run *run, const char *id, int n, bool has_data) {
    float payload[FLOATS];
    char digest[DIGEST_TEXT_SIZE], data[64] = "", yaml[768];
    payload_of(n, payload, digest);
    if (has_data) snprintf(data, sizeof data, ", data: {f32: [%d, %.1f]}", n, (double)payload[1]);
    snprintf(yaml, sizeof yaml,
        "id: %s\nbuffers: {%s-x: {bytes: 8, static: \"%s\"%s}, y: {bytes: 8}}\n"
        "steps: [{program: saxpy, args: [{f32: 1}, %s-x, y, {u32: 2}], elements: 2}]\n"
        "outputs: [{buffer: y}]\n",
        id, id, digest, data, id);
    run_add_job(run, yaml);
}

static void use_many_lanes(struct run *run) {
    run->settings.lanes = LANES;
    run->settings.batch.jobs = 4;
    run->settings.prepare.threads = 8;
}

static void check_output(struct run *run, const char *id, int n) {
    float payload[FLOATS];
    char digest[DIGEST_TEXT_SIZE];
    payload_of(n, payload, digest);
    run_assert_output(run, id, 0, payload, sizeof payload);
}

static void check_no_mistakes(void) {
    struct cpu_driver_counters counters = cpu_driver_counters();
    assert_int_equal(counters.hazards, 0);
    assert_int_equal(counters.freed_in_use, 0);
    assert_int_equal(counters.copies_pageable, 0);
    assert_int_equal(counters.allocations_live, 0);
}

/* What the driver moved up is what the batches say they moved, and the payloads: once each. */
static void check_moved(struct run *run, uint64_t payload_bytes) {
    uint64_t batch_bytes = 0, *seen = calloc(run->job_count + 1, sizeof *seen);
    size_t seen_count = 0;
    assert_non_null(seen);
    for (size_t i = 0; i < run->job_count; i++) {
        char name[32];
        snprintf(name, sizeof name, "j%zu", i);
        uint64_t batch = run_batch_telemetry(run, name, "id");
        size_t k = 0;
        while (k < seen_count && seen[k] != batch) k++;
        if (k < seen_count) continue;
        seen[seen_count++] = batch;
        batch_bytes += run_batch_telemetry(run, name, "h2d_bytes");
    }
    free(seen);
    assert_int_equal(cpu_driver_counters().bytes_to_device, batch_bytes + payload_bytes);
}

TEST(jobs_of_all_lanes_that_want_one_cold_payload_move_it_once_and_warm_ones_move_nothing) {
    struct run *run = *state;
    use_many_lanes(run);
    for (int k = 0; k < JOBS; k++) {
        char id[32];
        snprintf(id, sizeof id, "j%d", k);
        add_job(run, id, 1, true);
    }
    run_execute_ok(run);
    uint64_t misses = 0, hits = 0, h2d_bytes = 0, saved = 0;
    for (int k = 0; k < JOBS; k++) {
        char id[32];
        snprintf(id, sizeof id, "j%d", k);
        check_output(run, id, 1);
        misses += run_telemetry(run, id, "static_misses");
        hits += run_telemetry(run, id, "static_hits");
        h2d_bytes += run_telemetry(run, id, "h2d_bytes");
        saved += run_telemetry(run, id, "static_bytes_saved");
    }
    assert_int_equal(misses, 1);
    assert_int_equal(hits, JOBS - 1);
    assert_int_equal(h2d_bytes, 8);
    assert_int_equal(saved, 8 * (JOBS - 1));
    check_moved(run, 16); /* 8, in units of 16 */
    check_no_mistakes();
}

TEST(payloads_keep_their_bytes_while_they_push_each_other_out) {
    struct run *run = *state;
    use_many_lanes(run);
    run->settings.statics.budget_bytes = 32 << 10; /* eight payloads, charged 4 KiB each */
    for (int k = 0; k < JOBS; k++) {
        char id[32];
        snprintf(id, sizeof id, "j%d", k);
        add_job(run, id, k * 7 % 40, true);
    }
    run_execute_ok(run);
    for (int k = 0; k < JOBS; k++) {
        char id[32];
        snprintf(id, sizeof id, "j%d", k);
        check_output(run, id, k * 7 % 40);
    }
    check_no_mistakes();
}

TEST(a_payload_that_is_nowhere_is_the_senders_and_one_that_is_another_is_nobodys) {
    struct run *run = *state;
    add_job(run, "missing", 3, false);
    run_add_job(run, "id: other\nbuffers: {x: {static: \"sha256:"
                     "0000000000000000000000000000000000000000000000000000000000000000\", "
                     "data: {f32: [1]}}, y: {bytes: 4}}\n"
                     "steps: [{program: saxpy, args: [{f32: 1}, x, y, {u32: 1}], elements: 1}]\n"
                     "outputs: []\n");
    run_execute_ok(run);
    run_assert_error(run, "missing", "static_missing");
    run_assert_error(run, "other", "digest_mismatch");
    assert_int_equal(err_retry(ERR_STATIC_MISSING), RETRY_SENDER);
    assert_int_equal(err_retry(ERR_DIGEST_MISMATCH), RETRY_NEVER);
    check_no_mistakes();
}

/* ---- jobs that come after one which brings the payload ---- */

enum { DIGESTS = 300, FOLLOWERS = 20 };

/* For each digest a job that brings it, and jobs behind it that name it. */
static void add_families(struct run *run) {
    for (int n = 0; n < DIGESTS; n++)
        for (int k = 0; k <= FOLLOWERS; k++) {
            char id[32];
            snprintf(id, sizeof id, "d%d-%d", n, k);
            add_job(run, id, n, k == 0);
        }
}

static void check_families(struct run *run) {
    for (int n = 0; n < DIGESTS; n++)
        for (int k = 0; k <= FOLLOWERS; k++) {
            char id[32];
            snprintf(id, sizeof id, "d%d-%d", n, k);
            check_output(run, id, n);
        }
}

TEST(jobs_behind_the_one_that_brings_a_payload_find_it_whichever_is_decoded_first) {
    struct run *run = *state;
    add_families(run);
    run_execute_ok(run);
    check_families(run);
    check_no_mistakes();
}

TEST(they_do_so_in_the_order_of_their_keys) {
    struct run *run = *state;
    run->settings.ordering = ORDERING_KEY;
    static char keys[7][8];
    add_families(run);
    for (size_t i = 0; i < run->job_count; i++) {
        snprintf(keys[i % 7], sizeof keys[0], "key-%zu", i % 7);
        run->places[i].key = keys[i % 7];
    }
    run_execute_ok(run);
    check_families(run);
    check_no_mistakes();
}

TEST(they_wait_for_it_while_its_upload_is_tried_again) {
    struct run *run = *state;
    run_set_text(&run->settings.cpu_driver.faults,
        "cuMemcpyHtoDAsync:launch_out_of_resources@1;cuMemcpyHtoDAsync:launch_out_of_resources@2");
    run->settings.retry.max_attempts = 100;
    run->settings.retry.base_ms = run->settings.retry.max_ms = 20;
    add_job(run, "first", 1, true);
    for (int k = 0; k < FOLLOWERS; k++) {
        char id[32];
        snprintf(id, sizeof id, "j%d", k);
        add_job(run, id, 1, false);
    }
    run_execute_ok(run);
    for (int k = 0; k < FOLLOWERS; k++) {
        char id[32];
        snprintf(id, sizeof id, "j%d", k);
        check_output(run, id, 1);
    }
}

/* The first of them brings other bytes than it says. */
TEST(jobs_behind_one_that_fails_to_bring_a_payload_are_told_and_none_waits_for_ever) {
    struct run *run = *state;
    float payload[FLOATS];
    char digest[DIGEST_TEXT_SIZE], yaml[768];
    payload_of(1, payload, digest);
    for (int k = 0; k < 3; k++) {
        snprintf(yaml, sizeof yaml,
            "id: bad-%d\nbuffers: {x: {static: \"%s\", data: {f32: [9, 9]}}, y: {bytes: 8}}\n"
            "steps: [{program: saxpy, args: [{f32: 1}, x, y, {u32: 2}], elements: 2}]\n"
            "outputs: []\n",
            k, digest);
        run_add_job(run, yaml);
        snprintf(yaml, sizeof yaml, "behind-%d", k);
        add_job(run, yaml, 1, false);
    }
    add_job(run, "good", 1, true);
    run->places[run->job_count - 1].comes_last = true;
    add_job(run, "last", 1, false);
    run_execute_ok(run);
    for (int k = 0; k < 3; k++) {
        char id[32];
        snprintf(id, sizeof id, "bad-%d", k);
        run_assert_error(run, id, "digest_mismatch");
        snprintf(id, sizeof id, "behind-%d", k);
        run_assert_error(run, id, "static_missing");
    }
    check_output(run, "good", 1);
    check_output(run, "last", 1);
}

/* Each job brings the payload that the next one names, and needs that of the one before. */
TEST(jobs_may_wait_for_each_other_in_a_row) {
    struct run *run = *state;
    enum { ROW = 2000 };
    float payload[FLOATS];
    char own[DIGEST_TEXT_SIZE], before[DIGEST_TEXT_SIZE], yaml[1024];
    for (int n = 0; n < ROW; n++) {
        payload_of(n, payload, own);
        payload_of(n > 0 ? n - 1 : 0, payload, before);
        snprintf(yaml, sizeof yaml,
            "id: row-%d\nbuffers: {z: {bytes: 8, static: \"%s\"%s}, y: {bytes: 8},\n"
            "  x: {bytes: 8, static: \"%s\", data: {f32: [%d, %.1f]}}}\n"
            "steps: [{program: saxpy, args: [{f32: 1}, z, y, {u32: 2}], elements: 2}]\n"
            "outputs: [{buffer: y}]\n",
            n, before, n > 0 ? "" : ", data: {f32: [0, 0.5]}", own, n, (double)n + 0.5);
        run_add_job(run, yaml);
    }
    run_execute_ok(run);
    for (int n = 0; n < ROW; n++) {
        char id[32];
        snprintf(id, sizeof id, "row-%d", n);
        check_output(run, id, n > 0 ? n - 1 : 0);
    }
}

static void stop_when_all_are_taken(struct run *run) {
    if (run->broker.next == run->job_count) run->stop = 1;
}

/* The program is one that a rolling upgrade may bring: its job waits to be tried again. */
TEST(a_worker_that_stops_leaves_jobs_together_with_the_one_that_they_wait_for) {
    struct run *run = *state;
    char digest[DIGEST_TEXT_SIZE], yaml[768];
    float payload[FLOATS];
    payload_of(1, payload, digest);
    run->settings.retry.max_attempts = 5;
    run->settings.retry.base_ms = run->settings.retry.max_ms = 3600000;
    snprintf(yaml, sizeof yaml,
        "id: first\nbuffers: {x: {bytes: 8, static: \"%s\", data: {f32: [1, 1.5]}}}\n"
        "steps: [{program: nope, args: [x], elements: 2}]\noutputs: []\n",
        digest);
    run_add_job(run, yaml);
    add_job(run, "behind", 1, false);
    run->stop_after = SIZE_MAX; /* the source has no end */
    run->on_poll = stop_when_all_are_taken;
    assert_int_equal(run_execute(run), ERR_OK);
    assert_int_equal(run_finished_count(run), 0);
}

/* The pool has room for the slab, the large job and half of the payloads. */
TEST(statics_make_room_for_a_job_that_finds_no_memory) {
    struct run *run = *state;
    enum { PAYLOADS = 40, CLASS_BYTES = 256, SLAB_BYTES = 64 << 10, LARGE_BYTES = 128 << 10 };
    run->settings.lanes = 1;
    run->settings.lane_depth = 1;
    run->settings.lane_slab_bytes = SLAB_BYTES;
    run->settings.prepare.threads = 1; /* one after the other: the large job comes last */
    run->settings.pools.device_bytes = SLAB_BYTES + LARGE_BYTES + PAYLOADS / 2 * CLASS_BYTES;
    for (int k = 0; k < PAYLOADS; k++) {
        char id[32];
        snprintf(id, sizeof id, "j%d", k);
        add_job(run, id, k, true);
    }
    float payload[FLOATS];
    char digest[DIGEST_TEXT_SIZE], yaml[768];
    payload_of(PAYLOADS, payload, digest);
    snprintf(yaml, sizeof yaml,
        "id: large\nbuffers: {big: {bytes: 100000, fill: 9}, y: {bytes: 8},\n"
        "  x: {bytes: 8, static: \"%s\", data: {f32: [%d, %.1f]}}}\n"
        "steps: [{program: saxpy, args: [{f32: 1}, x, y, {u32: 2}], elements: 2}]\n"
        "outputs: [{buffer: y}, {buffer: big, offset: 99999, bytes: 1}]\n",
        digest, PAYLOADS, (double)payload[1]);
    run_add_job(run, yaml);
    run_execute_ok(run);
    const uint8_t nine = 9;
    check_output(run, "large", PAYLOADS);
    run_assert_output(run, "large", 1, &nine, 1);
    for (int k = 0; k < PAYLOADS; k++) {
        char id[32];
        snprintf(id, sizeof id, "j%d", k);
        check_output(run, id, k);
    }
    check_no_mistakes();
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        FLOW(jobs_of_all_lanes_that_want_one_cold_payload_move_it_once_and_warm_ones_move_nothing),
        FLOW(payloads_keep_their_bytes_while_they_push_each_other_out),
        FLOW(a_payload_that_is_nowhere_is_the_senders_and_one_that_is_another_is_nobodys),
        FLOW(jobs_behind_the_one_that_brings_a_payload_find_it_whichever_is_decoded_first),
        FLOW(they_do_so_in_the_order_of_their_keys),
        FLOW(they_wait_for_it_while_its_upload_is_tried_again),
        FLOW(jobs_behind_one_that_fails_to_bring_a_payload_are_told_and_none_waits_for_ever),
        FLOW(jobs_may_wait_for_each_other_in_a_row),
        FLOW(a_worker_that_stops_leaves_jobs_together_with_the_one_that_they_wait_for),
        FLOW(statics_make_room_for_a_job_that_finds_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
