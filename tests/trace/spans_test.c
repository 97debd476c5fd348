/* Proves: what a record keeps of a job or a batch is bounded, and its spans say what became of it.
 */
#include "trace/spans.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testing.h"

#define TRACE "0af7651916cd43dd8448eb211c80319c"
#define SPAN "b7ad6b7169203331"

enum { RECEIVED_NS = 1000, BEGUN_NS = 2000, READY_NS = 4000, ENDED_NS = 9000, SENT_NS = 9500 };

static const struct span_ids ids = {{1, 2}};
static const struct identity identity = {
    .host = "here", .device = "a GPU", .device_index = 3, .version = "1.2.3"};
static const struct spans_options options = {.identity = &identity,
    .group = "workers",
    .results_topic = "gpu-results",
    .letters_topic = "gpu-dead-letters"};

static struct delivery delivery;
static struct job_trace trace;
static struct job job;
static char *text;

static int set_up(void **state) {
    delivery = (struct delivery){.position = {.topic = "gpu-jobs", .partition = 7, .offset = 42},
        .received_ns = RECEIVED_NS};
    trace = (struct job_trace){.trace_id = slice_of_text(TRACE),
        .parent_id = slice_of_text(SPAN),
        .flags = 1,
        .spans = 10,
        .batch = 20,
        .begun_ns = BEGUN_NS,
        .ended_ns = ENDED_NS};
    job = (struct job){.delivery = &delivery,
        .trace = &trace,
        .id = slice_of_text("job-1"),
        .decode_ns = 500,
        .submitted_ns = 3000,
        .ready_ns = READY_NS,
        .outcome.telemetry = {.queue_ns = 100, .wall_ns = 7000, .batch = {.id = 5, .jobs = 1}}};
    return 0;
}

static int tear_down(void **state) {
    free(text);
    text = NULL;
    return 0;
}

/* Into `text`; frees the record. */
static void write_spans(struct record *record, uint64_t unix_ns) {
    size_t size;
    free(text);
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    spans_write(&options, record, unix_ns, out);
    assert_int_equal(fclose(out), 0);
    free(record);
}

static struct record *record_job(void) {
    struct record *record = record_of_job(&ids, &job, "saxpy", SENT_NS);
    assert_non_null(record);
    return record;
}

/* From the name of a span up to the next one's ids. */
static struct slice span_named(const char *name) {
    char quoted[32];
    snprintf(quoted, sizeof quoted, "\"name\":\"%s\",\"kind\"", name);
    const char *from = strstr(text, quoted);
    if (from == NULL) return slice_of(NULL, 0);
    const char *end = strstr(from, "{\"traceId\"");
    return slice_of(from, end != NULL ? (size_t)(end - from) : strlen(from));
}

static bool says(const char *span, const char *part) {
    struct slice found = span_named(span);
    return found.size > 0 && memmem(found.data, found.size, part, strlen(part)) != NULL;
}

TEST(a_job_has_a_span_for_each_stage_that_it_reached) {
    struct record *record = record_job();
    assert_int_equal(record->spans, SPANS_OF_JOB);
    write_spans(record, 0);
    assert_true(says("prepare", "\"startTimeUnixNano\":\"3000\",\"endTimeUnixNano\":\"4000\""));
    assert_true(says("device", "\"startTimeUnixNano\":\"4100\",\"endTimeUnixNano\":\"8000\""));
    job.submitted_ns = 0;
    job.outcome.telemetry.batch.id = 0;
    record = record_job();
    assert_int_equal(record->spans, SPANS_OF_JOB - 2);
    write_spans(record, 0);
    assert_int_equal(span_named("prepare").size, 0);
    assert_int_equal(span_named("device").size, 0);
    assert_true(span_named("send").size > 0);
}

/* The last try was submitted, and did not become ready. */
TEST(a_preparation_that_was_left_has_no_span_and_one_that_took_no_time_has) {
    job.ready_ns = job.submitted_ns - 1;
    write_spans(record_job(), 0);
    assert_int_equal(span_named("prepare").size, 0);
    job.ready_ns = job.submitted_ns;
    write_spans(record_job(), 0);
    assert_true(says("prepare", "\"startTimeUnixNano\":\"3000\",\"endTimeUnixNano\":\"3000\""));
}

TEST(times_are_since_1970_and_no_span_ends_before_it_begins) {
    trace.ended_ns = BEGUN_NS - 1;
    write_spans(record_job(), 1000000);
    assert_true(
        says("receive", "\"startTimeUnixNano\":\"1001000\",\"endTimeUnixNano\":\"1002000\""));
    assert_true(
        says("process", "\"startTimeUnixNano\":\"1002000\",\"endTimeUnixNano\":\"1002000\""));
}

TEST(texts_that_are_longer_than_a_record_has_room_for_are_cut_at_a_character) {
    char topic[2 * RECORD_TOPIC_BYTES + 1] = "";
    for (size_t i = 0; i < RECORD_TOPIC_BYTES; i++) memcpy(topic + 2 * i, "\xc3\xa9", 3);
    job.reply_to = slice_of(topic, RECORD_TOPIC_BYTES - 2);
    struct record *record = record_job();
    assert_int_equal(strlen(record->of.job.reply_to), RECORD_TOPIC_BYTES - 2);
    free(record);
    job.reply_to = slice_of_text(topic);
    record = record_job();
    assert_int_equal(strlen(record->of.job.reply_to), RECORD_TOPIC_BYTES - 2);
    assert_int_equal(record->bytes, sizeof *record);
    free(record);
    job.reply_to = slice_of(topic + 1, RECORD_TOPIC_BYTES - 1); /* begins within a character */
    record = record_job();
    assert_int_equal(strlen(record->of.job.reply_to), RECORD_TOPIC_BYTES - 1);
    assert_int_equal(record->of.job.reply_to[0], '?');
    free(record);
}

