/* Proves: buffers of no bytes; no memory back before its fence; bound threads; the order within
 * a job; clears and fills on the device; repeat; no job sees bytes of another; iterations; timed
 * jobs; learned durations; statics are found by their digest; one upload for each static;
 * statics that are missing or wrong. */
#include <stdlib.h>

#include "cpu_driver/cpu_driver.h"
#include "support/device_checks.h"
#include "support/run.h"
#include "testing.h"

TEST(executor_answers_every_job_with_its_own_outputs) {
    struct run *run = *state;
    for (int k = 0; k < 500; k++) run_add_saxpy(run, k);
    run_execute_ok(run);
    assert_int_equal(run->summary.ok, 500);
    for (int k = 0; k < 500; k++) {
        char id[32];
        const float expected[] = {2 * (float)k + 1, 3};
        snprintf(id, sizeof id, "job-%d", k);
        run_assert_output(run, id, 0, expected, sizeof expected);
    }
}

TEST(executor_runs_batches_as_it_runs_single_jobs) {
    struct run *run = *state;
    run_gather(run);
    run->settings.batch.jobs = 16;
    for (int k = 0; k < 500; k++) run_add_saxpy(run, k);
    run_execute_ok(run);
    uint64_t largest = 0;
    for (int k = 0; k < 500; k++) {
        char id[32];
        const float expected[] = {2 * (float)k + 1, 3};
        snprintf(id, sizeof id, "job-%d", k);
        run_assert_output(run, id, 0, expected, sizeof expected);
        msgpack_unpacked unpacked;
        msgpack_object result = run_unpack_result(run, id, &unpacked);
        const msgpack_object *batch = msgpack_get(msgpack_get(&result, "telemetry"), "batch");
        uint64_t jobs = msgpack_get(batch, "jobs")->via.u64;
        assert_int_equal(msgpack_get(batch, "sync_points")->via.u64, 1);
        assert_int_equal(msgpack_get(batch, "copies")->via.u64, 2);
        if (jobs > largest) largest = jobs;
        msgpack_unpacked_destroy(&unpacked);
    }
    assert_true(largest > 1 && largest <= 16);
}

TEST(executor_coalesces_launches_of_one_shape_and_never_those_of_timed_jobs) {
    struct run *run = *state;
    run_gather(run);
    for (int k = 0; k < 300; k++) run_add_saxpy(run, k);
    for (int k = 0; k < 100; k++) {
        char yaml[512];
        snprintf(yaml, sizeof yaml,
            "id: timed-%d\ntiming: true\nbuffers: {x: {data: {f32: [%d]}}, y: {bytes: 4}}\n"
            "steps: [{program: saxpy, args: [{f32: 2}, x, y, {u32: 1}], elements: 1}]\n"
            "outputs: [{buffer: y}]\n",
            k, k);
        run_add_job(run, yaml);
    }
    run_execute_ok(run);
    uint64_t coalesced = 0;
    for (int k = 0; k < 300; k++) {
        char id[32];
        const float expected[] = {2 * (float)k + 1, 3};
        snprintf(id, sizeof id, "job-%d", k);
        run_assert_output(run, id, 0, expected, sizeof expected);
        coalesced += run_batch_telemetry(run, id, "coalesced_launches");
    }
    assert_true(coalesced > 0);
    for (int k = 0; k < 100; k++) {
        char id[32];
        const float expected[] = {2 * (float)k};
        snprintf(id, sizeof id, "timed-%d", k);
        run_assert_output(run, id, 0, expected, sizeof expected);
        /* its own launch is one of those that were not shared */
        assert_true(run_batch_telemetry(run, id, "launches") >
                    run_batch_telemetry(run, id, "coalesced_launches"));
    }
}

