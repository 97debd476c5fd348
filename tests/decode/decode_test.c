#include "decode/decode.h"

#include <malloc.h>
#include <msgpack.h>
#include <stdlib.h>

#include "decoding.h"
#include "testing.h"

static struct error err;

/* Packs by way of msgpack-c, so that the decoder is not tested by its own reading of the format. */
struct message {
    msgpack_sbuffer buffer;
    msgpack_packer packer;
};

static void message_init(struct message *message) {
    msgpack_sbuffer_init(&message->buffer);
    msgpack_packer_init(&message->packer, &message->buffer, msgpack_sbuffer_write);
}

static void pack_text(struct message *message, const char *text) {
    msgpack_pack_str(&message->packer, strlen(text));
    msgpack_pack_str_body(&message->packer, text, strlen(text));
}

static void pack_uint(struct message *message, const char *key, uint64_t value) {
    pack_text(message, key);
    msgpack_pack_uint64(&message->packer, value);
}

static struct slice message_bytes(const struct message *message) {
    return slice_of(message->buffer.data, message->buffer.size);
}

/* {v, id, buffers: {x: {bytes: 16}}, outputs: []} and the keys that follow. */
static void pack_head(struct message *message, uint32_t more_keys) {
    message_init(message);
    msgpack_pack_map(&message->packer, 4 + more_keys);
    pack_uint(message, "v", 1);
    pack_text(message, "id");
    pack_text(message, "job-1");
    pack_text(message, "buffers");
    msgpack_pack_map(&message->packer, 1);
    pack_text(message, "x");
    msgpack_pack_map(&message->packer, 1);
    pack_uint(message, "bytes", 16);
    pack_text(message, "outputs");
    msgpack_pack_array(&message->packer, 0);
}

/* steps: [{program: p, elements: 1, args: [...]}], where the caller packs the arguments. */
static void pack_step(struct message *message, uint32_t args) {
    pack_text(message, "steps");
    msgpack_pack_array(&message->packer, 1);
    msgpack_pack_map(&message->packer, 3);
    pack_text(message, "program");
    pack_text(message, "p");
    pack_uint(message, "elements", 1);
    pack_text(message, "args");
    msgpack_pack_array(&message->packer, args);
}

static const struct decode_limits roomy = {
    .message_bytes_max = (size_t)64 << 20,
    .arena_bytes_max = (size_t)64 << 20,
    .buffers_max = 1 << 20,
    .steps_max = 1 << 20,
    .args_max = 1 << 20,
    .outputs_max = 1 << 20,
    .writes_max = 1 << 20,
    .buffer_bytes_max = UINT64_MAX,
    .array_bytes_max = UINT64_MAX,
    .launches_max = UINT32_MAX,
    .instances_max = UINT32_MAX,
    .timeout_ms_max = UINT32_MAX,
};

