#include <stdlib.h>

#include "base/clock.h"
#include "cpu_driver/cpu_driver.h"
#include "support/device_checks.h"
#include "support/run.h"
#include "testing.h"

enum { FOR_EVER_MS = 3600000 }; /* longer than any test: who waits so long never comes back */

static int set_up(void **state) {
    int code = run_set_up(state);
    struct run *run = *state;
    run->settings.batch.jobs = 1;          /* a launch is a job */
    run->settings.ordering = ORDERING_KEY; /* the first of them is the first that came */
    run->settings.retry.max_attempts = 3;
    run->settings.retry.base_ms = 1;
    run->settings.retry.max_ms = 2;
    return code;
}

static void inject(struct run *run, const char *faults) {
    run_set_text(&run->settings.cpu_driver.faults, faults);
}

static uint64_t attempts_of(struct run *run, const char *id) {
    msgpack_unpacked unpacked;
    msgpack_object result = run_unpack_result(run, id, &unpacked);
    const msgpack_object *error = msgpack_get(&result, "error");
    assert_non_null(error);
    uint64_t attempts = msgpack_get(error, "attempts")->via.u64;
    msgpack_unpacked_destroy(&unpacked);
    return attempts;
}

static const char *dead_letter_header(struct run *run, const char *id, const char *name) {
    const struct memory_message *letter = memory_find(&run->broker, ROUTE_DEAD_LETTER, id);
    assert_non_null(letter);
    return memory_header(letter, name);
}

/* The two floats of job-k, as run_add_saxpy() makes it. */
static void assert_saxpy(struct run *run, int k) {
    char id[32];
    const float expected[] = {2 * (float)k + 1, 3};
    snprintf(id, sizeof id, "job-%d", k);
    run_assert_output(run, id, 0, expected, sizeof expected);
}

TEST(a_job_that_fails_once_is_tried_again_and_answered_once) {
    struct run *run = *state;
    inject(run, "cuLaunchKernel:launch_out_of_resources@3");
    for (int k = 0; k < 20; k++) run_add_saxpy(run, k);
    run_execute_ok(run);
    assert_int_equal(cpu_driver_counters().faults, 1);
    assert_int_equal(run->summary.ok, 20);
    assert_int_equal(memory_count(&run->broker, ROUTE_RESULT), 20);
    assert_int_equal(memory_count(&run->broker, ROUTE_DEAD_LETTER), 0);
    for (int k = 0; k < 20; k++) assert_saxpy(run, k);
}

TEST(the_last_failure_is_the_answer_and_says_how_often_it_was_tried) {
    struct run *run = *state;
    inject(run, "cuLaunchKernel:launch_out_of_resources@*");
    run_add_saxpy(run, 1);
    run_execute_ok(run);
    run_assert_error(run, "job-1", "driver_error");
    assert_int_equal(attempts_of(run, "job-1"), 3);
    assert_string_equal(dead_letter_header(run, "job-1", "dlq.attempts"), "3");
    assert_int_equal(cpu_driver_counters().calls[CPU_launch], 3);
}

TEST(what_no_worker_can_mend_is_tried_once) {
    struct run *run = *state;
    run_add_job(run, "id: never\nbuffers: {}\nsteps: [{program: saxpy, entry: nope, args: [], "
                     "grid: [1]}]\noutputs: []\n");
    run_add_job(run, "id: sender\nbuffers: {x: {bytes: 4, static: \"sha256:"
                     "0000000000000000000000000000000000000000000000000000000000000000\"}, "
                     "y: {bytes: 4}}\n"
                     "steps: [{program: saxpy, args: [{f32: 1}, x, y, {u32: 1}], elements: 1}]\n"
                     "outputs: []\n");
    run_execute_ok(run);
    run_assert_error(run, "never", "unknown_entry");
    run_assert_error(run, "sender", "static_missing");
    assert_int_equal(attempts_of(run, "never"), 1);
    assert_int_equal(attempts_of(run, "sender"), 1);
}

TEST(a_job_that_was_not_even_planned_is_tried_again_too) {
    struct run *run = *state;
    run_add_job(run, "id: new\nbuffers: {}\nsteps: [{program: nope, args: [], grid: [1]}]\n"
                     "outputs: []\n");
    run_execute_ok(run);
    run_assert_error(run, "new", "unknown_program");
    assert_int_equal(attempts_of(run, "new"), 3);
}

