/* What the worker says, byte for byte: every field of a result, every header, and what a dead
 * letter leaves out. */
#include "publish/message.h"

#include <inttypes.h>
#include <msgpack.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/jobs.h"
#include "testing.h"

enum { RESULT_BYTES = 16384, VALUE_BYTES = 20000 };

static const struct identity identity = {
    .host = "host", .device = "NVIDIA H200", .device_index = 3, .version = "1.2.3"};

static const char job_yaml[] =
    "id: one\nreply_to: elsewhere\n"
    "buffers:\n"
    "  y: {data: {f32: [1, 2]}, datatype: FP32, shape: [2, 1]}\n"
    "  z: {bytes: 4}\n"
    "steps: [{program: saxpy, args: [{f32: 1}, y, y, {u32: 1}], elements: 1}]\n"
    "outputs: [{buffer: y}, {buffer: y, offset: 4, bytes: 4, as: tail}, {buffer: z}]\n";

static const struct slice outputs[] = {{(const uint8_t *)"\0\0\x80\x3f\0\0\0\x40", 8},
    {(const uint8_t *)"\0\0\0\x40", 4}, {(const uint8_t *)"\1\2\3\4", 4}};

static struct job *job;
static struct error err;

/* --- jobs --- */

static const struct header senders[] = {{{(const uint8_t *)"mine", 4}, {(const uint8_t *)"M", 1}},
    {{(const uint8_t *)"traceparent", 11}, {(const uint8_t *)"first", 5}},
    {{(const uint8_t *)"traceparent", 11}, {(const uint8_t *)"T", 1}},
    {{(const uint8_t *)"tracestate", 10}, {(const uint8_t *)"S", 1}}};

static struct delivery a_message(struct slice payload) {
    return (struct delivery){.position = {.topic = "jobs", .partition = 2, .offset = 7000000000},
        .payload = payload,
        .has_key = true,
        .key = slice_of_text("key"),
        .header_count = 4,
        .headers = senders};
}

static void take(const struct delivery *message) {
    job = job_create(delivery_create(message));
    assert_non_null(job);
    assert_non_null(job->delivery);
}

static void take_job(const char *yaml) {
    struct decode_limits limits = test_decode_limits();
    struct slice payload = test_job_bytes(yaml);
    const struct delivery message = a_message(payload);
    take(&message);
    free((void *)(uintptr_t)payload.data);
    if (decode_job(job, &limits, &err) != ERR_OK) fail_msg("%s", err.message);
    job->outcome.outputs = outputs;
}

static void fail_job(enum err code) {
    job->outcome.code =
        error_set(&job->outcome.err, code, 0, "use fewer blocks", "too many blocks");
}

static int tear_down(void **state) {
    job_destroy(job);
    job = NULL;
    return 0;
}

/* --- what is said, as text --- */

/* Maps {k: v}, arrays [v], texts 'v', bytes <hex>. */
static void print_value(FILE *out, const msgpack_object *value) {
    switch (value->type) {
    case MSGPACK_OBJECT_POSITIVE_INTEGER: fprintf(out, "%" PRIu64, value->via.u64); break;
    case MSGPACK_OBJECT_STR:
        fprintf(out, "'%.*s'", (int)value->via.str.size, value->via.str.ptr);
        break;
    case MSGPACK_OBJECT_BIN:
        fprintf(out, "<");
        for (uint32_t i = 0; i < value->via.bin.size; i++)
            fprintf(out, "%02x", (uint8_t)value->via.bin.ptr[i]);
        fprintf(out, ">");
        break;
    case MSGPACK_OBJECT_ARRAY:
        fprintf(out, "[");
        for (uint32_t i = 0; i < value->via.array.size; i++) {
            if (i > 0) fprintf(out, ", ");
            print_value(out, &value->via.array.ptr[i]);
        }
        fprintf(out, "]");
        break;
    case MSGPACK_OBJECT_MAP:
        fprintf(out, "{");
        for (uint32_t i = 0; i < value->via.map.size; i++) {
            const msgpack_object *key = &value->via.map.ptr[i].key;
            fprintf(out, "%s%.*s: ", i > 0 ? ", " : "", (int)key->via.str.size, key->via.str.ptr);
            print_value(out, &value->via.map.ptr[i].val);
        }
        fprintf(out, "}");
        break;
    default: fail_msg("a value of type %d", (int)value->type);
    }
}

