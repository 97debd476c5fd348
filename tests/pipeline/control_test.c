#include <stdlib.h>

#include "broker/embedded.h"
#include "broker/producer.h"
#include "cpu_driver/cpu_driver.h"
#include "decode/control_message.h"
#include "support/run.h"
#include "testing.h"

enum { FOR_EVER_MS = 3600000, PATIENCE_MS = 60000 };

/* A control topic that lives as long as the tests. */
static struct embedded *embedded;
static char topic[32];
static int topic_count;

static struct kafka_options kafka_options(void) {
    return (struct kafka_options){.bootstrap_servers = embedded_bootstrap_servers(embedded)};
}

static int start_broker(void **state) {
    char *topics[16], names[16][32];
    for (int i = 0; i < 16; i++) {
        snprintf(names[i], sizeof names[i], "control-%d", i);
        topics[i] = names[i];
    }
    struct error err;
    const struct embedded_options options = {.topic_count = 16, .topics = topics, .partitions = 1};
    return embedded_create(&options, &embedded, &err) == ERR_OK ? 0 : -1;
}

static int stop_broker(void **state) {
    embedded_destroy(embedded);
    return 0;
}

static int set_up(void **state) {
    int code = run_set_up(state);
    struct run *run = *state;
    run->settings.lanes = 1;
    run->settings.batch.jobs = 1;
    run->settings.ordering = ORDERING_KEY; /* jobs are ready in the order in which they came */
    run->settings.retry.max_attempts = 3;
    run->settings.retry.base_ms = run->settings.retry.max_ms = FOR_EVER_MS;
    snprintf(topic, sizeof topic, "control-%d", topic_count++);
    return code;
}

static void on_settled(struct record *record, enum err code, const struct error *err) {
    assert_int_equal(code, ERR_OK);
}

static void publish(struct slice payload) {
    struct error err;
    struct sink *sink;
    const struct producer_options options = {.kafka = kafka_options(), .results_topic = topic};
    assert_int_equal(producer_create(&options, &sink, &err), ERR_OK);
    struct record record = {.topic = topic, .payload = payload, .on_settled = on_settled};
    sink_send(sink, &record);
    assert_int_equal(sink_flush(sink, PATIENCE_MS, &err), ERR_OK);
    sink_destroy(sink);
}

static void ask(enum control_action action, const char *id) {
    const struct control_message message = {slice_of_text(id), action};
    struct error err;
    uint8_t bytes[CONTROL_MESSAGE_BYTES_MAX];
    size_t size;
    assert_int_equal(control_message_encode(&message, bytes, &size, &err), ERR_OK);
    publish(slice_of(bytes, size));
}

static void cancel(const char *id) {
    ask(CONTROL_CANCEL, id);
}

static void open_control(struct run *run) {
    struct error err;
    const struct kafka_options options = kafka_options();
    assert_int_equal(
        reader_create(&options, topic, READER_FROM_BEGINNING, PATIENCE_MS, &run->control, &err),
        ERR_OK);
}

/* An error result, and nobody else hears of it. */
static void assert_cancelled(struct run *run, const char *id) {
    msgpack_unpacked unpacked;
    msgpack_object result = run_unpack_result(run, id, &unpacked);
    const msgpack_object *error = msgpack_get(&result, "error");
    assert_non_null(error);
    const msgpack_object *code = msgpack_get(error, "code");
    const msgpack_object *retry = msgpack_get(error, "retry");
    assert_true(slice_is_text(slice_of(code->via.str.ptr, code->via.str.size), "cancelled"));
    assert_true(slice_is_text(slice_of(retry->via.str.ptr, retry->via.str.size), "never"));
    msgpack_unpacked_destroy(&unpacked);
    assert_null(memory_find(&run->broker, ROUTE_DEAD_LETTER, id));
}

TEST(what_was_cancelled_before_the_worker_started_is_not_run) {
    struct run *run = *state;
    cancel("job-3");
    cancel("job-7");
    cancel("of-somebody-else");
    open_control(run);
    for (int k = 0; k < 10; k++) run_add_saxpy(run, k);
    run_execute_ok(run);
    assert_int_equal(run->summary.ok, 8);
    assert_int_equal(run->summary.errors, 2);
    assert_cancelled(run, "job-3");
    assert_cancelled(run, "job-7");
    assert_int_equal(memory_count(&run->broker, ROUTE_RESULT), 10);
    assert_int_equal(cpu_driver_counters().launches, 8);
}

TEST(messages_that_are_no_cancels_change_nothing) {
    struct run *run = *state;
    publish(slice_of_text("\xdf\xff\xff\xff\xff"));
    publish(slice_of_text("{\"v\": 1, \"id\": \"job-1\", \"action\": \"cancel\"}"));
    publish(slice_of_text(""));
    cancel("job-2");
    open_control(run);
    for (int k = 0; k < 4; k++) run_add_saxpy(run, k);
    run_execute_ok(run);
    assert_int_equal(run->summary.ok, 3);
    assert_cancelled(run, "job-2");
}

/* With one lane job-0, which failed, waits to be tried again once another is finished. */
static void cancel_once_another_is_finished(struct run *run) {
    if (run_finished_count(run) == 0) return;
    run->on_poll = NULL;
    cancel("job-2"); /* known before job-0 is answered, whose turn it waits for */
    cancel("job-0");
}

TEST(what_waits_to_be_tried_again_is_answered_at_once) {
    struct run *run = *state;
    run_set_text(&run->settings.cpu_driver.faults, "cuLaunchKernel:launch_out_of_resources@1");
    run->on_poll = cancel_once_another_is_finished;
    open_control(run);
    run_add_saxpy(run, 0);
    run_add_saxpy(run, 1);
    run_execute_ok(run);
    assert_cancelled(run, "job-0");
    assert_int_equal(run->summary.ok, 1);
}

