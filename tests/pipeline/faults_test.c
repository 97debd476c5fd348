/* Proves: budgets; exact accounts of memory; null handles from the driver; want of host memory;
 * leases that are used once; no memory back before its fence; bound threads; the order within a
 * job; no job sees bytes of another; iterations; failed uploads leave nothing; residents;
 * shutdown and loss give everything back. */
/*
 * A mixed workload, run again and again with one driver call made to fail each time: every entry
 * point, every call of it where there are few, else the first ones and a sample of the others.
 *
 * The context's release fails in every run: it would sweep away what the worker forgot to free.
 */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "blobs/blobs.h"
#include "cpu_driver/cpu_driver.h"
#include "support/run.h"
#include "support/scratch.h"
#include "testing.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { FIRST_CALLS = 6, SAMPLED_CALLS = 2 };
#else
enum { FIRST_CALLS = 60, SAMPLED_CALLS = 20 };
#endif

enum {
    PLAIN_JOBS = 12,
    BATCH_JOBS = 4,
    /* What one failed call can spoil: its batch, and a job that waits for one of it. */
    TOUCHED_MAX = BATCH_JOBS + 1,
    RUN_SECONDS_MAX = 600
};

static const char keep_context[] = "cuDevicePrimaryCtxRelease:invalid_value@*";

/* --- the workload --- */

static struct expected {
    char id[16];
    float output[2];
} expected[PLAIN_JOBS + 16];
static size_t expected_count;

static void expect(const char *id, float first, float second) {
    struct expected *next = &expected[expected_count++];
    snprintf(next->id, sizeof next->id, "%s", id);
    next->output[0] = first;
    next->output[1] = second;
}

/* y = 2x + y over two floats, with y and x as given, and `more` keys of the job and of its step. */
static void add(struct run *run, const char *id, const char *x, const char *y, const char *job,
    const char *step) {
    char yaml[1024];
    snprintf(yaml, sizeof yaml,
        "id: %s\nbuffers: {x: {%s}, y: {%s}}\n%s"
        "steps: [{program: saxpy, args: [{f32: 2}, x, y, {u32: 2}], elements: 2%s}]\n"
        "outputs: [{buffer: y, bytes: 8}]\n",
        id, x, y, job, step);
    run_add_keyed(run, "key", yaml)->key = strstr(y, "resident") != NULL ? "key" : NULL;
}

static char *blob_dir;
static char blob_source[128], static_source[160];

static void make_blob(void) {
    const float payload[] = {3, 4};
    struct digest digest = digest_of(slice_of(payload, sizeof payload));
    char text[DIGEST_TEXT_SIZE];
    snprintf(
        blob_source, sizeof blob_source, "bytes: 8, blob: \"%s\"", digest_format(&digest, text));
    snprintf(static_source, sizeof static_source, "static: \"%s\", data: {f32: [3, 4]}", text);
    struct blobs *blobs;
    struct error err;
    const struct blobs_options options = {.dir = blob_dir, .bytes_max = 1 << 20};
    assert_int_equal(blobs_create(&options, &blobs, &err), ERR_OK);
    assert_int_equal(blobs_put(blobs, &digest, slice_of(payload, sizeof payload), &err), ERR_OK);
    blobs_destroy(blobs);
}

static void add_workload(struct run *run) {
    const char ones[] = "data: {f32: [1, 1]}", x[] = "data: {f32: [1, 2]}";
    expected_count = 0;
    for (int k = 0; k < PLAIN_JOBS; k++) {
        char id[16];
        snprintf(id, sizeof id, "job-%d", k);
        run_add_saxpy(run, k);
        expect(id, 2 * (float)k + 1, 3);
    }
    add(run, "static", static_source, ones, "", "");
    expect("static", 7, 9);
    add(run, "warm", static_source, "bytes: 8", "", "");
    expect("warm", 6, 8);
    add(run, "blob", blob_source, ones, "", "");
    expect("blob", 7, 9);
    add(run, "writes", x, "bytes: 8, fill: 0, writes: [{offset: 4, data: {f32: [5]}}]", "", "");
    expect("writes", 2, 9);
    add(run, "timed", x, ones, "timing: true\n", "");
    expect("timed", 3, 5);
    add(run, "large", x, "bytes: 100000", "", "");
    expect("large", 2, 4);
    add(run, "repeated", x, ones, "repeat: 2\n", ", iterations: 3");
    expect("repeated", 13, 25);
    add(run, "cooperative", x, ones, "", ", cooperative: true");
    expect("cooperative", 3, 5);
    add(run, "create", x, "bytes: 8, resident: r, init: {data: {f32: [10, 20]}}", "", "");
    expect("create", 12, 24);
    add(run, "update", x, "bytes: 8, resident: r", "", "");
    expect("update", 14, 28);
}