TEST(executor_never_lets_a_quick_job_share_a_batch_with_a_slow_one) {
    struct run *run = *state;
    run->settings.lanes = 1;
    run->settings.batch.span_ms = 15;
    for (int k = 0; k < 12; k++) {
        char yaml[512];
        /* On the CPU these launches take far longer than the span, whatever the machine. */
        snprintf(yaml, sizeof yaml,
            "id: slow-%d\nrepeat: 100\nbuffers: {x: {bytes: 400000}, y: {bytes: 400000}}\n"
            "steps: [{program: saxpy, args: [{f32: 2}, x, y, {u32: 100000}], elements: 100000}]\n"
            "outputs: []\n",
            k);
        run_add_job(run, yaml);
        for (int q = 0; q < 40; q++) run_add_saxpy(run, k * 40 + q);
    }
    run_execute_ok(run);
    uint64_t slow_batches[12], largest = 0;
    for (int k = 0; k < 12; k++) {
        char id[32];
        snprintf(id, sizeof id, "slow-%d", k);
        slow_batches[k] = run_batch_telemetry(run, id, "id");
    }
    for (int k = 0; k < 12 * 40; k++) {
        char id[32];
        snprintf(id, sizeof id, "job-%d", k);
        uint64_t jobs = run_batch_telemetry(run, id, "jobs");
        if (jobs > largest) largest = jobs;
        for (int slow = 0; slow < 12; slow++)
            assert_int_not_equal(run_batch_telemetry(run, id, "id"), slow_batches[slow]);
    }
    assert_true(largest > 1);
}

/* The most jobs of one key that shared a batch: all that have passed wait for the lane together. */
static uint64_t most_of_a_key(struct run *run, uint32_t jobs_per_key) {
    enum { JOBS = 300 };
    uint64_t most = 0;
    run->settings.lanes = 1;
    run->settings.limits.jobs_in_flight = 64;
    run->settings.limits.jobs_per_key = jobs_per_key;
    for (int k = 0; k < JOBS; k++) {
        char yaml[256];
        snprintf(yaml, sizeof yaml,
            "id: job-%d\nbuffers: {x: {bytes: 8}}\n"
            "steps: [{program: saxpy, args: [{f32: 2}, x, x, {u32: 2}], elements: 2}]\n"
            "outputs: [{buffer: x}]\n",
            k);
        run_add_keyed(run, "key", yaml);
    }
    run_execute_ok(run);
    for (int k = 0; k < JOBS; k++) {
        char id[32];
        snprintf(id, sizeof id, "job-%d", k);
        uint64_t jobs = run_batch_telemetry(run, id, "jobs");
        if (jobs > most) most = jobs;
    }
    return most;
}

TEST(executor_runs_as_many_jobs_of_a_key_at_a_time_as_the_limit_says) {
    assert_in_range(most_of_a_key(*state, 2), 1, 2);
}

TEST(executor_gives_a_key_a_quarter_of_the_jobs_in_flight_by_default) {
    assert_in_range(most_of_a_key(*state, 0), 2, 16);
}

/* A launch takes so long whatever it does, as that of one block on a device with many: the jobs of
 * one signature share launches. */
static void assert_slow_jobs_share_launches(struct run *run, uint32_t lanes) {
    enum { JOBS = 400 };
    run->settings.lanes = lanes;
    run_set_text(&run->settings.cpu_driver.faults, "cuLaunchKernel:slow=100ms@*");
    for (int k = 0; k < JOBS; k++) run_add_saxpy(run, k);
    run_execute_ok(run);
    assert_int_equal(run->summary.ok, JOBS);
    /* far fewer than jobs, however busy the machine that they are measured on */
    assert_in_range(cpu_driver_counters().calls[CPU_launch], 2, JOBS / 2);
}

TEST(executor_lets_slow_jobs_of_one_signature_share_launches) {
    assert_slow_jobs_share_launches(*state, 1);
}

TEST(executor_lets_slow_jobs_share_launches_however_many_lanes_there_are) {
    assert_slow_jobs_share_launches(*state, 8);
}