TEST(a_whole_job_is_read_key_by_key) {
    struct message message;
    struct job *job;
    pack_head(&message, 6);
    pack_step(&message, 3);
    pack_text(&message, "x");
    msgpack_pack_map(&message.packer, 1);
    pack_text(&message, "f32");
    msgpack_pack_float(&message.packer, 2.0f);
    msgpack_pack_map(&message.packer, 1);
    pack_text(&message, "words");
    msgpack_pack_array(&message.packer, 2);
    msgpack_pack_uint32(&message.packer, 7);
    msgpack_pack_uint32(&message.packer, UINT32_MAX);
    pack_uint(&message, "repeat", 3);
    pack_text(&message, "timing");
    msgpack_pack_true(&message.packer);
    pack_uint(&message, "deadline_ms", 1800000000000);
    pack_uint(&message, "timeout_ms", 250);
    pack_text(&message, "reply_to");
    pack_text(&message, "mine");

    assert_int_equal(decode_bytes(message_bytes(&message), &roomy, &job, &err), ERR_OK);
    assert_true(slice_is_text(job->id, "job-1"));
    assert_true(slice_is_text(job->reply_to, "mine"));
    assert_int_equal(job->repeat, 3);
    assert_true(job->timing);
    assert_int_equal(job->deadline_unix_ms, 1800000000000);
    assert_int_equal(job->timeout_ms, 250);
    assert_int_equal(job->buffer_count, 1);
    assert_int_equal(job->buffers[0].source, BUFFER_FILL);
    assert_int_equal(job->buffers[0].bytes, 16);
    assert_int_equal(job->step_count, 1);
    const struct job_step *step = &job->steps[0];
    assert_true(slice_is_text(step->program, "p"));
    assert_int_equal(step->elements, 1);
    assert_int_equal(step->iterations, 1);
    assert_false(step->has_block);
    assert_int_equal(step->arg_count, 3);
    assert_int_equal(step->args[0].kind, ARG_BUFFER);
    assert_int_equal(step->args[0].buffer, 0);
    assert_int_equal(step->args[1].kind, ARG_F32);
    assert_int_equal(step->args[1].bits, 0x40000000);
    assert_int_equal(step->args[2].kind, ARG_WORDS);
    assert_int_equal(step->args[2].word_count, 2);
    assert_int_equal(step->args[2].words[1], UINT32_MAX);
    job_destroy(job);
    msgpack_sbuffer_destroy(&message.buffer);
}

TEST(what_is_not_given_has_its_default) {
    struct message message;
    struct job *job;
    pack_head(&message, 1);
    pack_step(&message, 0);
    assert_int_equal(decode_bytes(message_bytes(&message), &roomy, &job, &err), ERR_OK);
    assert_int_equal(job->repeat, 1);
    assert_int_equal(job->timeout_ms, 0);
    assert_int_equal(job->deadline_unix_ms, 0);
    assert_int_equal(job->reply_to.size, 0);
    assert_int_equal(job->steps[0].entry.size, 0);
    assert_false(job->timing);
    job_destroy(job);
    msgpack_sbuffer_destroy(&message.buffer);
}

TEST(a_refused_job_still_says_who_to_answer_and_where) {
    struct message message;
    struct job *job;
    pack_head(&message, 3);
    pack_step(&message, 0);
    pack_text(&message, "reply_to");
    pack_text(&message, "mine");
    pack_uint(&message, "nonsense", 1);
    assert_int_equal(decode_bytes(message_bytes(&message), &roomy, &job, &err), ERR_BAD_JOB);
    assert_non_null(job);
    assert_true(slice_is_text(job->id, "job-1"));
    assert_true(slice_is_text(job->reply_to, "mine"));
    assert_int_equal(job->buffer_count, 0);
    assert_int_equal(job->step_count, 0);
    assert_non_null(strstr(err.message, "\"nonsense\""));
    job_destroy(job);
    msgpack_sbuffer_destroy(&message.buffer);
}

TEST(a_message_over_the_limit_is_answered_if_it_has_an_id) {
    struct message message;
    struct job *job;
    struct decode_limits small = roomy;
    pack_head(&message, 1);
    pack_step(&message, 0);
    small.message_bytes_max = message.buffer.size - 1;
    assert_int_equal(decode_bytes(message_bytes(&message), &small, &job, &err), ERR_TOO_LARGE);
    assert_true(slice_is_text(job->id, "job-1"));
    assert_non_null(strstr(err.message, "limits.message_bytes"));
    job_destroy(job);
    small.message_bytes_max++;
    assert_int_equal(decode_bytes(message_bytes(&message), &small, &job, &err), ERR_OK);
    job_destroy(job);
    msgpack_sbuffer_destroy(&message.buffer);
}

TEST(an_undecodable_message_keeps_its_bytes_and_has_no_id) {
    const struct delivery message = {.payload = slice_of("\xc0", 1)};
    struct job *job = job_create(delivery_create(&message));
    assert_non_null(job);
    assert_int_equal(decode_job(job, &roomy, &err), ERR_BAD_MESSAGE);
    assert_int_equal(job->id.size, 0);
    assert_true(slice_equal(job->delivery->payload, message.payload));
    job_destroy(job);
}