/* --- one run --- */

static char script[256]; /* of the run under way */

static void on_hang(int signal) {
    (void)!write(STDERR_FILENO, script, strlen(script));
    (void)!write(STDERR_FILENO, ": hangs\n", 8);
    _exit(1);
}

static struct run *start(const char *faults) {
    void *state;
    run_set_up(&state);
    struct run *run = state;
    run->settings.lanes = 2;
    run->settings.lane_depth = 2;
    run->settings.batch.jobs = BATCH_JOBS;
    run->settings.batch.stream = STREAM_MAPPED;
    run->settings.lane_slab_bytes = 32 << 10;
    run->settings.prepare.threads = 2;
    run->settings.ordering = ORDERING_KEY;
    free(run->settings.blobs.dir);
    run->settings.blobs.dir = strdup(blob_dir);
    snprintf(script, sizeof script, "%s%s%s", faults, faults[0] != 0 ? ";" : "", keep_context);
    free(run->settings.cpu_driver.faults);
    run->settings.cpu_driver.faults = strdup(script);
    add_workload(run);
    return run;
}

static void stop(struct run *run) {
    void *state = run;
    run_tear_down(&state);
}

static size_t failures; /* of the test under way: one run's does not hide those of the others */

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            print_error("%s: %s; the run: %s %s\n", script, #condition, err_code(run->err.code),   \
                run->err.message);                                                                 \
            failures++;                                                                            \
        }                                                                                          \
    } while (0)

static bool is_typed(const struct run *run, const char *id) {
    const struct memory_message *letter = memory_find(&run->broker, ROUTE_DEAD_LETTER, id);
    if (letter == NULL) return false;
    const char *code = memory_header(letter, "dlq.error.code");
    for (enum err i = ERR_OK + 1; i < ERR_COUNT; i++)
        if (strcmp(code, err_code(i)) == 0) return i != ERR_INTERNAL;
    return false;
}

static size_t count_results(const struct run *run, const char *id) {
    size_t count = 0;
    for (size_t i = 0; i < run->broker.message_count; i++) {
        const struct memory_message *message = &run->broker.messages[i];
        if (message->route == ROUTE_RESULT &&
            strcmp(memory_header(message, "gpu-worker-job-id"), id) == 0)
            count++;
    }
    return count;
}

/* Every answer is right or a typed error; returns how many are errors. */
static size_t check_answers(struct run *run, bool is_whole) {
    size_t errors = 0;
    for (size_t i = 0; i < expected_count; i++) {
        const char *id = expected[i].id;
        size_t results = count_results(run, id);
        CHECK(results == (size_t)run->broker.finished[i]);
        CHECK(results == 1 || (results == 0 && !is_whole));
        if (results == 0) continue;
        const struct memory_message *result = memory_find(&run->broker, ROUTE_RESULT, id);
        if (strcmp(memory_header(result, "gpu-worker-status"), "ok") == 0) {
            run_assert_output(run, id, 0, expected[i].output, sizeof expected[i].output);
        } else {
            CHECK(is_typed(run, id));
            errors++;
        }
    }
    return errors;
}

