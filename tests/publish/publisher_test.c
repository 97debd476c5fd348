/* What the publisher does with answers beside the ladder (tests/hardening/answers_test.c): when a
 * job is over, in which order, and what is left where the sink or the blob store fails. */
#include "publish/publisher.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/allocation_faults.h"
#include "support/jobs.h"
#include "support/scratch.h"
#include "testing.h"

enum { JOBS_MAX = 200, INLINE_BYTES = 8, BLOB_BYTES = 64 };

/* Keeps what is sent until the test says what becomes of it, or settles at once. */
struct held_sink {
    struct sink sink;
    bool is_holding;
    enum err flush_code;
    size_t sent_count, next; /* all before `next` are settled */
    struct record *sent[2 * JOBS_MAX];
    int settled_calls, destroyed;
};

struct rig {
    struct held_sink sink;
    struct publisher *publisher;
    char *folder;
    struct blobs *blobs;
    pthread_mutex_t lock; /* guards what follows, and the sink's fields */
    pthread_cond_t changed;
    enum err answer; /* to what is held: once it is set */
    size_t answer_count;
    bool is_memory_short; /* for what is said instead of what is refused */
    size_t encoded_count, queued_count, published_count, failed_count, not_uploaded_count;
    struct job *published[JOBS_MAX], *not_uploaded;
    struct key_queue *queued[JOBS_MAX];
    bool are_suspects[JOBS_MAX];
    struct error failure;
};

static struct rig *rig;
static struct error err;
static const struct identity identity = {.host = "host", .device = "device", .version = "1"};

/* So that what is allocated for the job from now on takes a block of its own. */
static void use_up_memory(struct job *job) {
    assert_non_null(arena_alloc_beyond(&job->arena, job->arena.left));
    assert_int_equal(job->arena.left, 0);
}

/* --- the sink; the publisher's thread --- */

static void settle(struct record *record, enum err code) {
    struct error why;
    if (code != ERR_OK) error_set(&why, code, 0, "look at the brokers", "lost");
    if (rig->is_memory_short) allocation_faults_arm(1);
    record->on_settled(record, code, code == ERR_OK ? NULL : &why);
    if (rig->is_memory_short) assert_true(allocation_faults_end());
}

static void send_held(struct sink *sink, struct record *record) {
    struct held_sink *self = (struct held_sink *)sink;
    pthread_mutex_lock(&rig->lock);
    assert_true(self->sent_count < 2 * JOBS_MAX);
    self->sent[self->sent_count++] = record;
    bool is_holding = self->is_holding;
    if (!is_holding) self->next = self->sent_count;
    pthread_cond_broadcast(&rig->changed);
    pthread_mutex_unlock(&rig->lock);
    if (!is_holding) settle(record, ERR_OK);
}

/* Settles as many as the test has said. */
static void serve_held(struct sink *sink, int timeout_ms) {
    struct held_sink *self = (struct held_sink *)sink;
    pthread_mutex_lock(&rig->lock);
    while (self->next < self->sent_count && rig->answer_count > 0) {
        struct record *record = self->sent[self->next++];
        enum err code = rig->answer;
        rig->answer_count--;
        pthread_cond_broadcast(&rig->changed);
        pthread_mutex_unlock(&rig->lock);
        settle(record, code);
        pthread_mutex_lock(&rig->lock);
    }
    pthread_mutex_unlock(&rig->lock);
}

static enum err flush_held(struct sink *sink, int timeout_ms, struct error *why) {
    struct held_sink *self = (struct held_sink *)sink;
    serve_held(sink, 0);
    if (self->flush_code == ERR_OK) return ERR_OK;
    return error_set(why, self->flush_code, 0, "wait", "not acknowledged");
}

static void note_settled(struct sink *sink) {
    pthread_mutex_lock(&rig->lock);
    ((struct held_sink *)sink)->settled_calls++;
    pthread_cond_broadcast(&rig->changed);
    pthread_mutex_unlock(&rig->lock);
}