/* To be freed; the payload is one value, and nothing behind it. */
static char *payload_text(const struct record *record) {
    msgpack_unpacked unpacked;
    size_t used = 0, size;
    char *text;
    msgpack_unpacked_init(&unpacked);
    assert_int_equal(msgpack_unpack_next(&unpacked, (const char *)record->payload.data,
                         record->payload.size, &used),
        MSGPACK_UNPACK_SUCCESS);
    assert_int_equal(used, record->payload.size);
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    print_value(out, &unpacked.data);
    fclose(out);
    msgpack_unpacked_destroy(&unpacked);
    return text;
}

static void assert_payload(const struct message *message, const char *expected) {
    char *text = payload_text(&message->record);
    assert_string_equal(text, expected);
    free(text);
}

static void assert_payload_has(const struct message *message, const char *part) {
    char *text = payload_text(&message->record);
    if (strstr(text, part) == NULL) fail_msg("%s is not in %s", part, text);
    free(text);
}

static void assert_payload_lacks(const struct message *message, const char *part) {
    char *text = payload_text(&message->record);
    if (strstr(text, part) != NULL) fail_msg("%s is in %s", part, text);
    free(text);
}

/* A line for each header, in order. */
static void assert_headers(const struct message *message, const char *expected) {
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    for (size_t i = 0; i < message->record.header_count; i++)
        fprintf(out, "%.*s: %.*s\n", SLICE_TEXT(message->record.headers[i].name),
            SLICE_TEXT(message->record.headers[i].value));
    fclose(out);
    assert_string_equal(text, expected);
    free(text);
}

static const char *header_of(const struct message *message, const char *name) {
    static char text[1024];
    text[0] = 0;
    for (size_t i = 0; i < message->record.header_count; i++)
        if (slice_is_text(message->record.headers[i].name, name))
            snprintf(text, sizeof text, "%.*s", SLICE_TEXT(message->record.headers[i].value));
    return text;
}

static struct message *write_result(enum answer answer) {
    struct message *message = message_reserve_result(job, RESULT_BYTES);
    assert_non_null(message);
    assert_int_equal(message_write_result(message, answer, &identity, &err), ERR_OK);
    return message;
}

static struct message *write_letter(enum answer answer) {
    struct message *message = message_of_dead_letter(job, answer, &identity);
    assert_non_null(message);
    assert_int_equal(message->record.route, ROUTE_DEAD_LETTER);
    assert_null(message->record.topic);
    return message;
}

/* --- results --- */

#define TELEMETRY                                                                                  \
    "telemetry: {h2d_bytes: 1, d2h_bytes: 2, param_bytes: 3, kernel_launches: 4, "                 \
    "static_hits: 5, static_misses: 6, static_bytes_saved: 7, queue_ns: 8, decode_ns: 9, "         \
    "prepare_ns: 10, stage_ns: 11, enqueue_ns: 12, wait_ns: 13, wall_ns: 14, "
#define BATCH                                                                                      \
    "batch: {id: 16, jobs: 17, copies: 37, h2d_bytes: 20, d2h_bytes: 21, launches: 22, "           \
    "coalesced_launches: 23, sync_points: 24}}"
#define SOURCE_AND_WORKER                                                                          \
    "source: {topic: 'jobs', partition: 2, offset: 7000000000}, "                                  \
    "worker: {host: 'host', device: 'NVIDIA H200', version: '1.2.3'}"

/* No two numbers are the same, so that none stands in another's place. */
static void count_job(void) {
    job->outcome.telemetry = (struct job_telemetry){.h2d_bytes = 1,
        .d2h_bytes = 2,
        .param_bytes = 3,
        .kernel_launches = 4,
        .static_hits = 5,
        .static_misses = 6,
        .static_bytes_saved = 7,
        .queue_ns = 8,
        .decode_ns = 9,
        .prepare_ns = 10,
        .stage_ns = 11,
        .enqueue_ns = 12,
        .wait_ns = 13,
        .wall_ns = 14,
        .device_ns = 15,
        .batch = {.id = 16,
            .jobs = 17,
            .uploads = 18,
            .readbacks = 19,
            .h2d_bytes = 20,
            .d2h_bytes = 21,
            .launches = 22,
            .coalesced_launches = 23,
            .sync_points = 24}};
}