static void check_no_mistakes(struct run *run) {
    cpu_driver_check_memory();
    struct cpu_driver_counters counters = cpu_driver_counters();
    CHECK(counters.hazards == 0);
    CHECK(counters.freed_in_use == 0);
    CHECK(counters.writes_after_free == 0);
    CHECK(counters.guards_broken == 0);
}

static uint64_t count_left_on_device(void) {
    struct cpu_driver_counters counters = cpu_driver_counters();
    return counters.allocations_live + (counters.pinned_bytes_live > 0) + counters.streams_live +
           counters.events_live + counters.modules_live;
}

static enum err execute(struct run *run) {
    alarm(RUN_SECONDS_MAX);
    enum err code = run_execute(run);
    alarm(0);
    return code;
}

/* --- which calls fail how --- */

static const char *const functions[CPU_ENTRY_COUNT] = {
#define X(field, function, version) [CPU_##field] = #function,
    GPU_DRIVER_LIST(X)
#undef X
};

static const char *effect_of(enum cpu_entry entry) {
    switch (entry) {
    case CPU_memory_alloc:
    case CPU_host_alloc:
    case CPU_stream_create:
    case CPU_event_create: return "out_of_memory";
    case CPU_module_load: return "invalid_ptx";
    case CPU_module_function:
    case CPU_function_param: return "not_supported"; /* an invalid value: no such parameter */
    case CPU_launch:
    case CPU_launch_cooperative: return "launch_out_of_resources";
    default: return "invalid_value";
    }
}

static bool returns_handle(enum cpu_entry entry) {
    return entry == CPU_primary_context_retain || entry == CPU_memory_alloc ||
           entry == CPU_host_alloc || entry == CPU_host_device_pointer ||
           entry == CPU_stream_create || entry == CPU_event_create || entry == CPU_module_load ||
           entry == CPU_module_function;
}

/* What the driver refuses to free stays, and nothing else. */
static bool frees(enum cpu_entry entry) {
    return entry == CPU_memory_free || entry == CPU_host_free || entry == CPU_stream_destroy ||
           entry == CPU_event_destroy || entry == CPU_module_unload;
}

static uint64_t calls[CPU_ENTRY_COUNT]; /* of a run without faults */

/* From 1: all of few calls; of many the first, and of the others some, equally far apart. */
static uint64_t call_number(uint64_t index, uint64_t count) {
    if (index < FIRST_CALLS) return index + 1;
    return FIRST_CALLS + 1 + (index - FIRST_CALLS) * (count - FIRST_CALLS) / SAMPLED_CALLS;
}

static uint64_t sites_of(uint64_t count) {
    return count <= FIRST_CALLS + SAMPLED_CALLS ? count : FIRST_CALLS + SAMPLED_CALLS;
}

static void fail_call(enum cpu_entry entry, const char *effect, uint64_t number) {
    /* Errors are named only where there is one. */
    bool is_name = entry == CPU_error_name || entry == CPU_error_string;
    char faults[192];
    snprintf(faults, sizeof faults, "%s%s:%s@%llu",
        is_name ? "cuLaunchKernel:launch_out_of_resources@1;" : "", functions[entry], effect,
        (unsigned long long)number);
    struct run *run = start(faults);
    enum err code = execute(run);
    bool is_whole = code == ERR_OK;
    size_t errors = check_answers(run, is_whole);
    if (!is_whole) {
        CHECK(code != ERR_INTERNAL && code != ERR_TIMEOUT && !err_is_sticky(code));
        CHECK(run->err.message[0] != 0);
        /* Only at start, before any job; threads that cannot bind may stop while others run. */
        CHECK(run->broker.message_count == 0 || entry == CPU_context_set_current);
    }
    /* An image that was rejected once is not compiled again, and fails all jobs of its program. */
    CHECK(errors <= TOUCHED_MAX || strcmp(effect, "invalid_ptx") == 0);
    CHECK(count_left_on_device() <= frees(entry));
    check_no_mistakes(run);
    stop(run);
}