TEST(a_tombstone_is_undecodable) {
    struct job *job;
    assert_int_equal(decode_bytes(slice_of(NULL, 0), &roomy, &job, &err), ERR_BAD_MESSAGE);
    assert_null(job);
}

TEST(a_message_of_text_is_told_from_damaged_msgpack) {
    static const struct {
        const char *payload, *part;
    } cases[] = {{"{\"id\": \"a\", \"v\": 1}", "is JSON, "}, {"\n [1, 2]", "is JSON, "},
        {"id: a\nv: 1\n", "is text, "}, {"\x01\x02\x03", "ends at byte 1"},
        {"\n\x05\x01jobid", "ends at byte 1"}, {"\x81\xa2id", "cut off"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct job *job;
        assert_int_equal(
            decode_bytes(slice_of_text(cases[i].payload), &roomy, &job, &err), ERR_BAD_MESSAGE);
        assert_non_null(strstr(err.message, cases[i].part));
        assert_int_equal(strstr(err.fix, "gpu-worker submit") != NULL, i < 3);
    }
}

TEST(a_job_that_needs_more_memory_than_allowed_is_too_large) {
    struct message message;
    struct job *job;
    struct decode_limits small = roomy;
    /* 1000 arguments take 1000 x 16 bytes and more in the arena, and 16 each to read */
    pack_head(&message, 1);
    pack_step(&message, 1000);
    for (int i = 0; i < 1000; i++) pack_text(&message, "x");
    small.arena_bytes_max = 1040 * 16;
    assert_int_equal(decode_bytes(message_bytes(&message), &small, &job, &err), ERR_TOO_LARGE);
    assert_non_null(strstr(err.message, "that a decoded job may take"));
    job_destroy(job);
    small.arena_bytes_max = 900 * 16;
    assert_int_equal(decode_bytes(message_bytes(&message), &small, &job, &err), ERR_TOO_LARGE);
    assert_non_null(strstr(err.message, "msgpack values"));
    job_destroy(job);
    msgpack_sbuffer_destroy(&message.buffer);
}

/* Memory is counted in plain gcc builds only: the sanitizers bring allocators of their own. */
#if defined(__GLIBC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) &&                 \
    !defined(__SANITIZE_THREAD__)
#define COUNTS_MEMORY
#endif

#ifdef COUNTS_MEMORY
static size_t live_bytes, peak_bytes;

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *pointer, size_t size);
void __libc_free(void *pointer);

static void *count(void *pointer) {
    if (pointer != NULL) live_bytes += malloc_usable_size(pointer);
    if (live_bytes > peak_bytes) peak_bytes = live_bytes;
    return pointer;
}

void *malloc(size_t size) {
    return count(__libc_malloc(size));
}

void *calloc(size_t items, size_t size) {
    return count(__libc_calloc(items, size));
}

void *realloc(void *pointer, size_t size) {
    if (pointer != NULL) live_bytes -= malloc_usable_size(pointer);
    return count(__libc_realloc(pointer, size));
}

void free(void *pointer) {
    if (pointer != NULL) live_bytes -= malloc_usable_size(pointer);
    __libc_free(pointer);
}

static size_t peak_of_decoding(struct slice payload, const struct decode_limits *limits) {
    const struct delivery message = {.payload = payload};
    struct delivery *delivery = delivery_create(&message);
    size_t before = live_bytes;
    peak_bytes = live_bytes;
    struct job *job = job_create(delivery);
    (void)!decode_job(job, limits, &err);
    size_t peak = peak_bytes - before;
    job_destroy(job);
    return peak;
}

enum { MEBIBYTE = 1 << 20, SLACK = 2 * JOB_BYTES };