TEST(executor_fences_a_sequence_once_and_goes_from_step_to_step_on_the_device) {
    struct run *run = *state;
    /* fills and clears, then writes, then steps in order, then ranges; y = 2x + y, x = 3y + x */
    run_add_job(run, "id: seq\nbuffers:\n  x: {bytes: 16, fill: 0, writes: [{offset: 0, data: "
                     "{f32: [1, 2, 3, 4]}}]}\n"
                     "  y: {bytes: 16, writes: [{offset: 8, data: {f32: [10, 20]}}]}\n"
                     "steps:\n  - {program: saxpy, args: [{f32: 2}, x, y, {u32: 4}], elements: 4}\n"
                     "  - {program: saxpy, args: [{f32: 3}, y, x, {u32: 4}], elements: 4}\n"
                     "outputs: [{buffer: x}, {buffer: y, offset: 4, bytes: 8}]\n");
    run_execute_ok(run);
    const float x[] = {7, 14, 51, 88}, y[] = {4, 16};
    run_assert_output(run, "seq", 0, x, sizeof x);
    run_assert_output(run, "seq", 1, y, sizeof y);
    assert_int_equal(run_batch_telemetry(run, "seq", "sync_points"), 1);
    assert_int_equal(run_batch_telemetry(run, "seq", "launches"), 2);
}

/* saxpy and reduce_sum jobs of two keys, in turn; both have one shape each, so nothing else parts
 * them. */
static void add_tenants(struct run *run) {
    for (int k = 0; k < 400; k++) {
        char yaml[512];
        const char *step = k % 2 == 0
                               ? "{program: saxpy, args: [{f32: 2}, x, y, {u32: 1}], elements: 1}"
                               : "{program: reduce_sum, args: [x, y, {u32: 1}], elements: 1}";
        snprintf(yaml, sizeof yaml,
            "id: job-%d\nbuffers: {x: {data: {f32: [1]}}, y: {bytes: 4}}\nsteps: [%s]\n"
            "outputs: [{buffer: y}]\n",
            k, step);
        run_add_keyed(run, k % 4 < 2 ? "one" : "other", yaml);
    }
}

/* Whether two jobs ever travelled in one batch, whose numbers modulo 4 are these: of one program
 * where both are even or both odd, of one key where both are below 2 or both above. */
static bool shared_a_batch(struct run *run, int a, int b) {
    uint64_t batches[400];
    for (int k = 0; k < 400; k++) {
        char id[32];
        snprintf(id, sizeof id, "job-%d", k);
        batches[k] = run_batch_telemetry(run, id, "id");
    }
    for (int i = a; i < 400; i += 4)
        for (int k = b; k < 400; k += 4)
            if (i != k && batches[i] == batches[k]) return true;
    return false;
}

TEST(executor_shares_slabs_between_all_jobs_without_isolation) {
    struct run *run = *state;
    run_gather(run);
    run->settings.batch.jobs = 64;
    add_tenants(run);
    run_execute_ok(run);
    assert_true(shared_a_batch(run, 0, 1));
    assert_true(shared_a_batch(run, 0, 2));
}

TEST(executor_keeps_programs_apart_where_they_are_isolated) {
    struct run *run = *state;
    run_gather(run);
    run->settings.batch.jobs = 64;
    run->settings.batch.isolation = ISOLATE_PROGRAM;
    add_tenants(run);
    run_execute_ok(run);
    assert_true(shared_a_batch(run, 0, 2));
    assert_false(shared_a_batch(run, 0, 1)); /* of two programs */
}

TEST(executor_keeps_keys_apart_where_they_are_isolated) {
    struct run *run = *state;
    run_gather(run);
    run->settings.batch.jobs = 64;
    run->settings.batch.isolation = ISOLATE_KEY;
    add_tenants(run);
    run_execute_ok(run);
    assert_true(shared_a_batch(run, 0, 0));
    assert_true(shared_a_batch(run, 0, 1));
    assert_false(shared_a_batch(run, 0, 2)); /* of two keys */
    assert_false(shared_a_batch(run, 1, 2));
}

