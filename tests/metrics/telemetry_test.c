/* Proves: telemetry of jobs and batches is exact; exact counters; published sums equal those of
 * jobs and batches. */
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cpu_driver/cpu_driver.h"
#include "metrics/report.h"
#include "support/run.h"
#include "testing.h"

enum { JOBS = 10000, PAYLOADS = 40, BATCHES_MAX = 1 << 14 };

static uint64_t value_of(const msgpack_object *map, const char *section, const char *key) {
    const msgpack_object *value = msgpack_get(msgpack_get(map, section), key);
    assert_non_null(value);
    return value->via.u64;
}

/* --- random jobs --- */

static uint32_t draw(uint32_t *seed, uint32_t below) {
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % below;
}

/* Elements of `x`, from the message or shared by the jobs that draw the same payload. */
static int write_x(char *yaml, size_t room, uint32_t *seed, uint32_t *elements) {
    bool is_static = draw(seed, 3) == 0;
    uint32_t payload = draw(seed, PAYLOADS);
    *elements = is_static ? 1 + payload * 13 : draw(seed, 200);
    float values[1 + PAYLOADS * 13];
    for (uint32_t i = 0; i < *elements; i++) values[i] = (float)(payload + i);
    char digest[DIGEST_TEXT_SIZE] = "";
    struct digest d = digest_of(slice_of(values, *elements * sizeof values[0]));
    digest_format(&d, digest);
    int used = snprintf(yaml, room, "x: {%s%s%sdata: {f32: [", is_static ? "static: \"" : "",
        is_static ? digest : "", is_static ? "\", " : "");
    for (uint32_t i = 0; i < *elements; i++)
        used += snprintf(yaml + used, room - (size_t)used, "%s%u", i > 0 ? "," : "", payload + i);
    return used + snprintf(yaml + used, room - (size_t)used, "]}}");
}

/* In as many slices as its instances need. */
static void add_random_array(struct run *run, int k, uint32_t *seed) {
    char yaml[512];
    snprintf(yaml, sizeof yaml,
        "id: job-%d\ncount: %u\nbuffers: {x: {data: {f32: [1, 2]}}, y: {bytes: 8, each: true}}\n"
        "steps: [{program: saxpy, args: [{f32: 2}, x, y, {u32: 2}], elements: 2}]\n"
        "outputs: [{buffer: y}]\n",
        k, 1 + draw(seed, 5000));
    run_add_job(run, yaml);
}

static void add_random_job(struct run *run, int k, uint32_t *seed) {
    static const char *const programs[] = {"saxpy", "saxpy", "saxpy", "saxpy", "nonsense"};
    char yaml[8192];
    uint32_t elements;
    int used = snprintf(yaml, sizeof yaml, "id: job-%d\ntiming: %s\nrepeat: %u\nbuffers: {", k,
        draw(seed, 4) == 0 ? "true" : "false", 1 + draw(seed, 2));
    used += write_x(yaml + used, sizeof yaml - (size_t)used, seed, &elements);
    uint32_t total = elements + draw(seed, 3000); /* large enough for outputs of their own */
    uint32_t from = draw(seed, total + 1);
    used += snprintf(yaml + used, sizeof yaml - (size_t)used, ", y: {bytes: %u, fill: %u",
        4 * total, draw(seed, 2));
    if (total > 0 && draw(seed, 3) == 0)
        used += snprintf(yaml + used, sizeof yaml - (size_t)used,
            ", writes: [{offset: %u, data: {f32: [7]}}]", 4 * draw(seed, total));
    snprintf(yaml + used, sizeof yaml - (size_t)used,
        "}}\nsteps: [{program: %s, args: [{f32: 2}, x, y, {u32: %u}], elements: %u, "
        "iterations: %u}]\noutputs: [{buffer: y, offset: %u, bytes: %u}]\n",
        programs[draw(seed, 5)], elements, elements > 0 ? elements : 1, 1 + draw(seed, 3), 4 * from,
        4 * draw(seed, total - from + 1));
    run_add_job(run, yaml);
}

/* --- three sums of the same work: what the results say, what the worker says, and the driver ---
 */

struct sums {
    struct totals totals;
    uint64_t batch_ids[BATCHES_MAX];
    size_t batch_count;
};