TEST(a_message_of_bare_values_costs_16_bytes_a_value_to_read) {
    struct message message;
    pack_head(&message, 2);
    pack_step(&message, 0);
    pack_text(&message, "nils");
    msgpack_pack_array(&message.packer, MEBIBYTE);
    for (int i = 0; i < MEBIBYTE; i++) msgpack_pack_nil(&message.packer);
    size_t peak = peak_of_decoding(message_bytes(&message), &roomy);
    assert_in_range(peak, 16 * MEBIBYTE, 16 * message.buffer.size + SLACK);
    msgpack_sbuffer_destroy(&message.buffer);
}

TEST(small_arrays_and_maps_cost_no_more_than_their_values) {
    struct message message;
    pack_head(&message, 2);
    pack_step(&message, 0);
    pack_text(&message, "nested");
    msgpack_pack_array(&message.packer, MEBIBYTE / 4);
    for (int i = 0; i < MEBIBYTE / 4; i++) {
        msgpack_pack_map(&message.packer, 1); /* {nil: [nil]}: four bytes */
        msgpack_pack_nil(&message.packer);
        msgpack_pack_array(&message.packer, 1);
        msgpack_pack_nil(&message.packer);
    }
    size_t peak = peak_of_decoding(message_bytes(&message), &roomy);
    assert_in_range(peak, 16 * MEBIBYTE, 16 * message.buffer.size + SLACK);
    msgpack_sbuffer_destroy(&message.buffer);
}

TEST(reading_stays_below_the_ceiling_whatever_a_message_holds) {
    struct message message;
    struct decode_limits limits = roomy;
    limits.arena_bytes_max = 1 << 16;
    pack_head(&message, 1);
    pack_step(&message, 1);
    msgpack_pack_map(&message.packer, 1);
    pack_text(&message, "words");
    msgpack_pack_array(&message.packer, MEBIBYTE);
    for (int i = 0; i < MEBIBYTE; i++) msgpack_pack_uint8(&message.packer, 1);
    size_t peak = peak_of_decoding(message_bytes(&message), &limits);
    assert_in_range(peak, 0, SLACK);
    assert_int_equal(err.code, ERR_TOO_LARGE);
    msgpack_sbuffer_destroy(&message.buffer);
}

TEST(claims_of_a_cut_message_cost_nothing) {
    size_t peak = peak_of_decoding(slice_of("\x81\xa1x\xdd\xff\xff\xff\xff", 8), &roomy);
    assert_in_range(peak, 0, SLACK);
    assert_int_equal(err.code, ERR_BAD_MESSAGE);
}
#endif

TEST(datatypes_are_found_by_their_protocol_names) {
    assert_int_equal(datatype_find(slice_of_text("BF16")), DATATYPE_BF16);
    assert_int_equal(datatype_bytes(DATATYPE_BF16), 2);
    assert_string_equal(datatype_name(DATATYPE_INT64), "INT64");
    assert_int_equal(datatype_find(slice_of_text("bf16")), DATATYPE_NONE);
    assert_int_equal(datatype_find(slice_of_text("")), DATATYPE_NONE);
}

RUN_TESTS(T(a_whole_job_is_read_key_by_key), T(what_is_not_given_has_its_default),
    T(a_refused_job_still_says_who_to_answer_and_where),
    T(a_message_over_the_limit_is_answered_if_it_has_an_id),
    T(an_undecodable_message_keeps_its_bytes_and_has_no_id), T(a_tombstone_is_undecodable),
    T(a_message_of_text_is_told_from_damaged_msgpack),
    T(a_job_that_needs_more_memory_than_allowed_is_too_large),
#ifdef COUNTS_MEMORY
    T(a_message_of_bare_values_costs_16_bytes_a_value_to_read),
    T(small_arrays_and_maps_cost_no_more_than_their_values),
    T(reading_stays_below_the_ceiling_whatever_a_message_holds),
    T(claims_of_a_cut_message_cost_nothing),
#endif
    T(datatypes_are_found_by_their_protocol_names))