TEST(executor_clears_what_a_job_did_not_send) {
    struct run *run = *state;
    for (int i = 0; i < 20; i++) {
        char yaml[512];
        snprintf(yaml, sizeof yaml,
            "id: c%d\nbuffers: {x: {bytes: 1000}, y: {bytes: 1000}, z: {bytes: 1000, fill: 7}}\n"
            "steps: [{program: saxpy, args: [{f32: 2}, x, y, {u32: 250}], elements: 250}]\n"
            "outputs: [{buffer: y}, {buffer: z}, {buffer: x}]\n",
            i);
        run_add_job(run, yaml);
        run_add_saxpy(run, i);
    }
    run_execute_ok(run);
    uint8_t zeros[1000] = {0}, sevens[1000];
    memset(sevens, 7, sizeof sevens);
    for (int i = 0; i < 20; i++) {
        char id[32];
        snprintf(id, sizeof id, "c%d", i);
        run_assert_output(run, id, 0, zeros, sizeof zeros);
        run_assert_output(run, id, 1, sevens, sizeof sevens);
        run_assert_output(run, id, 2, zeros, sizeof zeros);
        assert_int_equal(run_telemetry(run, id, "h2d_bytes"), 0);
    }
}

TEST(executor_applies_writes_over_data_and_over_fills_in_order) {
    struct run *run = *state;
    run_add_job(run,
        "id: w\nbuffers:\n"
        "  a: {data: {u8: [1, 2, 3, 4]}, writes: [{offset: 1, data: {u8: [9, 9]}}, "
        "{offset: 2, data: {u8: [8]}}]}\n"
        "  b: {bytes: 4, fill: 5, writes: [{offset: 0, data: {u8: [1, 1]}}, "
        "{offset: 1, data: {u8: [2]}}]}\n"
        "  x: {bytes: 4}\n  y: {bytes: 4}\n"
        "steps: [{program: saxpy, args: [{f32: 2}, x, y, {u32: 1}], elements: 1}]\n"
        "outputs: [{buffer: a}, {buffer: b}, {buffer: b, offset: 1, bytes: 2, as: part}]\n");
    run_execute_ok(run);
    const uint8_t a[] = {1, 9, 8, 4}, b[] = {1, 2, 5, 5}, part[] = {2, 5};
    run_assert_output(run, "w", 0, a, sizeof a);
    run_assert_output(run, "w", 1, b, sizeof b);
    run_assert_output(run, "w", 2, part, sizeof part);
}

TEST(executor_reads_ranges_of_large_buffers_and_empty_ones) {
    struct run *run = *state;
    run_add_job(run,
        "id: r\nbuffers: {x: {bytes: 400000, writes: [{offset: 399996, data: {f32: [21]}}]},"
        " y: {bytes: 400000}, e: {bytes: 0}}\n"
        "steps: [{program: saxpy, args: [{f32: 2}, x, y, {u32: 100000}], elements: 100000}]\n"
        "outputs: [{buffer: y, offset: 399996}, {buffer: e}, "
        "{buffer: x, offset: 399992, bytes: 8, as: xs}]\n");
    run_execute_ok(run);
    const float y[] = {42}, x[] = {0, 21};
    run_assert_output(run, "r", 0, y, sizeof y);
    run_assert_output(run, "r", 1, NULL, 0);
    run_assert_output(run, "r", 2, x, sizeof x);
}

TEST(executor_repeats_steps_after_one_set_of_uploads) {
    struct run *run = *state;
    run_add_job(run, "id: n\nrepeat: 3\nbuffers: {x: {data: {f32: [1]}}, y: {data: {f32: [0]}}}\n"
                     "steps: [{program: saxpy, args: [{f32: 1}, x, y, {u32: 1}], elements: 1, "
                     "iterations: 5}]\noutputs: [{buffer: y}]\ntiming: true\n");
    run_execute_ok(run);
    const float expected[] = {15};
    run_assert_output(run, "n", 0, expected, sizeof expected);
    assert_int_equal(run_telemetry(run, "n", "kernel_launches"), 15);
    assert_int_equal(run_telemetry(run, "n", "h2d_bytes"), 8);
    (void)run_telemetry(run, "n", "device_ns");
}