/* As real ones do: what is not settled is lost. */
static void destroy_held(struct sink *sink) {
    struct held_sink *self = (struct held_sink *)sink;
    while (self->next < self->sent_count) settle(self->sent[self->next++], ERR_BROKER);
    self->destroyed++;
}

/* --- the publisher's owner --- */

static void note_encoded(void *context, const struct job *job) {
    pthread_mutex_lock(&rig->lock);
    rig->encoded_count++;
    pthread_mutex_unlock(&rig->lock);
}

static void note_not_uploaded(void *context, struct job *job) {
    pthread_mutex_lock(&rig->lock);
    rig->not_uploaded = job;
    rig->not_uploaded_count++;
    pthread_cond_broadcast(&rig->changed);
    pthread_mutex_unlock(&rig->lock);
}

static void note_queued(void *context, struct key_queue *key_queue, bool is_suspect) {
    pthread_mutex_lock(&rig->lock);
    rig->queued[rig->queued_count] = key_queue;
    rig->are_suspects[rig->queued_count++] = is_suspect;
    pthread_mutex_unlock(&rig->lock);
}

static void note_published(void *context, struct job *const *jobs, size_t count) {
    pthread_mutex_lock(&rig->lock);
    for (size_t i = 0; i < count; i++) rig->published[rig->published_count++] = jobs[i];
    pthread_cond_broadcast(&rig->changed);
    pthread_mutex_unlock(&rig->lock);
}

static void note_failed(void *context, const struct error *why) {
    pthread_mutex_lock(&rig->lock);
    rig->failed_count++;
    rig->failure = *why;
    pthread_cond_broadcast(&rig->changed);
    pthread_mutex_unlock(&rig->lock);
}

static int set_up(void **state) {
    static const struct sink_operations operations = {.send = send_held,
        .serve = serve_held,
        .flush = flush_held,
        .settled = note_settled,
        .destroy = destroy_held};
    rig = calloc(1, sizeof *rig);
    assert_non_null(rig);
    rig->sink.sink.operations = &operations;
    pthread_mutex_init(&rig->lock, NULL);
    pthread_cond_init(&rig->changed, NULL);
    rig->folder = scratch_create();
    const struct blobs_options store = {.dir = rig->folder, .bytes_max = BLOB_BYTES};
    assert_int_equal(blobs_create(&store, &rig->blobs, &err), ERR_OK);
    const struct publisher_options options = {.sink = &rig->sink.sink,
        .identity = &identity,
        .blobs = rig->blobs,
        .inline_bytes_max = INLINE_BYTES,
        .queue_length = JOBS_MAX,
        .on_encoded = note_encoded,
        .on_not_uploaded = note_not_uploaded,
        .on_queued = note_queued,
        .on_published = note_published,
        .on_failed = note_failed};
    assert_int_equal(publisher_start(&options, &rig->publisher, &err), ERR_OK);
    return 0;
}

/* Every test stops the publisher, so that all it was given has come back. */
static int tear_down(void **state) {
    assert_null(rig->publisher);
    assert_int_equal(rig->sink.destroyed, 1);
    for (size_t i = 0; i < rig->published_count; i++) job_destroy(rig->published[i]);
    blobs_destroy(rig->blobs);
    scratch_remove(rig->folder);
    pthread_cond_destroy(&rig->changed);
    pthread_mutex_destroy(&rig->lock);
    free(rig);
    return 0;
}

static enum err stop(int timeout_ms) {
    enum err code = publisher_stop(rig->publisher, timeout_ms, &err);
    rig->publisher = NULL;
    return code;
}

static void wait_until(const size_t *count, size_t least) {
    pthread_mutex_lock(&rig->lock);
    while (*count < least) pthread_cond_wait(&rig->changed, &rig->lock);
    pthread_mutex_unlock(&rig->lock);
}

static void hold(void) {
    pthread_mutex_lock(&rig->lock);
    rig->sink.is_holding = true;
    pthread_mutex_unlock(&rig->lock);
}

