/* A result of an array some of whose instances have failed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/print_json.h"
#include "publish/message.h"
#include "state/bounds.h"
#include "support/jobs.h"
#include "testing.h"

enum { PAYLOAD_MAX = 2048 };

static const struct identity identity = {.host = "host", .device = "GPU", .version = "1.2.3"};
static const struct slice output = {(const uint8_t *)"\1\0\0\0\2", 5};
static const struct plan_output in_memory;
static const struct plan plan = {.outputs = &in_memory};
static struct failed_instance failed[STATE_CULPRITS_MAX];
static struct job *job;
static char *text;

static void make_job(size_t count, const char *message) {
    job = test_job("id: one\ncount: 5\nbuffers: {y: {each: true, bytes: 1}}\n"
                   "steps: [{program: saxpy, args: [y], elements: 1}]\noutputs: [{buffer: y}]\n");
    for (uint32_t i = 0; i < count; i++)
        failed[i] = (struct failed_instance){i, ERR_GPU_HANG, message};
    job->outcome = (struct outcome){.outputs = &output, .failed = failed, .failed_count = count};
    job->outcome.code =
        error_set(&job->outcome.err, ERR_INSTANCES_FAILED, 0, "correct them", "some failed");
}

static int tear_down(void **state) {
    job_destroy(job);
    free(text);
    text = NULL;
    return 0;
}

/* As JSON. */
static const char *write_answer(enum answer answer) {
    struct error err;
    size_t size;
    struct message *message = message_reserve_around(
        job, &plan, PAYLOAD_MAX + message_failed_bytes(job->outcome.failed_count));
    assert_non_null(message);
    memcpy(job_output_place(job, 0), output.data, output.size);
    const struct slice found = slice_of(job_output_place(job, 0), output.size);
    job->outcome.outputs = &found;
    if (message_write_result(message, answer, &identity, &err) != ERR_OK)
        fail_msg("%s", err.message);
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    print_message_json(message->record.payload, out);
    fclose(out);
    return text;
}

static void assert_has(const char *part) {
    if (strstr(text, part) == NULL) fail_msg("%s is not in %s", part, text);
}

TEST(a_partial_result_has_outputs_an_error_and_the_instances_that_failed) {
    make_job(2, "over its time");
    write_answer(ANSWER_RESULT);
    assert_has("\"status\": \"partial\", \"error\": {\"code\": \"instances_failed\"");
    assert_has("\"failed\": [{\"instance\": 0, \"code\": \"gpu_hang\", \"message\": \"over its "
               "time\"}, {\"instance\": 1,");
    assert_has("\"outputs\": [{\"name\": \"y\"");
    assert_has("0100000002");
}

TEST(as_many_failures_as_there_may_be_with_the_longest_messages_fit_their_room) {
    char message[STATE_MESSAGE_BYTES];
    memset(message, 'm', sizeof message - 1);
    message[sizeof message - 1] = 0;
    make_job(STATE_CULPRITS_MAX, message);
    for (uint32_t i = 0; i < STATE_CULPRITS_MAX; i++) failed[i].instance = UINT32_MAX - i;
    write_answer(ANSWER_RESULT);
    assert_has("\"instance\": 4294967264,");
}

#define I(name) cmocka_unit_test_teardown(name, tear_down)
RUN_TESTS(I(a_partial_result_has_outputs_an_error_and_the_instances_that_failed),
    I(as_many_failures_as_there_may_be_with_the_longest_messages_fit_their_room))