TEST(a_result_says_all_that_came_of_the_job) {
    take_job(job_yaml);
    count_job();
    assert_payload(write_result(ANSWER_RESULT),
        "{v: 1, id: 'one', status: 'ok', outputs: ["
        "{name: 'y', datatype: 'FP32', shape: [2, 1], data: <0000803f00000040>}, "
        "{name: 'tail', datatype: 'FP32', data: <00000040>}, {name: 'z', data: "
        "<01020304>}], " TELEMETRY BATCH ", " SOURCE_AND_WORKER "}");
}

TEST(only_a_timed_job_says_what_it_took_on_the_device) {
    take_job(job_yaml);
    count_job();
    job->outcome.telemetry.is_timed = true;
    assert_payload_has(write_result(ANSWER_RESULT), "wall_ns: 14, device_ns: 15, batch: {");
}

TEST(an_error_says_what_happened_how_to_fix_it_and_who_tries_again_and_has_no_outputs) {
    take_job(job_yaml);
    count_job();
    fail_job(ERR_BAD_LAUNCH);
    job->retry_count = 2;
    job->delivery->failed_attempts = 4;
    assert_payload(write_result(ANSWER_RESULT),
        "{v: 1, id: 'one', status: 'error', error: {code: 'bad_launch', "
        "message: 'too many blocks', fix: 'use fewer blocks', retry: 'never', attempts: 7}, "
        "outputs: [], " TELEMETRY BATCH ", " SOURCE_AND_WORKER "}");
}

TEST(an_error_that_the_worker_tries_again_says_so) {
    take_job(job_yaml);
    fail_job(ERR_DEVICE_MEMORY);
    assert_payload_has(write_result(ANSWER_RESULT), "retry: 'worker', attempts: 1}");
}

TEST(residents_are_named_with_the_generations_that_the_job_left) {
    static const uint64_t generations[] = {5, 0, 300};
    take_job("id: r\nbuffers: {a: {bytes: 4, resident: theta}, y: {bytes: 4}, "
             "b: {bytes: 4, resident: phi}}\n"
             "steps: [{program: saxpy, args: [{f32: 1}, a, b, {u32: 1}], elements: 1}]\n"
             "outputs: [{buffer: y}]\n");
    struct message *without = write_result(ANSWER_RESULT);
    assert_payload_lacks(without, "residents");
    job->outcome.generations = generations;
    assert_payload_has(
        write_result(ANSWER_RESULT), "], residents: {theta: 5, phi: 300}, telemetry: {");
    fail_job(ERR_BAD_LAUNCH);
    assert_payload_lacks(write_result(ANSWER_RESULT), "residents");
}

TEST(a_result_goes_to_reply_to_with_the_key_and_the_trace_of_its_job) {
    take_job(job_yaml);
    struct message *message = write_result(ANSWER_RESULT);
    assert_int_equal(message->record.route, ROUTE_RESULT);
    assert_string_equal(message->record.topic, "elsewhere");
    assert_true(message->record.has_key);
    assert_true(slice_is_text(message->record.key, "key"));
    assert_headers(message,
        "content-type: application/msgpack\ngpu-worker-job-id: one\ngpu-worker-status: ok\n"
        "gpu-worker-source: jobs/2/7000000000\ntraceparent: T\ntracestate: S\n");
}

TEST(a_result_without_reply_to_and_key_goes_to_the_topic_of_its_route_without_one) {
    take_job(job_yaml);
    job->reply_to = (struct slice){0};
    job->delivery->has_key = false;
    job->delivery->key = (struct slice){0};
    const struct message *message = write_result(ANSWER_RESULT);
    assert_null(message->record.topic);
    assert_false(message->record.has_key);
}

TEST(an_error_instead_of_a_refused_result_goes_to_the_results_with_key_and_trace) {
    take_job(job_yaml);
    fail_job(ERR_PUBLISH_REFUSED);
    struct message *message = write_result(ANSWER_ERROR);
    assert_int_equal(message->record.route, ROUTE_RESULT);
    assert_null(message->record.topic);
    assert_true(message->record.has_key);
    assert_headers(message,
        "content-type: application/msgpack\ngpu-worker-job-id: one\ngpu-worker-status: error\n"
        "gpu-worker-source: jobs/2/7000000000\ntraceparent: T\ntracestate: S\n");
}