/* The next so many records that are held, or come, are settled so. */
static void settle_next(size_t count, enum err code) {
    pthread_mutex_lock(&rig->lock);
    rig->answer = code;
    rig->answer_count = count;
    pthread_mutex_unlock(&rig->lock);
}

static const char job_yaml[] = "id: one\nbuffers: {y: {bytes: 9}}\n"
                               "steps: [{program: saxpy, args: [{f32: 1}, y, y, {u32: 1}], "
                               "elements: 1}]\noutputs: [{buffer: y}]\n";
static const uint8_t zeroes[BLOB_BYTES + 1];

/* A job that succeeded with that output, or failed with `code`. */
static struct job *finished_job(const struct slice *output, enum err code) {
    struct job *job = test_job(job_yaml);
    job->state = JOB_ON_DEVICE;
    job->outcome.outputs = output;
    if (code != ERR_OK) job->outcome.code = error_set(&job->outcome.err, code, 0, "do", "failed");
    assert_int_equal(publisher_reserve(job, 4096, &err), ERR_OK);
    return job;
}

static const struct slice small = {zeroes, 4}, large = {zeroes, INLINE_BYTES + 1},
                          too_large = {zeroes, BLOB_BYTES + 1};

static struct job *encoded_job(enum err code) {
    bool is_encoded;
    struct job *job = finished_job(&small, code);
    assert_int_equal(publisher_encode(rig->publisher, job, &is_encoded, &err), ERR_OK);
    assert_true(is_encoded);
    return job;
}

static const char *header_of(const struct record *record, const char *name) {
    static char text[64];
    text[0] = 0;
    for (size_t i = 0; i < record->header_count; i++)
        if (slice_is_text(record->headers[i].name, name))
            snprintf(text, sizeof text, "%.*s", SLICE_TEXT(record->headers[i].value));
    return text;
}

/* --- encoding --- */

TEST(what_a_job_is_answered_with_is_there_once_it_is_encoded) {
    struct job *well = encoded_job(ERR_OK), *failed = encoded_job(ERR_BAD_LAUNCH),
               *cancelled = encoded_job(ERR_CANCELLED);
    assert_int_equal(rig->encoded_count, 3);
    assert_ptr_equal(well->unsent[0], well->result);
    assert_null(well->unsent[1]);
    assert_false(well->has_letter);
    assert_ptr_equal(failed->unsent[0], failed->result);
    assert_int_equal(failed->unsent[1]->record.route, ROUTE_DEAD_LETTER);
    assert_true(failed->has_letter);
    assert_non_null(cancelled->unsent[0]);
    assert_null(cancelled->unsent[1]);
    struct job *jobs[] = {well, failed, cancelled};
    publisher_push(rig->publisher, jobs, 3);
    assert_int_equal(stop(-1), ERR_OK);
}

TEST(an_error_has_room_where_nothing_was_reserved_however_long_its_texts_and_its_id) {
    static char id[5000];
    bool is_encoded;
    memset(id, 'i', sizeof id);
    struct job *job = test_job(job_yaml);
    job->id = slice_of(id, sizeof id);
    job->outcome.code = error_set(&job->outcome.err, ERR_BAD_LAUNCH, 0, "do", "failed");
    memset(job->outcome.err.message, 'm', sizeof job->outcome.err.message - 1);
    memset(job->outcome.err.fix, 'f', sizeof job->outcome.err.fix - 1);
    assert_null(job->result);
    assert_int_equal(publisher_encode(rig->publisher, job, &is_encoded, &err), ERR_OK);
    assert_true(is_encoded);
    publisher_push(rig->publisher, &job, 1);
    assert_int_equal(stop(-1), ERR_OK);
}