TEST(executor_uploads_a_static_once_for_all_jobs) {
    struct run *run = *state;
    const float payload[] = {5, 6};
    char digest[DIGEST_TEXT_SIZE];
    struct digest d = digest_of(slice_of(payload, sizeof payload));
    digest_format(&d, digest);
    for (int i = 0; i < 200; i++) {
        char yaml[768];
        snprintf(yaml, sizeof yaml,
            "id: s%d\nbuffers: {x: {static: \"%s\", data: {f32: [5, 6]}}, y: {bytes: 8}}\n"
            "steps: [{program: saxpy, args: [{f32: 1}, x, y, {u32: 2}], elements: 2}]\n"
            "outputs: [{buffer: y}]\n",
            i, digest);
        run_add_job(run, yaml);
    }
    run_execute_ok(run);
    uint64_t misses = 0;
    for (int i = 0; i < 200; i++) {
        char id[32];
        snprintf(id, sizeof id, "s%d", i);
        run_assert_output(run, id, 0, payload, sizeof payload);
        misses += run_telemetry(run, id, "static_misses");
    }
    assert_int_equal(misses, 1);
}

TEST(executor_names_a_static_that_is_nowhere) {
    struct run *run = *state;
    run_add_job(run, "id: s\nbuffers: {x: {bytes: 4, static: \"sha256:"
                     "0000000000000000000000000000000000000000000000000000000000000000\"}, "
                     "y: {bytes: 4}}\n"
                     "steps: [{program: saxpy, args: [{f32: 1}, x, y, {u32: 1}], elements: 1}]\n"
                     "outputs: []\n");
    run_execute_ok(run);
    run_assert_error(run, "s", "static_missing");
}

TEST(executor_refuses_data_with_another_digest) {
    struct run *run = *state;
    run_add_job(run, "id: s\nbuffers: {x: {static: \"sha256:"
                     "0000000000000000000000000000000000000000000000000000000000000000\", "
                     "data: {f32: [1]}}, y: {bytes: 4}}\n"
                     "steps: [{program: saxpy, args: [{f32: 1}, x, y, {u32: 1}], elements: 1}]\n"
                     "outputs: []\n");
    run_execute_ok(run);
    run_assert_error(run, "s", "digest_mismatch");
}

/* In seconds, or from now on: a person reads what is wrong. */
TEST(a_deadline_that_counts_no_milliseconds_since_1970_is_named) {
    struct run *run = *state;
    run_add_job(run, "id: late\ndeadline_ms: 1794009281\n"
                     "buffers: {x: {bytes: 4}, y: {bytes: 4}}\n"
                     "steps: [{program: saxpy, args: [{f32: 1}, x, y, {u32: 1}], elements: 1}]\n"
                     "outputs: []\n");
    run_execute_ok(run);
    run_assert_error(run, "late", "deadline_exceeded");
    const struct memory_message *letter = memory_find(&run->broker, ROUTE_DEAD_LETTER, "late");
    const char *message = memory_header(letter, "dlq.error.message");
    assert_non_null(strstr(message, "deadline_ms 1794009281 is in 1970"));
    assert_non_null(strstr(message, "milliseconds"));
}

