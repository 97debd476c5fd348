/* The ladder of answers: a sink refuses the first ones in turn, and every message is answered
 * still. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "publish/publisher.h"
#include "support/jobs.h"
#include "testing.h"

enum { TAKEN_MAX = 8, REFUSED_MAX = 16 };

/* What came out, as a line: route, topic, key, status, what was cut. */
struct taken {
    char line[160];
    bool is_last;
};

/* Refuses the first `refuse_count` records of each route. */
struct strict_sink {
    struct sink sink;
    int refuse_count[ROUTE_COUNT];
    size_t taken_count;
    struct taken taken[TAKEN_MAX];
};

struct rig {
    struct strict_sink *sink;
    struct publisher *publisher;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int published_count, failed_count;
    enum err code; /* of what was published */
};

static const char *header_of(const struct record *record, const char *name, char text[static 64]) {
    text[0] = 0;
    for (size_t i = 0; i < record->header_count; i++)
        if (slice_is_text(record->headers[i].name, name))
            snprintf(text, 64, "%.*s", SLICE_TEXT(record->headers[i].value));
    return text;
}

static void keep(struct strict_sink *self, const struct record *record) {
    char status[64], cut[64], mine[64], trace[64];
    assert_true(self->taken_count < TAKEN_MAX);
    struct taken *taken = &self->taken[self->taken_count++];
    taken->is_last = record->is_last;
    snprintf(taken->line, sizeof taken->line,
        "%s topic=%s key=%.*s payload=%s status=%s mine=%s%s cut=%s",
        record->route == ROUTE_RESULT ? "result" : "letter",
        record->topic != NULL ? record->topic : "", record->has_key ? (int)record->key.size : 0,
        record->has_key ? (const char *)record->key.data : "",
        record->payload.size > 0 ? "yes" : "no", header_of(record, "gpu-worker-status", status),
        header_of(record, "mine", mine), header_of(record, "traceparent", trace),
        header_of(record, "dlq.truncated", cut));
}

static void send_strictly(struct sink *sink, struct record *record) {
    struct strict_sink *self = (struct strict_sink *)sink;
    if (self->refuse_count[record->route]-- > 0) {
        struct error err;
        error_set(&err, ERR_PUBLISH_REFUSED, 0, "send less", "refused by the test");
        record->on_settled(record, ERR_PUBLISH_REFUSED, &err);
        return;
    }
    keep(self, record);
    record->on_settled(record, ERR_OK, NULL);
}

static void serve_nothing(struct sink *sink, int timeout_ms) {}

static enum err flush_nothing(struct sink *sink, int timeout_ms, struct error *err) {
    return ERR_OK;
}

static void keep_sink(struct sink *sink) {} /* the test looks at it */

static void note_queued(void *context, struct key_queue *key_queue, bool is_suspect) {}

static void note_encoded(void *context, const struct job *job) {}

static void note_published(void *context, struct job *const *jobs, size_t count) {
    struct rig *rig = context;
    pthread_mutex_lock(&rig->lock);
    for (size_t i = 0; i < count; i++) {
        rig->published_count += !jobs[i]->is_lost;
        rig->code = jobs[i]->outcome.code;
        job_destroy(jobs[i]);
    }
    pthread_cond_signal(&rig->changed);
    pthread_mutex_unlock(&rig->lock);
}

static void note_failed(void *context, const struct error *err) {
    struct rig *rig = context;
    pthread_mutex_lock(&rig->lock);
    rig->failed_count++;
    pthread_cond_signal(&rig->changed);
    pthread_mutex_unlock(&rig->lock);
}

static const struct identity identity = {.host = "host", .device = "device", .version = "1"};