TEST(a_bare_error_has_of_the_senders_only_the_id) {
    take_job(job_yaml);
    fail_job(ERR_PUBLISH_REFUSED);
    struct message *message = write_result(ANSWER_BARE_ERROR);
    assert_null(message->record.topic);
    assert_false(message->record.has_key);
    assert_int_equal(message->record.key.size, 0);
    assert_headers(message,
        "content-type: application/msgpack\ngpu-worker-job-id: one\ngpu-worker-status: error\n"
        "gpu-worker-source: jobs/2/7000000000\n");
    assert_payload_has(message, "{v: 1, id: 'one', status: 'error', ");
}

TEST(an_answer_written_into_the_room_of_another_has_nothing_of_it) {
    take_job(job_yaml);
    struct message *message = write_result(ANSWER_RESULT);
    fail_job(ERR_PUBLISH_REFUSED);
    struct message *fresh = write_result(ANSWER_ERROR);
    assert_int_equal(message_write_result(message, ANSWER_ERROR, &identity, &err), ERR_OK);
    assert_null(message->record.topic);
    assert_int_equal(message->answer, ANSWER_ERROR);
    assert_int_equal(message->record.header_count, fresh->record.header_count);
    char *expected = payload_text(&fresh->record);
    assert_payload(message, expected);
    free(expected);
}

TEST(a_result_fills_its_room_to_the_last_byte_and_never_passes_it) {
    take_job(job_yaml);
    size_t bytes = write_result(ANSWER_RESULT)->record.payload.size;
    struct message *exact = message_reserve_result(job, bytes);
    struct message *short_by_one = message_reserve_result(job, bytes - 1);
    assert_int_equal(message_write_result(exact, ANSWER_RESULT, &identity, &err), ERR_OK);
    assert_int_equal(exact->record.payload.size, bytes);
    assert_int_equal(
        message_write_result(short_by_one, ANSWER_RESULT, &identity, &err), ERR_INTERNAL);
    char expected[64];
    snprintf(expected, sizeof expected, "larger than the %zu bytes", bytes - 1);
    assert_non_null(strstr(err.message, expected));
}

TEST(a_result_has_room_for_topics_of_any_length) {
    static char topic[5000];
    memset(topic, 't', sizeof topic - 1);
    take_job(job_yaml);
    job->delivery->position.topic = topic;
    job->reply_to = slice_of_text(topic);
    struct message *message = write_result(ANSWER_RESULT);
    assert_string_equal(message->record.topic, topic);
    assert_int_equal(
        message->record.headers[3].value.size, strlen(topic) + strlen("/2/7000000000"));
}

/* --- dead letters --- */

#define DLQ                                                                                        \
    "dlq.error.code: bad_launch\ndlq.error.message: too many blocks; use fewer blocks\n"           \
    "dlq.attempts: 1\ndlq.source.topic: jobs\ndlq.source.partition: 2\n"                           \
    "dlq.source.offset: 7000000000\ndlq.worker: host/3\n"

TEST(a_letter_is_the_message_as_it_came_and_then_why_and_whence) {
    take_job(job_yaml);
    fail_job(ERR_BAD_LAUNCH);
    struct message *message = write_letter(ANSWER_LETTER);
    assert_int_equal(message->record.payload.size, job->delivery->payload.size);
    assert_memory_equal(
        message->record.payload.data, job->delivery->payload.data, job->delivery->payload.size);
    assert_true(message->record.has_key);
    assert_true(slice_is_text(message->record.key, "key"));
    assert_headers(message,
        "mine: M\ntraceparent: first\ntraceparent: T\ntracestate: S\n"
        "content-type: application/msgpack\ngpu-worker-job-id: one\ngpu-worker-status: dead\n"
        "gpu-worker-source: jobs/2/7000000000\n" DLQ);
}

TEST(a_letter_of_what_is_no_job_has_no_id) {
    const struct delivery message = a_message(slice_of_text("\xc1"));
    take(&message);
    fail_job(ERR_BAD_LAUNCH);
    assert_headers(write_letter(ANSWER_LETTER),
        "mine: M\ntraceparent: first\ntraceparent: T\ntracestate: S\n"
        "content-type: application/msgpack\ngpu-worker-status: dead\n"
        "gpu-worker-source: jobs/2/7000000000\n" DLQ);
}