TEST(executor_answers_failures_beside_good_jobs) {
    struct run *run = *state;
    run_add_saxpy(run, 1);
    run_add_job(run, "id: unknown\nbuffers: {}\nsteps: [{program: nope, args: [], grid: [1]}]\n"
                     "outputs: []\n");
    run_add_job(run, "id: late\ndeadline_ms: 1\nbuffers: {x: {bytes: 4}, y: {bytes: 4}}\n"
                     "steps: [{program: saxpy, args: [{f32: 1}, x, y, {u32: 1}], elements: 1}]\n"
                     "outputs: []\n");
    run_add_job(run, "id: elsewhere\nreply_to: other\nbuffers: {x: {bytes: 4}, y: {bytes: 4}}\n"
                     "steps: [{program: saxpy, args: [{f32: 1}, x, y, {u32: 1}], elements: 1}]\n"
                     "outputs: []\n");
    run_add_bytes(run, "\xdf\xff\xff\xff\xff", 5);
    run_add_saxpy(run, 2);
    run_execute_ok(run);
    assert_int_equal(run->summary.ok, 2);
    assert_int_equal(run->summary.errors, 4);
    run_assert_error(run, "unknown", "unknown_program");
    run_assert_error(run, "late", "deadline_exceeded");
    run_assert_error(run, "elsewhere", "reply_to_forbidden");
    assert_null(memory_find(&run->broker, ROUTE_RESULT, "elsewhere")->topic);
    assert_int_equal(memory_count(&run->broker, ROUTE_RESULT), 5);
    assert_int_equal(memory_count(&run->broker, ROUTE_DEAD_LETTER), 4);
}

TEST(executor_replies_to_a_topic_that_is_listed) {
    struct run *run = *state;
    free(run->settings.topics.reply_to.items);
    run->settings.topics.reply_to.items = calloc(1, sizeof(char *));
    run->settings.topics.reply_to.items[0] = strdup("other");
    run->settings.topics.reply_to.count = 1;
    run_add_job(run, "id: elsewhere\nreply_to: other\nbuffers: {x: {bytes: 4}, y: {bytes: 4}}\n"
                     "steps: [{program: saxpy, args: [{f32: 1}, x, y, {u32: 1}], elements: 1}]\n"
                     "outputs: []\n");
    run_execute_ok(run);
    assert_string_equal(memory_find(&run->broker, ROUTE_RESULT, "elsewhere")->topic, "other");
}

TEST(executor_holds_no_more_than_the_limit_in_flight) {
    struct run *run = *state;
    run->settings.limits.jobs_in_flight = 8;
    for (int k = 0; k < 300; k++) run_add_saxpy(run, k);
    run_execute_ok(run);
    assert_int_equal(run->summary.ok, 300);
    assert_true(run->broker.open_max <= 8);
}

TEST(executor_replaces_a_refused_result_by_an_error_and_a_dead_letter) {
    struct run *run = *state;
    run->broker.refuse_over_bytes = 3000;
    run_add_job(run, "id: big\nbuffers: {x: {bytes: 4000}, y: {bytes: 4000}}\n"
                     "steps: [{program: saxpy, args: [{f32: 1}, x, y, {u32: 1}], elements: 1}]\n"
                     "outputs: [{buffer: y}]\n");
    run_execute_ok(run);
    run_assert_error(run, "big", "publish_refused");
}

TEST(executor_stops_without_finishing_when_nothing_can_be_published) {
    struct run *run = *state;
    run->broker.refuse_errors = true;
    run_add_saxpy(run, 1);
    assert_int_equal(run_execute(run), ERR_PUBLISH_REFUSED);
    assert_int_equal(run->broker.finished[0], 0);
}

TEST(executor_drops_answers_to_messages_that_others_answer_by_now) {
    struct run *run = *state;
    run->broker.revoke_from = 30;
    for (int k = 0; k < 49; k++) run_add_saxpy(run, k);
    run_add_job(run, "id: broken\nbuffers: {}\nsteps: [{program: nope, args: [], grid: [1]}]\n"
                     "outputs: []\n");
    assert_int_equal(run_execute(run), ERR_OK);
    assert_int_equal(run->summary.ok, 30);
    assert_int_equal(run->summary.errors, 0);
    assert_int_equal(memory_count(&run->broker, ROUTE_RESULT), 30);
    for (int k = 0; k < 50; k++) assert_int_equal(run->broker.finished[k], k < 30);
}