/* True for the first of the batch's jobs. */
static bool is_new_batch(struct sums *sums, uint64_t id) {
    if (id == 0) return false; /* failed before it reached one */
    for (size_t i = 0; i < sums->batch_count; i++)
        if (sums->batch_ids[i] == id) return false;
    assert_true(sums->batch_count < BATCHES_MAX);
    sums->batch_ids[sums->batch_count++] = id;
    return true;
}

static void add_section(struct totals *ret, enum section section, const msgpack_object *values) {
    for (int i = 0; i < COUNTER_COUNT; i++) {
        const struct counter_info *info = &counter_infos[i];
        if (info->section != section) continue;
        const msgpack_object *value = msgpack_get(values, info->name);
        if (value == NULL) continue;
        if (!info->is_max) ret->of[i] += value->via.u64;
        else if (value->via.u64 > ret->of[i]) ret->of[i] = value->via.u64;
    }
}

static void add_timed(struct totals *ret, const msgpack_object *telemetry) {
    ret->of[COUNTER_timed_jobs]++;
    add_section(ret, SECTION_timed, telemetry);
#define RAISE(field)                                                                               \
    if (msgpack_get(telemetry, #field)->via.u64 > ret->of[COUNTER_timed_##field##_max])            \
        ret->of[COUNTER_timed_##field##_max] = msgpack_get(telemetry, #field)->via.u64;
    RAISE(wall_ns)
    RAISE(enqueue_ns)
    RAISE(wait_ns)
    RAISE(device_ns)
#undef RAISE
}

static void add_result(struct sums *sums, const msgpack_object *result) {
    const msgpack_object *telemetry = msgpack_get(result, "telemetry");
    const msgpack_object *batch = msgpack_get(telemetry, "batch");
    bool is_ok = msgpack_get(result, "error") == NULL;
    sums->totals.outcomes[is_ok ? ERR_OK : ERR_UNKNOWN_PROGRAM]++;
    add_section(&sums->totals, SECTION_jobs, telemetry);
    if (is_ok && msgpack_get(telemetry, "device_ns") != NULL) add_timed(&sums->totals, telemetry);
    if (!is_new_batch(sums, msgpack_get(batch, "id")->via.u64)) return;
    const msgpack_object *slices = msgpack_get(telemetry, "slices");
    sums->totals.of[COUNTER_batches_count] += slices != NULL ? slices->via.u64 : 1;
    add_section(&sums->totals, SECTION_batches, batch);
}

static void add_report(struct sums *sums, const msgpack_object *report) {
    for (int s = 0; s < SECTION_TOLD; s++)
        add_section(&sums->totals, (enum section)s, msgpack_get(report, section_names[s]));
    const msgpack_object *outcomes = msgpack_get(report, "outcomes");
    for (int code = 0; code < ERR_COUNT; code++) {
        const msgpack_object *value = msgpack_get(outcomes, err_code((enum err)code));
        if (value != NULL) sums->totals.outcomes[code] += value->via.u64;
    }
}

static struct sums *sum(const struct memory_broker *broker, enum route route,
    void (*add)(struct sums *sums, const msgpack_object *message)) {
    struct sums *sums = calloc(1, sizeof *sums);
    assert_non_null(sums);
    for (size_t i = 0; i < broker->message_count; i++) {
        if (broker->messages[i].route != route) continue;
        struct slice payload = broker->messages[i].payload;
        msgpack_unpacked unpacked;
        msgpack_unpacked_init(&unpacked);
        assert_int_equal(
            msgpack_unpack_next(&unpacked, (const char *)payload.data, payload.size, NULL),
            MSGPACK_UNPACK_SUCCESS);
        add(sums, &unpacked.data);
        msgpack_unpacked_destroy(&unpacked);
    }
    return sums;
}

static void assert_equal_but_for_engine(const struct totals *said, const struct totals *summed) {
    for (int i = 0; i < COUNTER_COUNT; i++) {
        const struct counter_info *info = &counter_infos[i];
        if (info->section == SECTION_engine || info->section >= SECTION_TOLD ||
            said->of[i] == summed->of[i])
            continue;
        fail_msg("%s.%s: the reports say %llu, the results %llu", section_names[info->section],
            info->name, (unsigned long long)said->of[i], (unsigned long long)summed->of[i]);
    }
    for (int i = 0; i < ERR_COUNT; i++) assert_int_equal(said->outcomes[i], summed->outcomes[i]);
}

static void assert_as_driver_counted(const struct totals *said) {
    const struct cpu_driver_counters driver = cpu_driver_counters();
    const uint64_t *of = said->of;
    uint64_t timing_events = 2 * of[COUNTER_timed_jobs];
    assert_int_equal(of[COUNTER_engine_host_to_device_bytes], driver.bytes_to_device);
    assert_int_equal(of[COUNTER_engine_device_to_host_bytes], driver.bytes_to_host);
    assert_int_equal(of[COUNTER_engine_upload_operations], driver.calls[CPU_copy_to_device]);
    assert_int_equal(of[COUNTER_engine_readback_operations], driver.calls[CPU_copy_to_host]);
    assert_int_equal(of[COUNTER_engine_kernel_launches], driver.launches);
    assert_int_equal(
        of[COUNTER_engine_sync_points] + timing_events, driver.calls[CPU_event_record]);
    assert_int_equal(of[COUNTER_engine_module_compilations], driver.calls[CPU_module_load]);
    assert_int_equal(of[COUNTER_engine_device_pool_misses], driver.calls[CPU_memory_alloc]);
    assert_int_equal(of[COUNTER_engine_pinned_pool_misses], driver.calls[CPU_host_alloc]);
}

/* All that was said is work that jobs and batches own, but for uploads of statics. */
static void assert_engine_adds_up(const struct totals *said) {
    const uint64_t *of = said->of;
    assert_int_equal(of[COUNTER_engine_device_to_host_bytes], of[COUNTER_batches_d2h_bytes]);
    assert_int_equal(of[COUNTER_engine_kernel_launches], of[COUNTER_batches_launches]);
    assert_int_equal(of[COUNTER_engine_coalesced_launches], of[COUNTER_batches_coalesced_launches]);
    assert_int_equal(of[COUNTER_engine_param_upload_bytes], of[COUNTER_jobs_param_bytes]);
    assert_int_equal(of[COUNTER_engine_static_hits], of[COUNTER_jobs_static_hits]);
    assert_int_equal(of[COUNTER_engine_static_misses], of[COUNTER_jobs_static_misses]);
    assert_int_equal(of[COUNTER_engine_static_bytes_saved], of[COUNTER_jobs_static_bytes_saved]);
    uint64_t static_uploads = of[COUNTER_engine_sync_points] - of[COUNTER_batches_sync_points];
    assert_int_equal(static_uploads, of[COUNTER_engine_static_misses]);
    assert_int_equal(of[COUNTER_engine_upload_operations] + of[COUNTER_engine_readback_operations],
        of[COUNTER_batches_copies] + static_uploads);
    assert_true(of[COUNTER_engine_coalesced_launches] > 0);
    assert_true(of[COUNTER_timed_jobs] > 0);
}

TEST(reports_of_ten_thousand_random_jobs_say_what_the_jobs_and_the_driver_say) {
    struct run *run = *state;
    uint32_t seed = 20;
    run->settings.telemetry.interval_ms = 20;
    run->settings.statics.budget_bytes = 16 << 10;
    run->settings.batch.span_ms = 600000; /* on any machine, jobs that were seen once may share */
    for (int k = 0; k < JOBS; k++)
        (k % 100 == 99 ? add_random_array : add_random_job)(run, k, &seed);
    run_execute_ok(run);
    struct sums *summed = sum(&run->broker, ROUTE_RESULT, add_result);
    struct sums *said = sum(&run->telemetry, ROUTE_TELEMETRY, add_report);
    assert_int_equal(
        summed->totals.outcomes[ERR_OK] + summed->totals.outcomes[ERR_UNKNOWN_PROGRAM], JOBS);
    assert_true(run->telemetry.message_count > 1);
    assert_equal_but_for_engine(&said->totals, &summed->totals);
    assert_as_driver_counted(&said->totals);
    assert_engine_adds_up(&said->totals);
    free(summed);
    free(said);
}

TEST(the_last_report_tells_that_nothing_is_under_way) {
    struct run *run = *state;
    for (int k = 0; k < 50; k++) run_add_saxpy(run, k);
    run_add_bytes(run, "no job", 6);
    run_execute_ok(run);
    assert_int_equal(run->telemetry.message_count, 1);
    msgpack_unpacked unpacked;
    msgpack_unpacked_init(&unpacked);
    struct slice payload = run->telemetry.messages[0].payload;
    msgpack_unpack_next(&unpacked, (const char *)payload.data, payload.size, NULL);
    const msgpack_object *report = &unpacked.data;
    assert_int_equal(msgpack_get(report, "sequence")->via.u64, 1);
    assert_int_equal(value_of(report, "outcomes", "ok"), 50);
    assert_int_equal(value_of(report, "outcomes", "bad_message"), 1);
    assert_int_equal(value_of(report, "gauges", "jobs_in_flight"), 0);
    assert_int_equal(value_of(report, "gauges", "bytes_in_flight"), 0);
    assert_int_equal(value_of(report, "gauges", "jobs_ready"), 0);
    assert_int_equal(value_of(report, "gauges", "device_pool_live_bytes"), 0);
    assert_int_equal(value_of(report, "engine", "module_hits"), 50);
    assert_true(value_of(report, "gauges", "device_pool_cached_bytes") > 0);
    assert_true(value_of(report, "gauges", "fences_cached") > 0);
    msgpack_unpacked_destroy(&unpacked);
}

TEST(a_worker_whose_telemetry_is_refused_answers_all_jobs) {
    struct run *run = *state;
    run->settings.telemetry.interval_ms = 1;
    run->telemetry.refuse_errors = true;
    for (int k = 0; k < 200; k++) run_add_saxpy(run, k);
    run_execute_ok(run);
    assert_int_equal(run->summary.ok, 200);
    assert_int_equal(run->telemetry.message_count, 0);
}

TEST(an_interval_of_zero_publishes_nothing) {
    struct run *run = *state;
    run->settings.telemetry.interval_ms = 0;
    run_add_saxpy(run, 1);
    run_execute_ok(run);
    assert_int_equal(run->telemetry.message_count, 0);
}

/* --- ends before all jobs are done --- */

static struct run *ending; /* in a process of its own, since its threads go on */

/* Tells the test that exactly one report came, which counts two jobs. */
static void leave(const struct error *err) {
    bool is_told = ending->telemetry.message_count == 1;
    struct sums *said = sum(&ending->telemetry, ROUTE_TELEMETRY, add_report);
    is_told = is_told && said->totals.outcomes[ERR_OK] == 2;
    syscall(SYS_exit_group, is_told ? 0 : 1); /* no sanitizer asks for the threads that go on */
}

static void stop_once_the_third_runs(struct run *run) {
    run->stop = run_finished_count(run) == 2 && cpu_driver_counters().calls[CPU_launch] == 3;
}

/* Two jobs end well, and `fault` is the third one's. All are too slow for the intake to run them.
 */
static void assert_tells_of_two(struct run *run, const char *fault) {
    run->settings.lanes = run->settings.lane_depth = run->settings.batch.jobs = 1;
    run->settings.drain_timeout_ms = 100;
    run_set_text(&run->settings.cpu_driver.faults, fault);
    for (int k = 0; k < 3; k++) run_add_saxpy(run, k);
    run->stop_after = SIZE_MAX;
    run->on_poll = stop_once_the_third_runs;
    run->on_lost = leave;
    ending = run;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        enum err code = run_execute(run);
        if (code != ERR_TIMEOUT) _exit(2);
        leave(&run->err);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

TEST(a_worker_whose_jobs_outlast_its_drain_tells_what_it_did) {
    assert_tells_of_two(*state, "cuLaunchKernel:slow=60s@3;cuLaunchKernel:slow=20ms@*");
}

TEST(a_worker_that_lost_its_device_tells_what_it_did) {
    assert_tells_of_two(*state, "cuLaunchKernel:illegal_address@3;cuLaunchKernel:slow=20ms@*");
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        FLOW(reports_of_ten_thousand_random_jobs_say_what_the_jobs_and_the_driver_say),
        FLOW(the_last_report_tells_that_nothing_is_under_way),
        FLOW(a_worker_whose_telemetry_is_refused_answers_all_jobs),
        FLOW(an_interval_of_zero_publishes_nothing),
        FLOW(a_worker_whose_jobs_outlast_its_drain_tells_what_it_did),
        FLOW(a_worker_that_lost_its_device_tells_what_it_did),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
