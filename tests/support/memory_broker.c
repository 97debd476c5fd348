#include "support/memory_broker.h"

#include <stdlib.h>

#include "base/clock.h"
#include "testing.h"

struct memory_source {
    struct source source;
    struct memory_broker *broker;
    bool is_paused;
};

struct memory_sink {
    struct sink sink;
    struct memory_broker *broker;
    /* as of a transaction that is not committed yet */
    uint64_t settle_at_ns;
    size_t unsettled_count;
    struct record *unsettled[256];
};

void memory_broker_init(struct memory_broker *broker, const struct slice *jobs, size_t count) {
    *broker = (struct memory_broker){.jobs = jobs, .job_count = count};
    broker->finished = calloc(count + 1, sizeof broker->finished[0]);
    assert_non_null(broker->finished);
}

void memory_broker_fini(struct memory_broker *broker) {
    for (size_t i = 0; i < broker->message_count; i++) {
        struct memory_message *message = &broker->messages[i];
        for (size_t k = 0; k < message->header_count; k++) {
            free((void *)(uintptr_t)message->headers[k].name.data);
            free((void *)(uintptr_t)message->headers[k].value.data);
        }
        free((void *)(uintptr_t)message->payload.data);
        free(message->topic);
    }
    free(broker->messages);
    free(broker->finished);
}

/* As a broker that has nothing now. */
static enum err wait_a_little(void) {
    nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    return ERR_OK;
}

static struct delivery *create_delivery(
    const struct memory_broker *broker, size_t index, const struct memory_place *place) {
    const struct delivery message = {.position = {.topic = "jobs",
                                         .partition = place->partition,
                                         .offset = place->offset,
                                         .lease = index,
                                         .published_unix_ms = MEMORY_PUBLISHED_MS},
        .received_ns = clock_ns(),
        .payload = broker->jobs[index],
        .has_key = place->key != NULL,
        .key = slice_of_text(place->key != NULL ? place->key : "")};
    return delivery_create(&message);
}

static enum err poll_memory(
    struct source *source, int timeout_ms, struct delivery **ret, bool *at_end, struct error *err) {
    struct memory_source *self = (struct memory_source *)source;
    struct memory_broker *broker = self->broker;
    *ret = NULL;
    if (broker->on_poll != NULL) broker->on_poll(broker->on_poll_context);
    if (broker->is_replaced) {
        source->group = SOURCE_GROUP_MEMBER;
        return error_set(err, ERR_BROKER, 0, "give each a name", "another one has this name");
    }
    if (broker->is_revoking) source_tell_revoked(source, "jobs", 0);
    *at_end = broker->next == broker->job_count && !broker->is_endless;
    if (self->is_paused || broker->next == broker->job_count) return ERR_OK;
    if (broker->comes_singly && timeout_ms == 0) return ERR_OK;
    const size_t index = broker->next;
    const struct memory_place place = broker->places != NULL
                                          ? broker->places[index]
                                          : (struct memory_place){.offset = (int64_t)index};
    bool comes_last = place.comes_last || place.comes_revoked;
    size_t comes_after = comes_last && place.comes_after == 0 ? index : place.comes_after;
    if (atomic_load(&broker->finished_count) < comes_after) return wait_a_little();
    if (place.comes_revoked) source_tell_revoked(source, "jobs", place.partition);
    broker->next++;
    *ret = create_delivery(broker, index, &place);
    assert_non_null(*ret);
    (*ret)->is_suspect = place.comes_contested;
    size_t open = broker->next - atomic_load(&broker->finished_count);
    if (open > broker->open_max) broker->open_max = open;
    return ERR_OK;
}

static void pause_memory(struct source *source, bool paused) {
    ((struct memory_source *)source)->is_paused = paused;
}

static bool memory_keeps(const struct source *source, const struct position *position) {
    const struct memory_broker *broker = ((const struct memory_source *)source)->broker;
    return position->lease >= atomic_load(&broker->left_count);
}

static bool memory_start(struct source *source, const struct position *position) {
    return memory_keeps(source, position);
}

static void finish_memory(struct source *source, const struct position *position) {
    struct memory_broker *broker = ((struct memory_source *)source)->broker;
    atomic_fetch_add(&broker->finished[position->lease], 1);
    atomic_fetch_add(&broker->finished_count, 1);
}

/* What is finished is committed at the end, where every message stands at its index. */
static enum err close_memory(struct source *source, int timeout_ms, struct error *err) {
    const struct memory_broker *broker = ((struct memory_source *)source)->broker;
    size_t next = 0;
    while (next < broker->job_count && atomic_load(&broker->finished[next]) > 0) next++;
    source_tell_committed(source, "jobs", 0, (int64_t)next);
    return ERR_OK;
}

static void destroy_source(struct source *source) {
    free(source);
}

struct source *memory_source(struct memory_broker *broker) {
    static const struct source_operations operations = {.poll = poll_memory,
        .pause = pause_memory,
        .finish = finish_memory,
        .keeps = memory_keeps,
        .start = memory_start,
        .close = close_memory,
        .destroy = destroy_source};
    struct memory_source *self = calloc(1, sizeof *self);
    assert_non_null(self);
    self->source.operations = &operations;
    self->broker = broker;
    return &self->source;
}