TEST(a_letter_counts_all_attempts_and_does_not_join_what_is_not_there) {
    take_job(job_yaml);
    fail_job(ERR_BAD_LAUNCH);
    job->retry_count = 3;
    job->delivery->failed_attempts = 5;
    job->outcome.err.fix[0] = 0;
    struct message *message = write_letter(ANSWER_LETTER);
    assert_string_equal(header_of(message, "dlq.attempts"), "9");
    assert_string_equal(header_of(message, "dlq.error.message"), "too many blocks");
}

TEST(a_letter_has_room_for_the_longest_texts) {
    static char topic[3000], host[3000];
    const struct identity long_identity = {
        .host = host, .device = "d", .device_index = UINT32_MAX, .version = "1"};
    memset(topic, 't', sizeof topic - 1);
    memset(host, 'h', sizeof host - 1);
    take_job(job_yaml);
    fail_job(ERR_BAD_LAUNCH);
    memset(job->outcome.err.message, 'm', sizeof job->outcome.err.message - 1);
    memset(job->outcome.err.fix, 'f', sizeof job->outcome.err.fix - 1);
    job->delivery->position =
        (struct position){.topic = topic, .partition = INT32_MIN, .offset = INT64_MIN};
    struct message *message = message_of_dead_letter(job, ANSWER_COORDINATES, &long_identity);
    assert_non_null(message);
    const struct header *why = &message->record.headers[message->record.header_count - 7];
    assert_true(slice_is_text(why->name, "dlq.error.message"));
    assert_int_equal(why->value.size, /* "; ", and both without their NUL */
        sizeof job->outcome.err.message + sizeof job->outcome.err.fix);
}

/* --- what letters leave out --- */

/* A letter of a message whose parts have so many bytes; the one header's name has 4 of its own. */
static struct message *letter_of(
    enum answer answer, size_t payload_bytes, size_t key_bytes, size_t header_bytes) {
    static uint8_t bytes[VALUE_BYTES];
    const struct header header = {slice_of_text("mine"), slice_of(bytes, header_bytes - 4)};
    struct delivery message = a_message(slice_of(bytes, payload_bytes));
    message.key = slice_of(bytes, key_bytes);
    message.header_count = 1;
    message.headers = &header;
    job_destroy(job);
    take(&message);
    fail_job(ERR_BAD_MESSAGE);
    return write_letter(answer);
}

static void assert_cut(enum answer answer, size_t max) {
    static const char *const texts[] = {"", "payload", "key", "payload,key", "headers",
        "payload,headers", "key,headers", "payload,key,headers"};
    for (unsigned cut = 0; cut < 8; cut++) {
        struct message *message =
            letter_of(answer, max + (cut & 1), max + (cut >> 1 & 1), max + (cut >> 2 & 1));
        assert_string_equal(header_of(message, "dlq.truncated"), texts[cut]);
        assert_int_equal(message->record.payload.size, (cut & 1) != 0 ? 0 : max);
        assert_int_equal(message->record.has_key, (cut & 2) == 0);
        assert_int_equal(message->record.key.size, (cut & 2) != 0 ? 0 : max);
        assert_int_equal(slice_is_text(message->record.headers[0].name, "mine"), (cut & 4) == 0);
    }
}

TEST(a_tiny_letter_leaves_out_each_part_that_has_more_than_256_bytes_and_says_which) {
    assert_cut(ANSWER_TINY_LETTER, 256);
}

TEST(a_short_letter_leaves_out_each_part_that_has_more_than_16_kib_and_says_which) {
    assert_cut(ANSWER_SHORT_LETTER, 16384);
}

TEST(a_whole_letter_leaves_nothing_out_however_long) {
    struct message *message = letter_of(ANSWER_LETTER, VALUE_BYTES, VALUE_BYTES, VALUE_BYTES);
    assert_string_equal(header_of(message, "dlq.truncated"), "");
    assert_int_equal(message->record.payload.size, VALUE_BYTES);
    assert_int_equal(message->record.key.size, VALUE_BYTES);
}