TEST(a_result_that_is_larger_than_its_room_stays_the_callers_and_is_not_counted) {
    bool is_encoded = true;
    struct job *job = finished_job(&small, ERR_OK);
    assert_int_equal(publisher_reserve(job, 16, &err), ERR_OK);
    assert_int_equal(publisher_encode(rig->publisher, job, &is_encoded, &err), ERR_INTERNAL);
    assert_false(is_encoded);
    assert_int_equal(rig->encoded_count, 0);
    job_destroy(job);
    assert_int_equal(stop(-1), ERR_OK);
}

/* --- pushing --- */

TEST(jobs_leave_their_key_queues_in_the_order_in_which_they_are_pushed) {
    struct job *jobs[3] = {encoded_job(ERR_OK), encoded_job(ERR_OK), encoded_job(ERR_OK)};
    struct key_queue *const queues[] = {
        (struct key_queue *)&jobs[0], NULL, (struct key_queue *)&jobs[2]};
    for (size_t i = 0; i < 3; i++) jobs[i]->key_queue = queues[i];
    jobs[1]->delivery->is_suspect = true;
    publisher_push(rig->publisher, jobs, 3);
    assert_int_equal(stop(-1), ERR_OK);
    assert_int_equal(rig->queued_count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_ptr_equal(rig->queued[i], queues[i]);
        assert_int_equal(rig->are_suspects[i], i == 1);
        assert_null(jobs[i]->key_queue);
        assert_int_equal(jobs[i]->state, JOB_ANSWERED);
    }
}

TEST(more_jobs_than_go_at_once_are_all_answered_and_reported_once_in_order) {
    struct job *jobs[JOBS_MAX];
    for (size_t i = 0; i < JOBS_MAX; i++) jobs[i] = encoded_job(ERR_OK);
    publisher_push(rig->publisher, jobs, JOBS_MAX);
    assert_int_equal(stop(-1), ERR_OK);
    assert_int_equal(rig->sink.sent_count, JOBS_MAX);
    assert_int_equal(rig->queued_count, JOBS_MAX);
    assert_int_equal(rig->published_count, JOBS_MAX);
    for (size_t i = 0; i < JOBS_MAX; i++) {
        assert_ptr_equal(rig->published[i], jobs[i]);
        assert_false(jobs[i]->is_lost);
        assert_false(jobs[i]->is_dropped);
    }
}

TEST(a_job_is_over_when_the_last_of_its_answers_is_acknowledged) {
    hold();
    struct job *job = encoded_job(ERR_BAD_LAUNCH);
    publisher_push(rig->publisher, &job, 1);
    wait_until(&rig->sink.sent_count, 2);
    assert_int_equal(rig->sink.sent[0]->route, ROUTE_RESULT);
    assert_int_equal(rig->sink.sent[1]->route, ROUTE_DEAD_LETTER);
    assert_false(rig->sink.sent[0]->is_last);
    assert_true(rig->sink.sent[1]->is_last);
    for (size_t i = 0; i < 2; i++)
        assert_ptr_equal(rig->sink.sent[i]->answers, &job->delivery->position);
    settle_next(1, ERR_OK);
    wait_until(&rig->sink.next, 1);
    struct job *behind = encoded_job(ERR_OK); /* once it is sent, the one is settled for good */
    publisher_push(rig->publisher, &behind, 1);
    wait_until(&rig->sink.sent_count, 3);
    pthread_mutex_lock(&rig->lock);
    assert_int_equal(rig->published_count, 0);
    assert_int_equal(rig->sink.settled_calls, 0);
    rig->answer_count = 1;
    pthread_mutex_unlock(&rig->lock);
    wait_until(&rig->published_count, 1);
    assert_ptr_equal(rig->published[0], job);
    settle_next(1, ERR_OK);
    wait_until(&rig->published_count, 2);
    assert_int_equal(stop(-1), ERR_OK);
    assert_int_equal(rig->sink.settled_calls, 1); /* not while `behind` was open */
}

/* --- where it goes wrong --- */