TEST(executor_that_loses_the_gpu_blames_no_job) {
    struct run *run = *state;
    run_set_text(&run->settings.cpu_driver.faults, "cuLaunchKernel:illegal_address@2");
    for (int k = 0; k < 100; k++) run_add_saxpy(run, k);
    assert_int_equal(run_execute(run), ERR_GPU_ILLEGAL_ADDRESS);
    assert_int_equal(memory_count(&run->broker, ROUTE_DEAD_LETTER), 0);
    for (size_t i = 0; i < run->broker.message_count; i++)
        assert_string_equal(memory_header(&run->broker.messages[i], "gpu-worker-status"), "ok");
    assert_true(run->broker.finished_count < 100);
    /* The device may still be writing: what its work names is left to the end of the process. */
    struct cpu_driver_counters counters = cpu_driver_counters();
    assert_int_equal(counters.calls[CPU_memory_free], 0);
}

TEST(executor_answers_jobs_whose_launch_is_refused_and_goes_on) {
    struct run *run = *state;
    run->settings.retry.max_attempts = 1;
    run->settings.batch.jobs = 1;
    run_set_text(&run->settings.cpu_driver.faults, "cuLaunchKernel:launch_out_of_resources@3");
    for (int k = 0; k < 20; k++) run_add_saxpy(run, k);
    run_execute_ok(run);
    assert_int_equal(run->summary.ok, 19);
    assert_int_equal(run->summary.errors, 1);
}

TEST(executor_leaves_nothing_on_the_device) {
    struct run *run = *state;
    for (int k = 0; k < 50; k++) run_add_saxpy(run, k);
    run_execute_ok(run);
    device_assert_nothing_left();
    assert_int_equal(cpu_driver_counters().copies_pageable, 0);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        FLOW(executor_answers_every_job_with_its_own_outputs),
        FLOW(executor_runs_batches_as_it_runs_single_jobs),
        FLOW(executor_coalesces_launches_of_one_shape_and_never_those_of_timed_jobs),
        FLOW(executor_never_lets_a_quick_job_share_a_batch_with_a_slow_one),
        FLOW(executor_runs_as_many_jobs_of_a_key_at_a_time_as_the_limit_says),
        FLOW(executor_gives_a_key_a_quarter_of_the_jobs_in_flight_by_default),
        FLOW(executor_lets_slow_jobs_of_one_signature_share_launches),
        FLOW(executor_lets_slow_jobs_share_launches_however_many_lanes_there_are),
        FLOW(executor_fences_a_sequence_once_and_goes_from_step_to_step_on_the_device),
        FLOW(executor_shares_slabs_between_all_jobs_without_isolation),
        FLOW(executor_keeps_programs_apart_where_they_are_isolated),
        FLOW(executor_keeps_keys_apart_where_they_are_isolated),
        FLOW(executor_clears_what_a_job_did_not_send),
        FLOW(executor_applies_writes_over_data_and_over_fills_in_order),
        FLOW(executor_reads_ranges_of_large_buffers_and_empty_ones),
        FLOW(executor_repeats_steps_after_one_set_of_uploads),
        FLOW(executor_uploads_a_static_once_for_all_jobs),
        FLOW(executor_names_a_static_that_is_nowhere),
        FLOW(executor_refuses_data_with_another_digest),
        FLOW(a_deadline_that_counts_no_milliseconds_since_1970_is_named),
        FLOW(executor_answers_failures_beside_good_jobs),
        FLOW(executor_replies_to_a_topic_that_is_listed),
        FLOW(executor_holds_no_more_than_the_limit_in_flight),
        FLOW(executor_replaces_a_refused_result_by_an_error_and_a_dead_letter),
        FLOW(executor_stops_without_finishing_when_nothing_can_be_published),
        FLOW(executor_drops_answers_to_messages_that_others_answer_by_now),
        FLOW(executor_that_loses_the_gpu_blames_no_job),
        FLOW(executor_answers_jobs_whose_launch_is_refused_and_goes_on),
        FLOW(executor_leaves_nothing_on_the_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
