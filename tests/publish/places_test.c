/* A result of an array, whose outputs are in their places before the rest of it is written. */
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
static struct job *job;

static int set_up(void **state) {
    job = test_job(
        "id: one\ncount: 100\nbuffers:\n  x: {each: true, bytes: 8, datatype: FP32, shape: [2]}\n"
        "  y: {each: true, bytes: 1}\n"
        "steps: [{program: saxpy, args: [y], elements: 1}]\n"
        "outputs: [{buffer: x}, {buffer: y}]\n");
    memset(outputs, 0, sizeof outputs);
    return 0;
}

static int tear_down(void **state) {
    job_destroy(job);
    return 0;
}

static struct message *reserve(void) {
    struct message *message = message_reserve_array(job, &plan, PAYLOAD_MAX);
    assert_non_null(message);
    for (uint32_t i = 0; i < 2; i++) {
        found[i] = slice_of(job->places[i], job_output_bytes(job, i));
        if (job->places[i] != NULL) memset(job->places[i], 'x' + (int)i, found[i].size);
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

/* The same result in a room where nothing has a place. */
static struct slice write_copied(void) {
    struct message *message = message_reserve_result(job, PAYLOAD_MAX);
    assert_non_null(message);
    return write_result(message);
}

static void assert_same(struct slice one, struct slice other) {
    assert_int_equal(one.size, other.size);
    assert_memory_equal(one.data, other.data, one.size);
}

TEST(outputs_are_in_the_result_where_slices_put_them) {
    struct slice payload = write_result(reserve());
    for (size_t i = 0; i < 2; i++)
        assert_true(job->places[i] >= payload.data &&
                    job->places[i] + found[i].size <= payload.data + payload.size);
    assert_same(payload, write_copied());
}

TEST(a_result_may_be_written_again) {
    struct message *message = reserve();
    struct slice first = write_result(message);
    assert_same(write_result(message), first);
}

TEST(an_output_that_goes_to_the_blob_store_has_no_place) {
    outputs[0].is_spooled = true;
    reserve();
    assert_null(job->places[0]);
    assert_non_null(job->places[1]);
}

TEST(an_output_with_less_before_it_than_was_planned_moves_up) {
    outputs[0].is_spooled = true; /* a name in the blob store takes more than no bytes */
    struct message *message = reserve();
    found[0].size = 0;
    struct slice copied = write_copied();
    assert_same(write_result(message), copied);
}

TEST(an_error_has_no_outputs_and_begins_where_its_room_does) {
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

#define P(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
RUN_TESTS(P(outputs_are_in_the_result_where_slices_put_them), P(a_result_may_be_written_again),
    P(an_output_that_goes_to_the_blob_store_has_no_place),
    P(an_output_with_less_before_it_than_was_planned_moves_up),
    P(an_error_has_no_outputs_and_begins_where_its_room_does),
    P(what_comes_before_the_outputs_may_not_be_larger_than_its_room))