/* A cancel may be heard before or after the run fails; most often, before. */
static void cancel_once_it_runs(struct run *run) {
    if (cpu_driver_counters().calls[CPU_launch] == 0) return;
    run->on_poll = NULL;
    cancel("job-0");
}

TEST(what_is_cancelled_while_it_runs_is_not_tried_again) {
    struct run *run = *state;
    run_set_text(&run->settings.cpu_driver.faults,
        "cuLaunchKernel:slow=500ms@1;cuMemcpyDtoHAsync:invalid_value@1");
    run->on_poll = cancel_once_it_runs;
    open_control(run);
    run_add_saxpy(run, 0);
    run_execute_ok(run);
    assert_cancelled(run, "job-0");
    assert_int_equal(cpu_driver_counters().launches, 1);
}

TEST(what_waits_in_its_line_is_answered_when_its_turn_comes) {
    struct run *run = *state;
    run->settings.ordering = ORDERING_KEY;
    run_set_text(&run->settings.cpu_driver.faults, "cuLaunchKernel:launch_out_of_resources@1");
    run->on_poll = cancel_once_another_is_finished;
    open_control(run);
    static const char *const keys[] = {"a", "b", "a", "a"};
    for (int k = 0; k < 4; k++) {
        run_add_saxpy(run, k);
        run->places[k].key = keys[k];
    }
    run_execute_ok(run);
    assert_cancelled(run, "job-0");
    assert_cancelled(run, "job-2");
    assert_int_equal(run->summary.ok, 2);
}

/* --- long jobs --- */

/* Without an end of its own. */
static void add_endless(struct run *run) {
    run_set_text(&run->settings.programs.dir, MIX_FOLDER);
    run_add_job(run,
        "id: long\nbuffers: {state: {bytes: 8}, done: {bytes: 4}}\n"
        "steps: [{program: mix, entry: draw, args: [state, done, {u32: 0}], grid: [1]}]\n"
        "outputs: [{buffer: state}]\nrepeat: 4294967295\nuntil: {buffer: done}\n");
}

static enum control_action asked;

static void ask_once_it_runs(struct run *run) {
    if (cpu_driver_counters().calls[CPU_launch] < 10) return;
    run->on_poll = NULL;
    ask(asked, "long");
}

TEST(a_long_job_that_is_to_stop_ends_with_what_it_has) {
    struct run *run = *state;
    msgpack_unpacked unpacked;
    add_endless(run);
    asked = CONTROL_STOP;
    run->on_poll = ask_once_it_runs;
    open_control(run);
    run_execute_ok(run);
    assert_int_equal(run->summary.ok, 1);
    msgpack_object result = run_unpack_result(run, "long", &unpacked);
    uint32_t rounds = (uint32_t)msgpack_get(&result, "rounds")->via.u64;
    assert_memory_equal(msgpack_get(&result, "ended")->via.str.ptr, "stop", 4);
    const msgpack_object *output = &msgpack_get(&result, "outputs")->via.array.ptr[0];
    assert_memory_equal(msgpack_get(output, "data")->via.bin.ptr, &rounds, sizeof rounds);
    msgpack_unpacked_destroy(&unpacked);
}

TEST(a_long_job_is_cancelled_while_it_runs) {
    struct run *run = *state;
    add_endless(run);
    asked = CONTROL_CANCEL;
    run->on_poll = ask_once_it_runs;
    open_control(run);
    run_execute_ok(run);
    assert_cancelled(run, "long");
}

TEST(a_long_job_that_is_to_stop_before_it_has_begun_is_cancelled) {
    struct run *run = *state;
    add_endless(run);
    ask(CONTROL_STOP, "long");
    open_control(run);
    run_execute_ok(run);
    assert_cancelled(run, "long");
    assert_int_equal(cpu_driver_counters().launches, 0);
}

static void stop_after_some_polls(struct run *run) {
    static int polls;
    run->stop = polls++ == 10;
}

/* Nobody listens there. */
TEST(no_job_is_taken_before_it_is_known_what_was_cancelled_and_a_stop_is_heeded) {
    struct run *run = *state;
    struct error err;
    const struct kafka_options nowhere = {.bootstrap_servers = "127.0.0.1:1"};
    assert_int_equal(
        reader_create(&nowhere, topic, READER_FROM_BEGINNING, 0, &run->control, &err), ERR_OK);
    run->on_poll = stop_after_some_polls;
    run_add_saxpy(run, 0);
    assert_int_equal(run_execute(run), ERR_OK);
    assert_int_equal(run->summary.ok, 0);
    assert_int_equal(memory_count(&run->broker, ROUTE_RESULT), 0);
}

#define F(name) cmocka_unit_test_setup_teardown(name, set_up, run_tear_down)

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        F(what_was_cancelled_before_the_worker_started_is_not_run),
        F(messages_that_are_no_cancels_change_nothing),
        F(what_waits_to_be_tried_again_is_answered_at_once),
        F(what_is_cancelled_while_it_runs_is_not_tried_again),
        F(what_waits_in_its_line_is_answered_when_its_turn_comes),
        F(a_long_job_that_is_to_stop_ends_with_what_it_has),
        F(a_long_job_is_cancelled_while_it_runs),
        F(a_long_job_that_is_to_stop_before_it_has_begun_is_cancelled),
        F(no_job_is_taken_before_it_is_known_what_was_cancelled_and_a_stop_is_heeded),
    };
    return cmocka_run_group_tests(tests, start_broker, stop_broker);
}