TEST(an_answer_is_sent_where_its_sender_asked_for_it) {
    write_spans(record_job(), 0);
    assert_true(
        says("send", "\"messaging.destination.name\",\"value\":{\"stringValue\":\"gpu-results\""));
    job.reply_to = slice_of_text("mine");
    write_spans(record_job(), 0);
    assert_true(says("send", "\"messaging.destination.name\",\"value\":{\"stringValue\":\"mine\""));
    job.reply_to = job.id = slice_of(NULL, 0);
    write_spans(record_job(), 0);
    assert_true(says(
        "send", "\"messaging.destination.name\",\"value\":{\"stringValue\":\"gpu-dead-letters\""));
}

TEST(a_message_is_named_by_its_partition_offset_and_group_where_it_was_read) {
    write_spans(record_job(), 0);
    static const char *const spans[] = {"receive", "process"};
    for (size_t i = 0; i < sizeof spans / sizeof spans[0]; i++) {
        assert_true(says(spans[i], "partition.id\",\"value\":{\"stringValue\":\"7\""));
        assert_true(says(spans[i], "kafka.offset\",\"value\":{\"intValue\":\"42\""));
        assert_true(says(spans[i], "group.name\",\"value\":{\"stringValue\":\"workers\""));
    }
    assert_false(says("send", "kafka.offset"));
    assert_false(says("decode", "messaging."));
}

TEST(flags_are_the_senders_and_say_whether_the_parent_is_elsewhere) {
    trace.flags = 3;
    write_spans(record_job(), 0);
    assert_non_null(strstr(text, "\"flags\":771,\"name\":\"receive\""));
    assert_non_null(strstr(text, "\"flags\":771,\"name\":\"process\""));
    assert_non_null(strstr(text, "\"flags\":259,\"name\":\"decode\""));
    assert_non_null(strstr(text, "\"flags\":259,\"name\":\"send\""));
}

TEST(only_an_array_says_how_many_instances_it_has_and_only_a_failure_how_it_failed) {
    write_spans(record_job(), 0);
    assert_false(says("process", "gpu_worker.instances"));
    assert_false(says("process", "error.type"));
    assert_null(strstr(text, "\"status\""));
    job.instances = 1;
    job.outcome.code = ERR_TIMEOUT;
    write_spans(record_job(), 0);
    assert_true(says("process", "gpu_worker.instances\",\"value\":{\"intValue\":\"1\""));
    assert_true(says("process", "error.type\",\"value\":{\"stringValue\":\"timeout\""));
    assert_true(says("process", "\"status\":{\"code\":2"));
    assert_false(says("send", "\"status\""));
}

TEST(only_a_job_whose_batch_has_a_span_is_linked_to_one) {
    write_spans(record_job(), 0);
    assert_true(says("device", "\"links\":["));
    assert_false(says("process", "\"links\":["));
    trace.batch = 0; /* an array, which has many batches */
    write_spans(record_job(), 0);
    assert_false(says("device", "\"links\":["));
}

TEST(a_batch_is_linked_to_so_many_of_its_traced_jobs_and_counts_the_others) {
    enum { TRACED = RECORD_LINKS_MAX + 2 };
    static struct job others[2 * TRACED];
    static struct job *batch[2 * TRACED];
    for (size_t i = 0; i < 2 * TRACED; i++) {
        others[i] = job;
        if (i % 2 == 0) others[i].trace = NULL;
        batch[i] = &others[i];
    }
    struct record *record = record_of_batch(&ids, batch, 2 * TRACED, TRACED, 20);
    assert_non_null(record);
    assert_int_equal(record->spans, 1);
    assert_int_equal(record->of.batch.link_count, RECORD_LINKS_MAX);
    assert_int_equal(record->bytes, sizeof *record + RECORD_LINKS_MAX * sizeof(struct span_link));
    write_spans(record, 0);
    assert_non_null(strstr(text, "],\"droppedLinksCount\":2}"));
    record = record_of_batch(&ids, batch, 2, 1, 20);
    assert_non_null(record);
    assert_int_equal(record->of.batch.link_count, 1);
    assert_string_equal(record->of.batch.links[0].trace_id, TRACE);
    write_spans(record, 0);
    assert_non_null(strstr(text, "],\"droppedLinksCount\":0}"));
}

#define F(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

RUN_TESTS(F(a_job_has_a_span_for_each_stage_that_it_reached),
    F(a_preparation_that_was_left_has_no_span_and_one_that_took_no_time_has),
    F(times_are_since_1970_and_no_span_ends_before_it_begins),
    F(texts_that_are_longer_than_a_record_has_room_for_are_cut_at_a_character),
    F(an_answer_is_sent_where_its_sender_asked_for_it),
    F(a_message_is_named_by_its_partition_offset_and_group_where_it_was_read),
    F(flags_are_the_senders_and_say_whether_the_parent_is_elsewhere),
    F(only_an_array_says_how_many_instances_it_has_and_only_a_failure_how_it_failed),
    F(only_a_job_whose_batch_has_a_span_is_linked_to_one),
    F(a_batch_is_linked_to_so_many_of_its_traced_jobs_and_counts_the_others))
