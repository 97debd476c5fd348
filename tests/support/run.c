#include "support/run.h"

#include <stdlib.h>

#include "cpu_driver/cpu_driver.h"
#include "testing.h"

int run_set_up(void **state) {
    struct run *run = calloc(1, sizeof *run);
    assert_non_null(run);
    settings_init(&run->settings);
    run->settings.driver = DRIVER_CPU;
    run->settings.lanes = 4;
    run->settings.retry.base_ms = run->settings.retry.max_ms = 1; /* tries come at once */
    run->settings.batch.stream = STREAM_COPIED; /* saxpy stands for all programs, not for streams */
    free(run->settings.programs.dir);
    run->settings.programs.dir = strdup(GPU_WORKER_PROGRAMS_DIR);
    log_init(LOG_OFF, LOG_TEXT);
    *state = run;
    return 0;
}

void run_restart(struct run *run) {
    memory_broker_fini(&run->broker);
    memory_broker_fini(&run->telemetry);
    memory_broker_fini(&run->progress);
    run->broker = run->telemetry = run->progress = (struct memory_broker){0};
    cpu_driver_reset();
}

void run_forget(struct run *run) {
    run_restart(run);
    for (size_t i = 0; i < run->job_count; i++) free((void *)(uintptr_t)run->jobs[i].data);
    run->job_count = 0;
}

int run_tear_down(void **state) {
    struct run *run = *state;
    run_forget(run);
    settings_fini(&run->settings);
    free(run);
    return 0;
}

static void add(struct run *run, struct slice bytes) {
    assert_true(run->job_count < RUN_JOBS_MAX);
    run->places[run->job_count] = (struct memory_place){.offset = (int64_t)run->job_count};
    run->jobs[run->job_count++] = bytes;
}

void run_set_text(char **field, const char *text) {
    free(*field);
    *field = strdup(text);
    assert_non_null(*field);
}

void run_gather(struct run *run) {
    run->settings.lanes = 1;
    run->settings.batch.span_ms = 600000;
    run_set_text(&run->settings.cpu_driver.faults, "cuLaunchKernel:slow=1s@1");
}

void run_add_job(struct run *run, const char *yaml) {
    add(run, test_job_bytes(yaml));
}

struct memory_place *run_add_keyed(struct run *run, const char *key, const char *yaml) {
    run_add_job(run, yaml);
    struct memory_place *place = &run->places[run->job_count - 1];
    place->key = key;
    return place;
}

void run_add_bytes(struct run *run, const void *bytes, size_t size) {
    uint8_t *copy = malloc(size);
    assert_non_null(copy);
    memcpy(copy, bytes, size);
    add(run, slice_of(copy, size));
}

void run_add_saxpy(struct run *run, int k) {
    char yaml[512];
    snprintf(yaml, sizeof yaml,
        "id: job-%d\nbuffers: {x: {data: {f32: [%d, 1]}}, y: {data: {f32: [1, 1]}}}\n"
        "steps: [{program: saxpy, args: [{f32: 2}, x, y, {u32: 2}], elements: 2}]\n"
        "outputs: [{buffer: y}]\n",
        k, k);
    run_add_job(run, yaml);
}

static void on_poll(void *context) {
    struct run *run = context;
    if (run->stop_after > 0 && run_finished_count(run) >= run->stop_after) run->stop = 1;
    if (run->on_poll != NULL) run->on_poll(run);
}

size_t run_finished_count(struct run *run) {
    return atomic_load(&run->broker.finished_count);
}

enum err run_execute(struct run *run) {
    const size_t refuse_over_bytes = run->broker.refuse_over_bytes;
    const bool refuse_errors = run->broker.refuse_errors;
    const int64_t revoke_from = run->broker.revoke_from;
    const uint64_t settle_ns = run->broker.settle_ns;
    const bool comes_singly = run->broker.comes_singly;
    memory_broker_init(&run->broker, run->jobs, run->job_count);
    run->broker.refuse_over_bytes = refuse_over_bytes;
    run->broker.refuse_errors = refuse_errors;
    run->broker.revoke_from = revoke_from;
    run->broker.settle_ns = settle_ns;
    run->broker.comes_singly = comes_singly;
    run->broker.places = run->places;
    run->broker.is_endless = run->stop_after > 0;
    run->broker.on_poll = on_poll;
    run->broker.on_poll_context = run;
    const bool refuse_telemetry = run->telemetry.refuse_errors;
    memory_broker_init(&run->telemetry, NULL, 0);
    memory_broker_init(&run->progress, NULL, 0);
    run->telemetry.refuse_errors = refuse_telemetry;
    const struct executor_options options = {.settings = &run->settings,
        .life = {.source = memory_source(&run->broker),
            .sink = memory_sink(&run->broker),
            .telemetry = memory_sink(&run->telemetry),
            .progress = memory_sink(&run->progress),
            .control = run->control,
            .state = run->state},
        .on_lost = run->on_lost,
        .stop = &run->stop,
        .sysfs = run->sysfs};
    return executor_run(&options, &run->summary, &run->err);
}