TEST(a_run_without_faults_calls_what_the_other_tests_make_fail) {
    struct run *run = start("");
    CHECK(execute(run) == ERR_OK);
    CHECK(check_answers(run, true) == 0);
    CHECK(count_left_on_device() == 0);
    check_no_mistakes(run);
    const struct cpu_driver_counters counters = cpu_driver_counters();
    memcpy(calls, counters.calls, sizeof calls);
    CHECK(calls[CPU_launch_cooperative] > 0);
    CHECK(calls[CPU_event_elapsed] > 0);
    CHECK(calls[CPU_host_device_pointer] > 0 && calls[CPU_copy_to_device] > 0);
    calls[CPU_error_name] = calls[CPU_error_string] = 1;
    calls[CPU_primary_context_release] = 0; /* fails in every run */
    stop(run);
}

TEST(any_failed_call_fails_typed_what_it_touches_and_leaks_nothing) {
    for (enum cpu_entry entry = 0; entry < CPU_ENTRY_COUNT; entry++)
        for (uint64_t i = 0; i < sites_of(calls[entry]); i++)
            fail_call(entry, effect_of(entry), call_number(i, calls[entry]));
}

TEST(any_null_in_place_of_a_handle_is_an_error_and_never_used) {
    for (enum cpu_entry entry = 0; entry < CPU_ENTRY_COUNT; entry++)
        for (uint64_t i = 0; returns_handle(entry) && i < sites_of(calls[entry]); i++)
            fail_call(entry, "null", call_number(i, calls[entry]));
}

TEST(a_lost_gpu_ends_the_run_and_blames_no_job) {
    static const char *const losses[] = {
        "illegal_address", "assert", "launch_timeout", "ecc_uncorrectable"};
    static const enum cpu_entry entries[] = {
        CPU_copy_to_device, CPU_copy_to_host, CPU_fill, CPU_launch, CPU_event_record};
    size_t turn = 0;
    for (size_t e = 0; e < sizeof entries / sizeof entries[0]; e++) {
        enum cpu_entry entry = entries[e];
        for (uint64_t i = 0; i < sites_of(calls[entry]); i++) {
            char faults[96];
            snprintf(faults, sizeof faults, "%s:%s@%llu", functions[entry], losses[turn++ % 4],
                (unsigned long long)call_number(i, calls[entry]));
            struct run *run = start(faults);
            enum err code = execute(run);
            /* How many calls there are depends on who shares a batch: the last may not come. */
            CHECK(err_is_sticky(code) || (code == ERR_OK && cpu_driver_counters().faults == 1));
            CHECK(check_answers(run, code == ERR_OK) == 0);
            CHECK(memory_count(&run->broker, ROUTE_DEAD_LETTER) == 0);
            check_no_mistakes(run);
            stop(run);
        }
    }
}

TEST(a_gpu_that_cannot_be_waited_for_is_lost_and_no_job_is_done) {
    struct run *run = start("cuEventQuery:invalid_value@*;cuEventSynchronize:invalid_value@*;"
                            "cuStreamSynchronize:invalid_value@*");
    CHECK(execute(run) == ERR_GPU_FAULT);
    for (size_t i = 0; i < run->broker.message_count; i++)
        CHECK(strcmp(memory_header(&run->broker.messages[i], "gpu-worker-status"), "ok") != 0);
    stop(run);
}

static int start_counting(void **state) {
    failures = 0;
    return 0;
}

static int report(void **state) {
    return failures == 0 ? 0 : -1;
}

#define F(name) cmocka_unit_test_setup_teardown(name, start_counting, report)

static int set_up(void **state) {
    signal(SIGALRM, on_hang);
    blob_dir = scratch_create();
    make_blob();
    return 0;
}

static int tear_down(void **state) {
    scratch_remove(blob_dir);
    return 0;
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        F(a_run_without_faults_calls_what_the_other_tests_make_fail),
        F(any_failed_call_fails_typed_what_it_touches_and_leaks_nothing),
        F(any_null_in_place_of_a_handle_is_an_error_and_never_used),
        F(a_lost_gpu_ends_the_run_and_blames_no_job),
        F(a_gpu_that_cannot_be_waited_for_is_lost_and_no_job_is_done),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