static void rig_start(struct rig *rig, int refused_results, int refused_letters) {
    static const struct sink_operations operations = {.send = send_strictly,
        .serve = serve_nothing,
        .flush = flush_nothing,
        .destroy = keep_sink};
    struct error err;
    *rig = (struct rig){.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    rig->sink = calloc(1, sizeof *rig->sink);
    assert_non_null(rig->sink);
    rig->sink->sink.operations = &operations;
    rig->sink->refuse_count[ROUTE_RESULT] = refused_results;
    rig->sink->refuse_count[ROUTE_DEAD_LETTER] = refused_letters;
    const struct publisher_options options = {.sink = &rig->sink->sink,
        .identity = &identity,
        .queue_length = 8,
        .on_encoded = note_encoded,
        .on_queued = note_queued,
        .on_published = note_published,
        .on_failed = note_failed,
        .context = rig};
    assert_int_equal(publisher_start(&options, &rig->publisher, &err), ERR_OK);
}

static void rig_stop(struct rig *rig) {
    struct error err;
    pthread_mutex_lock(&rig->lock);
    while (rig->published_count + rig->failed_count == 0)
        pthread_cond_wait(&rig->changed, &rig->lock);
    pthread_mutex_unlock(&rig->lock);
    assert_int_equal(publisher_stop(rig->publisher, -1, &err), ERR_OK);
}

static struct delivery *a_message(struct slice payload) {
    static uint8_t headers_value[300];
    memset(headers_value, 'h', sizeof headers_value);
    const struct header headers[] = {{slice_of_text("mine"), slice_of_text("M")},
        {slice_of_text("traceparent"), slice_of_text("T")},
        {slice_of_text("large"), slice_of(headers_value, sizeof headers_value)}};
    const struct delivery message = {.position = {.topic = "jobs", .partition = 2, .offset = 7},
        .payload = payload,
        .has_key = true,
        .key = slice_of_text("key"),
        .header_count = 3,
        .headers = headers};
    struct delivery *delivery = delivery_create(&message);
    assert_non_null(delivery);
    return delivery;
}

static const char job_yaml[] = "id: one\nreply_to: elsewhere\nbuffers: {y: {bytes: 4}}\n"
                               "steps: [{program: saxpy, args: [{f32: 1}, y, y, {u32: 1}], "
                               "elements: 1}]\noutputs: [{buffer: y}]\n";

/* A job that succeeded, or failed with `code`. */
static void answer_job(struct rig *rig, enum err code) {
    static const uint8_t bytes[4];
    const struct slice output = slice_of(bytes, sizeof bytes);
    struct decode_limits limits = test_decode_limits();
    struct slice payload = test_job_bytes(job_yaml);
    struct job *job = job_create(a_message(payload));
    struct error err;
    bool is_encoded;
    assert_int_equal(decode_job(job, &limits, &err), ERR_OK);
    free((void *)(uintptr_t)payload.data);
    job->outcome.outputs = &output;
    if (code != ERR_OK)
        job->outcome.code = error_set(&job->outcome.err, code, 0, "do", "it failed");
    assert_int_equal(publisher_reserve(job, NULL, 4096, false, &err), ERR_OK);
    assert_int_equal(publisher_encode(rig->publisher, job, &is_encoded, &err), ERR_OK);
    assert_true(is_encoded);
    publisher_push(rig->publisher, &job, 1);
}

/* NULL ends the lines. The last record, and no other, says that it is the last. */
static void assert_taken(struct rig *rig, const char *const *lines) {
    size_t count = 0;
    for (; lines[count] != NULL; count++) {
        assert_true(count < rig->sink->taken_count);
        assert_string_equal(rig->sink->taken[count].line, lines[count]);
    }
    assert_int_equal(rig->sink->taken_count, count);
    size_t last_count = 0;
    for (size_t i = 0; i < count; i++) last_count += rig->sink->taken[i].is_last;
    assert_int_equal(last_count, count > 0);
    free(rig->sink);
}

#define RESULT "result topic=elsewhere key=key payload=yes status=ok mine=T cut="
#define FAILED "result topic=elsewhere key=key payload=yes status=error mine=T cut="
#define ERROR "result topic= key=key payload=yes status=error mine=T cut="
#define BARE_ERROR "result topic= key= payload=yes status=error mine= cut="
#define LETTER "letter topic= key=key payload=yes status=dead mine=MT cut="
#define TINY_LETTER "letter topic= key=key payload=yes status=dead mine=MT cut=headers"
#define COORDINATES                                                                                \
    "letter topic= key=jobs/2/7 payload=no status=dead mine= cut=payload,key,headers"

struct expectation {
    int refused_results, refused_letters;
    const char *lines[4];
};

static void check(enum err code, const struct expectation *expected) {
    struct rig rig;
    rig_start(&rig, expected->refused_results, expected->refused_letters);
    answer_job(&rig, code);
    rig_stop(&rig);
    assert_int_equal(rig.published_count, 1);
    bool has_failed = code != ERR_OK || expected->refused_results > 0;
    assert_int_equal(rig.code != ERR_OK, has_failed);
    assert_taken(&rig, expected->lines);
}

TEST(a_result_that_is_refused_becomes_an_error_a_bare_error_and_at_last_a_letter_alone) {
    const struct expectation steps[] = {{0, 0, {RESULT}}, {1, 0, {ERROR, LETTER}},
        {2, 0, {BARE_ERROR, LETTER}}, {3, 0, {LETTER}}, {3, 3, {COORDINATES}}};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) check(ERR_OK, &steps[i]);
}