TEST(headers_are_taken_from_the_first_on_while_all_of_them_together_fit) {
    static uint8_t bytes[256];
    const struct header headers[] = {{slice_of_text("a"), slice_of(bytes, 100)},
        {slice_of_text("b"), slice_of(bytes, 154)}, /* to 256 bytes */
        {slice_of_text("c"), slice_of(bytes, 0)}};
    struct delivery message = a_message(slice_of(bytes, 1));
    message.headers = headers;
    message.header_count = 2;
    take(&message);
    fail_job(ERR_BAD_MESSAGE);
    assert_string_equal(header_of(write_letter(ANSWER_TINY_LETTER), "dlq.truncated"), "");
    job_destroy(job);
    message.header_count = 3;
    take(&message);
    fail_job(ERR_BAD_MESSAGE);
    struct message *letter = write_letter(ANSWER_TINY_LETTER);
    assert_string_equal(header_of(letter, "dlq.truncated"), "headers");
    assert_true(slice_is_text(letter->record.headers[1].name, "b"));
    assert_true(slice_is_text(letter->record.headers[2].name, "content-type"));
}

TEST(a_letter_says_that_headers_were_left_out_when_the_message_was_taken) {
    struct delivery message = a_message(slice_of_text("x"));
    message.is_cut = true;
    take(&message);
    fail_job(ERR_BAD_MESSAGE);
    struct message *letter = write_letter(ANSWER_LETTER);
    assert_string_equal(header_of(letter, "dlq.truncated"), "headers");
    assert_true(slice_is_text(letter->record.headers[0].name, "mine"));
}

TEST(coordinates_have_the_place_of_the_message_as_their_key) {
    take_job(job_yaml);
    fail_job(ERR_BAD_LAUNCH);
    struct message *message = write_letter(ANSWER_COORDINATES);
    assert_true(message->record.has_key);
    assert_true(slice_is_text(message->record.key, "jobs/2/7000000000"));
    assert_int_equal(message->record.payload.size, 0);
    assert_headers(message,
        "content-type: application/msgpack\ngpu-worker-job-id: one\ngpu-worker-status: dead\n"
        "gpu-worker-source: jobs/2/7000000000\n" DLQ "dlq.truncated: payload,key,headers\n");
}

TEST(a_letter_of_a_message_without_a_key_has_none_and_does_not_call_it_cut) {
    struct delivery message = a_message(slice_of_text("x"));
    message.has_key = false;
    message.key = (struct slice){0};
    take(&message);
    fail_job(ERR_BAD_MESSAGE);
    struct message *letter = write_letter(ANSWER_TINY_LETTER);
    assert_false(letter->record.has_key);
    assert_string_equal(header_of(letter, "dlq.truncated"), "");
}

#define M(name) cmocka_unit_test_teardown(name, tear_down)

RUN_TESTS(M(a_result_says_all_that_came_of_the_job),
    M(only_a_timed_job_says_what_it_took_on_the_device),
    M(an_error_says_what_happened_how_to_fix_it_and_who_tries_again_and_has_no_outputs),
    M(an_error_that_the_worker_tries_again_says_so),
    M(residents_are_named_with_the_generations_that_the_job_left),
    M(a_result_goes_to_reply_to_with_the_key_and_the_trace_of_its_job),
    M(a_result_without_reply_to_and_key_goes_to_the_topic_of_its_route_without_one),
    M(an_error_instead_of_a_refused_result_goes_to_the_results_with_key_and_trace),
    M(a_bare_error_has_of_the_senders_only_the_id),
    M(an_answer_written_into_the_room_of_another_has_nothing_of_it),
    M(a_result_fills_its_room_to_the_last_byte_and_never_passes_it),
    M(a_result_has_room_for_topics_of_any_length),
    M(a_letter_is_the_message_as_it_came_and_then_why_and_whence),
    M(a_letter_of_what_is_no_job_has_no_id),
    M(a_letter_counts_all_attempts_and_does_not_join_what_is_not_there),
    M(a_letter_has_room_for_the_longest_texts),
    M(a_tiny_letter_leaves_out_each_part_that_has_more_than_256_bytes_and_says_which),
    M(a_short_letter_leaves_out_each_part_that_has_more_than_16_kib_and_says_which),
    M(a_whole_letter_leaves_nothing_out_however_long),
    M(headers_are_taken_from_the_first_on_while_all_of_them_together_fit),
    M(a_letter_says_that_headers_were_left_out_when_the_message_was_taken),
    M(coordinates_have_the_place_of_the_message_as_their_key),
    M(a_letter_of_a_message_without_a_key_has_none_and_does_not_call_it_cut))