TEST(a_job_that_can_never_fit_is_refused_at_once) {
    struct run *run = *state;
    run->settings.cpu_driver.memory_bytes = 64 << 20;
    run->settings.lane_slab_bytes = 1 << 20;
    run_add_job(run, "id: giant\nbuffers: {x: {bytes: 100000000}, y: {bytes: 100000000}}\n"
                     "steps: [{program: saxpy, args: [{f32: 1}, x, y, {u32: 1}], elements: 1}]\n"
                     "outputs: []\n");
    run_execute_ok(run);
    assert_int_equal(attempts_of(run, "giant"), 1);
}

TEST(the_statics_of_a_retried_job_are_counted_once) {
    struct run *run = *state;
    const float payload[] = {5, 6};
    char yaml[768], digest[DIGEST_TEXT_SIZE];
    struct digest d = digest_of(slice_of(payload, sizeof payload));
    snprintf(yaml, sizeof yaml,
        "id: s\nbuffers: {x: {static: \"%s\", data: {f32: [5, 6]}}, y: {bytes: 8}}\n"
        "steps: [{program: saxpy, args: [{f32: 1}, x, y, {u32: 2}], elements: 2}]\n"
        "outputs: [{buffer: y}]\n",
        digest_format(&d, digest));
    inject(run, "cuLaunchKernel:launch_out_of_resources@1");
    run_add_job(run, yaml);
    run_execute_ok(run);
    run_assert_output(run, "s", 0, payload, sizeof payload);
    assert_int_equal(run_telemetry(run, "s", "static_hits"), 1);
    assert_int_equal(run_telemetry(run, "s", "static_misses"), 0);
    device_assert_nothing_left();
}

TEST(a_waiting_job_holds_up_no_other_and_is_handed_back_when_the_worker_stops) {
    struct run *run = *state;
    run->settings.lanes = 1;
    run->settings.retry.base_ms = run->settings.retry.max_ms = FOR_EVER_MS;
    inject(run, "cuLaunchKernel:launch_out_of_resources@1");
    for (int k = 0; k < 50; k++) run_add_saxpy(run, k);
    run->stop_after = 49;
    assert_int_equal(run_execute(run), ERR_OK);
    assert_int_equal(run->summary.ok, 49);
    assert_int_equal(run->summary.errors, 0);
    assert_false(run->summary.is_complete);
    assert_int_equal(run->broker.finished[0], 0); /* not committed: it comes again */
    for (int k = 1; k < 50; k++) assert_saxpy(run, k);
}

TEST(what_is_handed_back_is_not_overtaken_by_later_jobs_of_its_key) {
    struct run *run = *state;
    run->settings.lanes = 1;
    run->settings.ordering = ORDERING_KEY;
    run->settings.retry.base_ms = run->settings.retry.max_ms = FOR_EVER_MS;
    inject(run, "cuLaunchKernel:launch_out_of_resources@1");
    for (int k = 0; k < 20; k++) {
        run_add_saxpy(run, k);
        run->places[k].key = k % 2 == 0 ? "stuck" : "free";
    }
    run->stop_after = 10;
    assert_int_equal(run_execute(run), ERR_OK);
    for (int k = 0; k < 20; k++) assert_int_equal(run->broker.finished[k], k % 2);
}

TEST(what_waits_is_handed_back_when_its_partition_is_revoked) {
    struct run *run = *state;
    run->settings.lanes = 1;
    run->settings.ordering = ORDERING_KEY;
    run->settings.retry.base_ms = run->settings.retry.max_ms = FOR_EVER_MS;
    inject(run, "cuLaunchKernel:launch_out_of_resources@1");
    for (int k = 0; k < 4; k++) {
        run_add_saxpy(run, k);
        run->places[k].key = "key";
        run->places[k].partition = k == 2 ? 0 : 1;
    }
    /* With one lane job-0, which failed, waits once job-2, of the other partition, is finished. */
    run->places[3].comes_revoked = true;
    run->places[3].comes_after = 1;
    assert_int_equal(run_execute(run), ERR_OK);
    for (int k = 0; k < 4; k++) assert_int_equal(run->broker.finished[k], k >= 2);
}