TEST(what_others_answer_by_now_is_dropped_and_the_run_goes_on) {
    hold();
    struct job *job = encoded_job(ERR_OK), *next = encoded_job(ERR_OK);
    settle_next(1, ERR_REVOKED);
    publisher_push(rig->publisher, &job, 1);
    wait_until(&rig->published_count, 1);
    assert_true(job->is_dropped);
    assert_false(job->is_lost);
    settle_next(1, ERR_OK);
    publisher_push(rig->publisher, &next, 1);
    assert_int_equal(stop(-1), ERR_OK);
    assert_int_equal(rig->published_count, 2);
    assert_false(next->is_dropped);
    assert_int_equal(rig->failed_count, 0);
}

TEST(a_lost_sink_ends_once_and_what_comes_later_is_lost_unsent) {
    hold();
    struct job *jobs[] = {encoded_job(ERR_OK), encoded_job(ERR_OK), encoded_job(ERR_OK)};
    settle_next(1, ERR_BROKER);
    publisher_push(rig->publisher, jobs, 2);
    wait_until(&rig->failed_count, 1);
    wait_until(&rig->published_count, 2);
    publisher_push(rig->publisher, &jobs[2], 1);
    wait_until(&rig->published_count, 3);
    assert_int_equal(stop(-1), ERR_OK); /* on_failed has told */
    assert_int_equal(rig->failed_count, 1);
    assert_int_equal(rig->failure.code, ERR_BROKER);
    assert_int_equal(rig->sink.sent_count, 2);
    assert_int_equal(rig->sink.settled_calls, 0);
    for (size_t i = 0; i < 3; i++) assert_true(jobs[i]->is_lost);
}

TEST(a_refused_result_that_there_is_no_memory_to_replace_is_lost_and_fails_the_run) {
    hold();
    struct job *job = encoded_job(ERR_OK);
    use_up_memory(job);
    rig->is_memory_short = true;
    settle_next(1, ERR_PUBLISH_REFUSED);
    publisher_push(rig->publisher, &job, 1);
    wait_until(&rig->failed_count, 1);
    wait_until(&rig->published_count, 1);
    assert_int_equal(stop(-1), ERR_OK); /* on_failed has told */
    assert_true(job->is_lost);
    assert_int_equal(rig->sink.sent_count, 1);
}

TEST(a_letter_that_there_is_no_memory_for_leaves_the_job_to_its_caller) {
    bool is_encoded;
    struct job *job = finished_job(&small, ERR_BAD_LAUNCH);
    use_up_memory(job);
    allocation_faults_arm(1);
    enum err code = publisher_encode(rig->publisher, job, &is_encoded, &err);
    assert_true(allocation_faults_end());
    assert_int_equal(code, ERR_NO_MEMORY);
    assert_false(is_encoded);
    assert_int_equal(rig->encoded_count, 0);
    job_destroy(job);
    assert_int_equal(stop(-1), ERR_OK);
}

TEST(stopping_gives_up_when_its_time_is_over_and_what_is_left_is_lost) {
    hold();
    rig->sink.flush_code = ERR_TIMEOUT;
    struct job *job = encoded_job(ERR_OK);
    publisher_push(rig->publisher, &job, 1);
    wait_until(&rig->sink.sent_count, 1);
    assert_int_equal(stop(0), ERR_TIMEOUT);
    assert_non_null(strstr(err.message, "within 0 ms"));
    assert_int_equal(rig->failed_count, 0);
    assert_int_equal(rig->published_count, 1);
    assert_true(rig->published[0]->is_lost);
}

TEST(stopping_says_what_the_sink_says) {
    rig->sink.flush_code = ERR_BROKER;
    assert_int_equal(stop(-1), ERR_BROKER);
    assert_string_equal(err.message, "not acknowledged");
}