void run_execute_ok(struct run *run) {
    enum err code = run_execute(run);
    if (code != ERR_OK) print_message("%s\n", run->err.message);
    assert_int_equal(code, ERR_OK);
    if (!run->stop) assert_true(run->summary.is_complete);
    for (size_t i = 0; i < run->job_count; i++) assert_int_equal(run->broker.finished[i], 1);
}

const msgpack_object *msgpack_get(const msgpack_object *map, const char *key) {
    assert_int_equal(map->type, MSGPACK_OBJECT_MAP);
    for (uint32_t i = 0; i < map->via.map.size; i++) {
        const msgpack_object_kv *pair = &map->via.map.ptr[i];
        if (pair->key.via.str.size == strlen(key) &&
            memcmp(pair->key.via.str.ptr, key, strlen(key)) == 0)
            return &pair->val;
    }
    return NULL;
}

msgpack_object run_unpack_result(struct run *run, const char *id, msgpack_unpacked *unpacked) {
    const struct memory_message *message = memory_find(&run->broker, ROUTE_RESULT, id);
    assert_non_null(message);
    msgpack_unpacked_init(unpacked);
    assert_int_equal(msgpack_unpack_next(unpacked, (const char *)message->payload.data,
                         message->payload.size, NULL),
        MSGPACK_UNPACK_SUCCESS);
    return unpacked->data;
}

void run_assert_output(
    struct run *run, const char *id, uint32_t index, const void *expected, size_t size) {
    msgpack_unpacked unpacked;
    msgpack_object result = run_unpack_result(run, id, &unpacked);
    const msgpack_object *outputs = msgpack_get(&result, "outputs");
    assert_true(index < outputs->via.array.size);
    const msgpack_object *data = msgpack_get(&outputs->via.array.ptr[index], "data");
    assert_int_equal(data->via.bin.size, size);
    if (size > 0) assert_memory_equal(data->via.bin.ptr, expected, size);
    msgpack_unpacked_destroy(&unpacked);
}

void run_assert_error(struct run *run, const char *id, const char *code) {
    msgpack_unpacked unpacked;
    msgpack_object result = run_unpack_result(run, id, &unpacked);
    const msgpack_object *error = msgpack_get(&result, "error");
    assert_non_null(error);
    const msgpack_object *found = msgpack_get(error, "code");
    assert_true(slice_is_text(slice_of(found->via.str.ptr, found->via.str.size), code));
    assert_true(msgpack_get(error, "fix")->via.str.size > 0);
    msgpack_unpacked_destroy(&unpacked);
    const struct memory_message *letter = memory_find(&run->broker, ROUTE_DEAD_LETTER, id);
    assert_non_null(letter);
    assert_string_equal(memory_header(letter, "dlq.error.code"), code);
}

uint64_t run_telemetry(struct run *run, const char *id, const char *key) {
    msgpack_unpacked unpacked;
    msgpack_object result = run_unpack_result(run, id, &unpacked);
    uint64_t value = msgpack_get(msgpack_get(&result, "telemetry"), key)->via.u64;
    msgpack_unpacked_destroy(&unpacked);
    return value;
}

uint64_t run_batch_telemetry(struct run *run, const char *id, const char *key) {
    msgpack_unpacked unpacked;
    msgpack_object result = run_unpack_result(run, id, &unpacked);
    uint64_t value =
        msgpack_get(msgpack_get(msgpack_get(&result, "telemetry"), "batch"), key)->via.u64;
    msgpack_unpacked_destroy(&unpacked);
    return value;
}