/* An allocation that a test lets fail (allocation_faults.h) is to be the worker's. The thread that
 * brought a job may send its answer as well; the second try does not fail. */
static void *resize(void *memory, size_t size) {
    void *ret = realloc(memory, size);
    if (ret == NULL) ret = realloc(memory, size);
    assert_non_null(ret);
    return ret;
}

static struct slice copy_slice(struct slice bytes) {
    uint8_t *copy = resize(NULL, bytes.size + 1);
    if (bytes.size > 0) memcpy(copy, bytes.data, bytes.size);
    copy[bytes.size] = 0; /* for reading headers as text */
    return slice_of(copy, bytes.size);
}

static char *copy_text(const char *text) {
    return text != NULL ? (char *)(uintptr_t)copy_slice(slice_of_text(text)).data : NULL;
}

static void keep(struct memory_broker *broker, const struct record *record) {
    if (broker->message_count == broker->message_max) {
        broker->message_max = broker->message_max * 2 + 16;
        broker->messages =
            resize(broker->messages, broker->message_max * sizeof broker->messages[0]);
    }
    struct memory_message *message = &broker->messages[broker->message_count++];
    *message = (struct memory_message){.route = record->route,
        .topic = copy_text(record->topic),
        .payload = copy_slice(record->payload),
        .header_count = record->header_count};
    assert_true(record->header_count <= sizeof message->headers / sizeof message->headers[0]);
    for (size_t i = 0; i < record->header_count; i++)
        message->headers[i] = (struct header){
            copy_slice(record->headers[i].name), copy_slice(record->headers[i].value)};
}

static void settle_all(struct memory_sink *self) {
    size_t count = self->unsettled_count;
    self->unsettled_count = 0;
    for (size_t i = 0; i < count; i++)
        self->unsettled[i]->on_settled(self->unsettled[i], ERR_OK, NULL);
}

static void settle(struct memory_sink *self, struct record *record) {
    if (self->broker->settle_ns == 0) {
        record->on_settled(record, ERR_OK, NULL);
        return;
    }
    if (self->unsettled_count == 0) self->settle_at_ns = clock_ns() + self->broker->settle_ns;
    assert_true(self->unsettled_count < sizeof self->unsettled / sizeof self->unsettled[0]);
    self->unsettled[self->unsettled_count++] = record;
}

static void send_memory(struct sink *sink, struct record *record) {
    struct memory_broker *broker = ((struct memory_sink *)sink)->broker;
    bool is_too_large =
        broker->refuse_over_bytes > 0 && record->payload.size > broker->refuse_over_bytes;
    if (is_too_large || broker->refuse_errors) {
        struct error err;
        error_set(&err, ERR_PUBLISH_REFUSED, 0, "send less", "refused by the test");
        record->on_settled(record, ERR_PUBLISH_REFUSED, &err);
        return;
    }
    if (broker->revoke_from > 0 && record->answers->offset >= broker->revoke_from) {
        struct error err;
        error_set(&err, ERR_REVOKED, 0, "", "revoked by the test");
        record->on_settled(record, ERR_REVOKED, &err);
        return;
    }
    keep(broker, record);
    settle((struct memory_sink *)sink, record);
}

static bool memory_takes_at_once(struct sink *sink, const struct record *record) {
    return ((struct memory_sink *)sink)->broker->settle_ns == 0;
}

static void serve_memory(struct sink *sink, int timeout_ms) {
    struct memory_sink *self = (struct memory_sink *)sink;
    if (self->unsettled_count > 0 && clock_ns() >= self->settle_at_ns) settle_all(self);
}

static enum err flush_memory(struct sink *sink, int timeout_ms, struct error *err) {
    settle_all((struct memory_sink *)sink);
    return ERR_OK;
}

static void destroy_sink(struct sink *sink) {
    free(sink);
}

struct sink *memory_sink(struct memory_broker *broker) {
    static const struct sink_operations operations = {.send = send_memory,
        .takes_at_once = memory_takes_at_once,
        .serve = serve_memory,
        .flush = flush_memory,
        .destroy = destroy_sink};
    struct memory_sink *self = calloc(1, sizeof *self);
    assert_non_null(self);
    self->sink.operations = &operations;
    self->broker = broker;
    return &self->sink;
}

const char *memory_header(const struct memory_message *message, const char *name) {
    for (size_t i = 0; i < message->header_count; i++)
        if (slice_is_text(message->headers[i].name, name))
            return (const char *)message->headers[i].value.data;
    return "";
}

const struct memory_message *memory_find(
    const struct memory_broker *broker, enum route route, const char *id) {
    for (size_t i = 0; i < broker->message_count; i++) {
        const struct memory_message *message = &broker->messages[i];
        if (message->route == route && strcmp(memory_header(message, "gpu-worker-job-id"), id) == 0)
            return message;
    }
    return NULL;
}

size_t memory_count(const struct memory_broker *broker, enum route route) {
    size_t count = 0;
    for (size_t i = 0; i < broker->message_count; i++)
        if (broker->messages[i].route == route) count++;
    return count;
}