/* Results stand in the order in which they were published. */
static void assert_order_of_keys(struct run *run, int keys) {
    int next[16] = {0};
    for (size_t i = 0; i < run->broker.message_count; i++) {
        const struct memory_message *message = &run->broker.messages[i];
        if (message->route != ROUTE_RESULT) continue;
        int k = atoi(memory_header(message, "gpu-worker-job-id") + strlen("job-"));
        assert_int_equal(k / keys, next[k % keys]++);
    }
}

TEST(no_later_job_of_a_key_overtakes_one_that_is_tried_again) {
    enum { KEYS = 7, JOBS = 40 * KEYS };
    static const char *const keys[KEYS] = {"a", "b", "c", "d", "e", "f", "g"};
    struct run *run = *state;
    run->settings.ordering = ORDERING_KEY;
    run->settings.batch.jobs = 8;
    run->settings.batch.span_ms = 600000;
    run->settings.retry.max_attempts = 1000;
    inject(run, "seed=7;cuLaunchKernel:launch_out_of_resources@p0.3;"
                "cuMemcpyDtoHAsync:invalid_value@p0.05");
    for (int k = 0; k < JOBS; k++) {
        run_add_saxpy(run, k);
        run->places[k].key = keys[k % KEYS];
    }
    run_execute_ok(run);
    assert_true(cpu_driver_counters().faults > 20);
    assert_int_equal(run->summary.ok, JOBS);
    assert_order_of_keys(run, KEYS);
    for (int k = 0; k < JOBS; k++) assert_saxpy(run, k);
}

TEST(a_job_that_failed_runs_alone_from_then_on) {
    enum { JOBS = 300 };
    struct run *run = *state;
    run_gather(run);
    run->settings.batch.jobs = 16;
    run->settings.retry.max_attempts = 2;
    /* the first batch takes long, while the others get ready */
    inject(run, "cuMemcpyHtoDAsync:slow=1s@1;cuLaunchKernel:launch_out_of_resources@*");
    for (int k = 0; k < JOBS; k++) run_add_saxpy(run, k);
    run_execute_ok(run);
    assert_int_equal(run->summary.errors, JOBS);
    for (int k = 0; k < JOBS; k++) {
        char id[32];
        snprintf(id, sizeof id, "job-%d", k);
        assert_int_equal(run_batch_telemetry(run, id, "jobs"), 1);
    }
    /* a call for each second try; the first ones shared theirs */
    assert_in_range(cpu_driver_counters().calls[CPU_launch], JOBS + 1, 2 * JOBS - 1);
}

TEST(no_try_comes_after_the_deadline) {
    struct run *run = *state;
    run->settings.retry.base_ms = run->settings.retry.max_ms = FOR_EVER_MS;
    inject(run, "cuLaunchKernel:launch_out_of_resources@1");
    char yaml[512];
    snprintf(yaml, sizeof yaml,
        "id: late\ndeadline_ms: %llu\nbuffers: {x: {bytes: 4}, y: {bytes: 4}}\n"
        "steps: [{program: saxpy, args: [{f32: 1}, x, y, {u32: 1}], elements: 1}]\noutputs: []\n",
        (unsigned long long)clock_unix_ms() + FOR_EVER_MS / 4);
    run_add_job(run, yaml);
    run_execute_ok(run);
    run_assert_error(run, "late", "deadline_exceeded");
    assert_non_null(strstr(dead_letter_header(run, "late", "dlq.error.message"), "driver_error"));
}

#define F(name) cmocka_unit_test_setup_teardown(name, set_up, run_tear_down)

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        F(a_job_that_fails_once_is_tried_again_and_answered_once),
        F(the_last_failure_is_the_answer_and_says_how_often_it_was_tried),
        F(what_no_worker_can_mend_is_tried_once),
        F(a_job_that_was_not_even_planned_is_tried_again_too),
        F(a_job_that_can_never_fit_is_refused_at_once),
        F(the_statics_of_a_retried_job_are_counted_once),
        F(a_waiting_job_holds_up_no_other_and_is_handed_back_when_the_worker_stops),
        F(what_is_handed_back_is_not_overtaken_by_later_jobs_of_its_key),
        F(what_waits_is_handed_back_when_its_partition_is_revoked),
        F(no_later_job_of_a_key_overtakes_one_that_is_tried_again),
        F(a_job_that_failed_runs_alone_from_then_on),
        F(no_try_comes_after_the_deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
