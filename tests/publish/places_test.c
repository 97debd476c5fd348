/* A result whose outputs are in their places before the rest of it is written. */
#include <stdlib.h>
#include <string.h>

#include "publish/message.h"
#include "support/jobs.h"
#include "testing.h"

enum { PAYLOAD_MAX = 4096 };

static const struct identity identity = {.host = "host", .device = "GPU", .version = "1.2.3"};
static struct plan_output outputs[2];
static const struct plan plan = {.outputs = outputs};
static struct slice found[2];
static uint8_t *memory; /* of a single job: pinned in the worker */
static struct job *job;

static int set_up_job(const char *yaml) {
    job = test_job(yaml);
    memory = NULL;
    memset(outputs, 0, sizeof outputs);
    return 0;
}

static int set_up(void **state) {
    return set_up_job(
        "id: one\ncount: 100\nbuffers:\n  x: {each: true, bytes: 8, datatype: FP32, shape: [2]}\n"
        "  y: {each: true, bytes: 1}\n"
        "steps: [{program: saxpy, args: [y], elements: 1}]\n"
        "outputs: [{buffer: x}, {buffer: y}]\n");
}

static int set_up_single(void **state) {
    return set_up_job("id: one\nbuffers:\n  x: {bytes: 800, datatype: FP32, shape: [2, 100]}\n"
                      "  y: {bytes: 100}\n"
                      "steps: [{program: saxpy, args: [y], elements: 1}]\n"
                      "outputs: [{buffer: x}, {buffer: y}]\n");
}

static int tear_down(void **state) {
    free(memory);
    job_destroy(job);
    return 0;
}

/* A single job has its room once it has run. */
static void get_room(void) {
    assert_null(job->room.data);
    memory = aligned_alloc(PLAN_ALIGNMENT, job->room.bytes);
    assert_non_null(memory);
    memset(memory, 0xee, job->room.bytes);
    job->room.data = memory;
}

static struct message *reserve(void) {
    struct message *message = message_reserve_around(job, &plan, PAYLOAD_MAX);
    assert_non_null(message);
    if (job->instances == 0) get_room();
    for (uint32_t i = 0; i < 2; i++) {
        found[i] = slice_of(job_output_place(job, i), job_output_bytes(job, i));
        if (!outputs[i].is_spooled) memset(job_output_place(job, i), 'x' + (int)i, found[i].size);
    }
    job->outcome = (struct outcome){.outputs = found};
    return message;
}

static struct slice write_result(struct message *message) {
    struct error err;
    if (message_write_result(message, ANSWER_RESULT, &identity, &err) != ERR_OK)
        fail_msg("%s", err.message);
    return message->record.payload;
}

/* Encodes the same result of a job where nothing has a place. */
static struct slice write_copied(void) {
    struct result_room room = job->room;
    job->room = (struct result_room){0};
    struct message *message = message_reserve_result(job, PAYLOAD_MAX);
    assert_non_null(message);
    struct slice ret = write_result(message);
    job->room = room;
    return ret;
}

static void assert_same(struct slice one, struct slice other) {
    assert_int_equal(one.size, other.size);
    assert_memory_equal(one.data, other.data, one.size);
}

static bool is_within(struct slice part, struct slice whole) {
    return part.data >= whole.data && part.data + part.size <= whole.data + whole.size;
}

TEST(outputs_are_in_the_result_where_they_were_put) {
    struct slice payload = write_result(reserve());
    for (size_t i = 0; i < 2; i++) assert_true(is_within(found[i], payload));
    assert_true(is_within(payload, slice_of(job->room.data, job->room.bytes)));
    assert_same(payload, write_copied());
}

TEST(the_first_output_is_aligned) {
    reserve();
    assert_int_equal(job->room.places[0] % PLAN_ALIGNMENT, 0);
}

TEST(a_result_may_be_written_again) {
    struct message *message = reserve();
    struct slice first = write_result(message);
    assert_same(write_result(message), first);
}

TEST(outputs_for_the_blob_store_stand_behind_the_result) {
    outputs[0].is_stored = true;
    struct message *message = reserve();
    const struct slice room = slice_of(job->room.data, job->room.bytes);
    const struct slice result = slice_of(room.data, message->outputs_at + PAYLOAD_MAX);
    assert_true(found[0].data >= result.data + result.size && is_within(found[0], room));
    assert_int_equal(job->room.places[0] % PLAN_ALIGNMENT, 0);
    assert_int_equal(job->room.places[1] % PLAN_ALIGNMENT, 0);
    assert_true(is_within(found[1], result));
}

TEST(an_output_of_an_array_that_goes_to_the_blob_store_takes_no_room) {
    outputs[0].is_stored = outputs[0].is_spooled = true;
    struct message *message = reserve();
    assert_true(job->room.bytes < message->outputs_at + PAYLOAD_MAX + PLAN_ALIGNMENT);
}

TEST(an_output_with_less_before_it_than_was_planned_moves_up) {
    outputs[0].is_stored = true; /* a name in the blob store takes more than no bytes */
    outputs[0].is_spooled = job->instances > 0;
    struct message *message = reserve();
    found[0].size = 0;
    struct slice copied = write_copied();
    assert_same(write_result(message), copied);
}

TEST(an_error_is_written_beside_the_room_for_outputs) {
    struct message *message = reserve();
    job->outcome = (struct outcome){0};
    job->outcome.code = error_set(&job->outcome.err, ERR_GPU_HANG, 0, "send less", "too long");
    struct slice payload = write_result(message);
    assert_ptr_equal(payload.data, message->payload);
    assert_same(payload, write_copied());
}

TEST(what_comes_before_the_outputs_may_not_be_larger_than_its_room) {
    enum { FAILED = 20 };
    struct failed_instance failed[FAILED];
    struct error err;
    char text[256] = {0};
    struct message *message = reserve();
    memset(text, 'm', sizeof text - 1);
    for (uint32_t i = 0; i < FAILED; i++)
        failed[i] = (struct failed_instance){i, ERR_GPU_HANG, text};
    job->outcome.failed = failed;
    job->outcome.failed_count = FAILED;
    job->outcome.code =
        error_set(&job->outcome.err, ERR_INSTANCES_FAILED, 0, "correct them", "some failed");
    assert_int_equal(message_write_result(message, ANSWER_RESULT, &identity, &err), ERR_INTERNAL);
}

#define ARRAY(name)                                                                                \
    { "of an array: " #name, name, set_up, tear_down, NULL }
#define SINGLE(name)                                                                               \
    { "of a large job: " #name, name, set_up_single, tear_down, NULL }
#define BOTH(name) ARRAY(name), SINGLE(name)

RUN_TESTS(BOTH(outputs_are_in_the_result_where_they_were_put), BOTH(the_first_output_is_aligned),
    BOTH(a_result_may_be_written_again), SINGLE(outputs_for_the_blob_store_stand_behind_the_result),
    ARRAY(an_output_of_an_array_that_goes_to_the_blob_store_takes_no_room),
    BOTH(an_output_with_less_before_it_than_was_planned_moves_up),
    BOTH(an_error_is_written_beside_the_room_for_outputs),
    ARRAY(what_comes_before_the_outputs_may_not_be_larger_than_its_room))
