/* A sender's headers with the names of the worker's own say nothing in a dead letter. */
#include "broker/dead_letter.h"
#include "publish/message.h"

#include "support/jobs.h"
#include "testing.h"

static const struct identity identity = {
    .host = "host", .device = "GPU", .device_index = 3, .version = "1.2.3"};

TEST(what_a_sender_calls_by_the_workers_names_is_not_copied) {
    static const char *const names[] = {"mine", "gpu-worker-job-id", "gpu-worker-status",
        "gpu-worker-source", "dlq.error.code", "dlq.truncated", "dlq.source.topic", "dlq.new"};
    enum { COUNT = sizeof names / sizeof names[0] };
    struct header headers[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        headers[i] = (struct header){slice_of_text(names[i]), slice_of_text("forged")};
    const struct delivery sent = {.position = {.topic = "jobs"},
        .payload = slice_of_text("\xc1"),
        .header_count = COUNT,
        .headers = headers};
    struct job *job = job_create(delivery_create(&sent));
    struct dead_letter letter;
    assert_non_null(job);
    job->outcome.code = error_set(&job->outcome.err, ERR_BAD_MESSAGE, 0, "", "it has no id");
    struct message *message = message_of_dead_letter(job, ANSWER_LETTER, &identity);
    assert_non_null(message);
    size_t forged = 0;
    for (size_t i = 0; i < message->record.header_count; i++)
        forged += slice_is_text(message->record.headers[i].value, "forged");
    assert_int_equal(forged, 1); /* its own */
    const struct delivery read = {.payload = message->record.payload,
        .header_count = message->record.header_count,
        .headers = message->record.headers};
    assert_true(dead_letter_read(&read, &letter));
    assert_int_equal(letter.id.size, 0);
    assert_true(slice_is_text(letter.code, "bad_message"));
    assert_true(slice_is_text(letter.topic, "jobs"));
    assert_false(letter.is_truncated);
    job_destroy(job);
}

RUN_TESTS(T(what_a_sender_calls_by_the_workers_names_is_not_copied))