TEST(an_error_that_its_reply_to_refuses_goes_to_the_results_beside_its_letter) {
    const struct expectation steps[] = {{0, 0, {FAILED, LETTER}}, {1, 0, {ERROR, LETTER}},
        {2, 0, {BARE_ERROR, LETTER}}, {3, 0, {LETTER}}};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) check(ERR_BAD_LAUNCH, &steps[i]);
}

TEST(a_cancelled_job_has_a_letter_only_where_no_error_finds_a_taker) {
    const struct expectation steps[] = {{0, 0, {FAILED}}, {2, 0, {BARE_ERROR}}, {3, 0, {LETTER}}};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) check(ERR_CANCELLED, &steps[i]);
}

TEST(a_letter_that_is_refused_is_cut_down_to_its_coordinates) {
    const char *const letters[][2] = {{LETTER}, {LETTER}, {TINY_LETTER}, {COORDINATES}};
    for (int refused = 0; refused < 4; refused++) {
        struct rig rig;
        struct error err;
        bool is_encoded;
        struct job *job = job_create(a_message(slice_of_text("\xc1")));
        job->outcome.code =
            error_set(&job->outcome.err, ERR_BAD_MESSAGE, 0, "send a job", "it is none");
        rig_start(&rig, 0, refused);
        assert_int_equal(publisher_encode(rig.publisher, job, &is_encoded, &err), ERR_OK);
        publisher_push(rig.publisher, &job, 1);
        rig_stop(&rig);
        assert_int_equal(rig.published_count, 1);
        /* without an id it has no status of a job, but it is dead */
        assert_taken(&rig, letters[refused]);
    }
}

TEST(where_not_even_coordinates_are_taken_the_run_ends_and_the_message_is_not_answered) {
    struct rig rig;
    rig_start(&rig, REFUSED_MAX, REFUSED_MAX);
    answer_job(&rig, ERR_OK);
    rig_stop(&rig);
    assert_int_equal(rig.failed_count, 1);
    assert_int_equal(rig.published_count, 0);
    assert_taken(&rig, (const char *const[]){NULL});
}

RUN_TESTS(T(a_result_that_is_refused_becomes_an_error_a_bare_error_and_at_last_a_letter_alone),
    T(an_error_that_its_reply_to_refuses_goes_to_the_results_beside_its_letter),
    T(a_cancelled_job_has_a_letter_only_where_no_error_finds_a_taker),
    T(a_letter_that_is_refused_is_cut_down_to_its_coordinates),
    T(where_not_even_coordinates_are_taken_the_run_ends_and_the_message_is_not_answered))
