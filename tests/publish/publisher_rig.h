/** A publisher with a sink that a test can hold, for tests of publisher.h. */
#ifndef TESTS_PUBLISH_PUBLISHER_RIG_H
#define TESTS_PUBLISH_PUBLISHER_RIG_H

#include "publish/publisher.h"

#include <pthread.h>
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
    bool takes_at_once;
    enum err flush_code;
    size_t sent_count, next; /* all before `next` are settled */
    struct record *sent[2 * JOBS_MAX];
    pthread_t senders[2 * JOBS_MAX]; /* of each */
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

/* --- the sink; one thread at a time --- */

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
    self->senders[self->sent_count] = pthread_self();
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

static bool takes_at_once(struct sink *sink, const struct record *record) {
    pthread_mutex_lock(&rig->lock);
    bool takes = ((struct held_sink *)sink)->takes_at_once;
    pthread_mutex_unlock(&rig->lock);
    return takes;
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
        .takes_at_once = takes_at_once,
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
    assert_int_equal(publisher_reserve(job, NULL, 4096, false, &err), ERR_OK);
    return job;
}

static const struct slice small = {zeroes, 4};

static struct job *encoded_job(enum err code) {
    bool is_encoded;
    struct job *job = finished_job(&small, code);
    assert_int_equal(publisher_encode(rig->publisher, job, &is_encoded, &err), ERR_OK);
    assert_true(is_encoded);
    return job;
}

#define P(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
