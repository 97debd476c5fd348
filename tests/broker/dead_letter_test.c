#include "broker/dead_letter.h"

#include "testing.h"

#define HEADER(n, v)                                                                               \
    { .name = slice_of_text(n), .value = slice_of_text(v) }

/* As publish/ writes it: the sender's headers, then the worker's. */
static struct delivery letter_of(const struct header *headers, size_t count) {
    return (struct delivery){.position = {.topic = "dead", .partition = 1, .offset = 7},
        .payload = slice_of_text("job's bytes"),
        .has_key = true,
        .key = slice_of_text("key"),
        .header_count = count,
        .headers = headers};
}

static void assert_header(const struct delivery *job, size_t index, const char *n, const char *v) {
    assert_true(index < job->header_count);
    assert_true(slice_is_text(job->headers[index].name, n));
    assert_true(slice_is_text(job->headers[index].value, v));
}

TEST(a_dead_letter_says_why_and_whence) {
    const struct header headers[] = {HEADER("dlq.source.topic", "forged"),
        HEADER("gpu-worker-job-id", "job-1"), HEADER("dlq.error.code", "io"),
        HEADER("dlq.source.topic", "jobs"), HEADER("dlq.truncated", "true")};
    const struct delivery delivery = letter_of(headers, 5);
    struct dead_letter letter;
    assert_true(dead_letter_read(&delivery, &letter));
    assert_true(slice_is_text(letter.code, "io"));
    assert_true(slice_is_text(letter.id, "job-1"));
    assert_true(slice_is_text(letter.topic, "jobs"));
    assert_true(letter.is_truncated);
}

TEST(another_message_is_no_dead_letter) {
    const struct header headers[] = {HEADER("dlq.error.code", "io")};
    const struct delivery without_topic = letter_of(headers, 1), without_any = letter_of(NULL, 0);
    struct dead_letter letter;
    assert_false(dead_letter_read(&without_topic, &letter));
    assert_false(dead_letter_read(&without_any, &letter));
}

TEST(the_job_has_its_own_bytes_key_and_headers_and_its_origin) {
    const struct header headers[] = {HEADER("content-type", "sender's"), HEADER("mine", "x"),
        HEADER("mine", "y"), HEADER("traceparent", "00"), HEADER("content-type", "worker's"),
        HEADER("gpu-worker-job-id", "job-1"), HEADER("gpu-worker-status", "dead"),
        HEADER("gpu-worker-source", "jobs/3/42"), HEADER("dlq.error.code", "io"),
        HEADER("dlq.source.topic", "jobs"), HEADER("dlq.source.partition", "3"),
        HEADER("dlq.source.offset", "42"), HEADER("dlq.worker", "host/0")};
    const struct delivery letter = letter_of(headers, sizeof headers / sizeof headers[0]);
    struct delivery *job = dead_letter_create_job(&letter);
    assert_non_null(job);
    assert_true(slice_is_text(job->payload, "job's bytes"));
    assert_true(job->has_key && slice_is_text(job->key, "key"));
    assert_int_equal(job->header_count, 5);
    assert_header(job, 0, "content-type", "sender's");
    assert_header(job, 1, "mine", "x");
    assert_header(job, 2, "mine", "y");
    assert_header(job, 3, "traceparent", "00");
    assert_header(job, 4, "gpu-worker-replayed-from", "jobs/3/42");
    delivery_destroy(job);
}

TEST(what_is_replayed_again_keeps_its_first_origin) {
    const struct header headers[] = {HEADER("gpu-worker-replayed-from", "jobs/0/1"),
        HEADER("content-type", "worker's"), HEADER("dlq.error.code", "io"),
        HEADER("dlq.source.topic", "jobs"), HEADER("dlq.source.partition", "3"),
        HEADER("dlq.source.offset", "42")};
    const struct delivery letter = letter_of(headers, sizeof headers / sizeof headers[0]);
    struct delivery *job = dead_letter_create_job(&letter);
    assert_non_null(job);
    assert_int_equal(job->header_count, 1);
    assert_header(job, 0, "gpu-worker-replayed-from", "jobs/0/1");
    delivery_destroy(job);
}

TEST(an_origin_of_any_size_is_cut) {
    static uint8_t bytes[5000];
    memset(bytes, 'x', sizeof bytes);
    struct header headers[] = {HEADER("dlq.error.code", "io"), HEADER("dlq.source.topic", ""),
        HEADER("dlq.source.partition", ""), HEADER("dlq.source.offset", "1")};
    for (size_t size = 0; size < sizeof bytes; size += 79) {
        headers[1].value = headers[2].value = slice_of(bytes, size);
        const struct delivery letter = letter_of(headers, 4);
        struct delivery *job = dead_letter_create_job(&letter);
        assert_non_null(job);
        assert_in_range(job->headers[0].value.size, 3, 400);
        delivery_destroy(job);
    }
}

RUN_TESTS(T(a_dead_letter_says_why_and_whence), T(another_message_is_no_dead_letter),
    T(the_job_has_its_own_bytes_key_and_headers_and_its_origin),
    T(what_is_replayed_again_keeps_its_first_origin), T(an_origin_of_any_size_is_cut))