TEST(stopping_waits_for_what_is_held) {
    hold();
    struct job *job = encoded_job(ERR_OK);
    publisher_push(rig->publisher, &job, 1);
    wait_until(&rig->sink.sent_count, 1);
    settle_next(1, ERR_OK);
    assert_int_equal(stop(-1), ERR_OK);
    assert_int_equal(rig->published_count, 1);
    assert_false(job->is_lost);
    assert_int_equal(publisher_stop(NULL, -1, &err), ERR_OK);
}

/* --- outputs that go to the blob store --- */

TEST(a_job_whose_outputs_are_too_large_is_answered_when_they_are_stored) {
    bool is_encoded = true;
    struct job *job = finished_job(&large, ERR_OK);
    assert_int_equal(publisher_encode(rig->publisher, job, &is_encoded, &err), ERR_OK);
    assert_false(is_encoded);
    wait_until(&rig->published_count, 1);
    assert_int_equal(rig->encoded_count, 1);
    assert_null(job->upload);
    struct slice payload = job->result->record.payload;
    char digest[DIGEST_TEXT_SIZE];
    struct digest expected = digest_of(large);
    assert_non_null(
        memmem(payload.data, payload.size, digest_format(&expected, digest), DIGEST_TEXT_SIZE - 1));
    struct blob blob;
    assert_int_equal(blob_open(rig->blobs, &expected, large.size, &blob, &err), ERR_OK);
    blob_fini(&blob);
    assert_string_equal(header_of(&job->result->record, "gpu-worker-status"), "ok");
    assert_int_equal(stop(-1), ERR_OK);
}

TEST(a_job_whose_outputs_the_store_refuses_comes_back_unanswered_with_the_reason) {
    bool is_encoded;
    struct job *job = finished_job(&too_large, ERR_OK);
    assert_int_equal(publisher_encode(rig->publisher, job, &is_encoded, &err), ERR_OK);
    wait_until(&rig->not_uploaded_count, 1);
    assert_ptr_equal(rig->not_uploaded, job);
    assert_int_equal(job->outcome.code, ERR_TOO_LARGE);
    assert_null(job->upload);
    assert_null(job->unsent[0]);
    assert_int_equal(rig->encoded_count, 0);
    job_destroy(job);
    assert_int_equal(stop(-1), ERR_OK);
    assert_int_equal(rig->published_count, 0);
}

TEST(stopping_waits_for_outputs_on_their_way_to_the_store) {
    bool is_encoded;
    struct job *job = finished_job(&large, ERR_OK);
    assert_int_equal(publisher_encode(rig->publisher, job, &is_encoded, &err), ERR_OK);
    assert_int_equal(stop(-1), ERR_OK);
    assert_int_equal(rig->published_count, 1);
    assert_int_equal(rig->sink.sent_count, 1);
}

#define P(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

RUN_TESTS(P(what_a_job_is_answered_with_is_there_once_it_is_encoded),
    P(an_error_has_room_where_nothing_was_reserved_however_long_its_texts_and_its_id),
    P(a_result_that_is_larger_than_its_room_stays_the_callers_and_is_not_counted),
    P(jobs_leave_their_key_queues_in_the_order_in_which_they_are_pushed),
    P(more_jobs_than_go_at_once_are_all_answered_and_reported_once_in_order),
    P(a_job_is_over_when_the_last_of_its_answers_is_acknowledged),
    P(what_others_answer_by_now_is_dropped_and_the_run_goes_on),
    P(a_lost_sink_ends_once_and_what_comes_later_is_lost_unsent),
    P(a_refused_result_that_there_is_no_memory_to_replace_is_lost_and_fails_the_run),
    P(a_letter_that_there_is_no_memory_for_leaves_the_job_to_its_caller),
    P(stopping_gives_up_when_its_time_is_over_and_what_is_left_is_lost),
    P(stopping_says_what_the_sink_says), P(stopping_waits_for_what_is_held),
    P(a_job_whose_outputs_are_too_large_is_answered_when_they_are_stored),
    P(a_job_whose_outputs_the_store_refuses_comes_back_unanswered_with_the_reason),
    P(stopping_waits_for_outputs_on_their_way_to_the_store))
