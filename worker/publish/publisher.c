#include "publish/publisher.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/invariant.h"
#include "publish/storer.h"
#include "state/state.h"

enum {
    PUBLICATIONS_AT_ONCE = 64,
    BUSY_WAIT_MS = 1, /* between looks at the queue while acknowledgements are due */
    IDLE_WAIT_MS = 100,
    ERROR_RESULT_BYTES = 2048 /* without the job's id */
};

/* In the arena of its job, as its messages are. */
struct publication {
    struct publisher *publisher;
    struct job *job; /* owned; has no id where the message is no job */
    bool is_error;
    bool is_dropped;
    struct error err;         /* what its dead letter says */
    struct message *result;   /* NULL where the message is no job */
    struct message *first[2]; /* until they are sent */
    uint32_t unsettled;       /* publisher's thread only */
    struct publication *next; /* in the list of those to be sent again */
};

struct publisher {
    struct publisher_options options;
    struct queue *queue;
    struct storer *storer; /* NULL where all outputs are in results */
    pthread_t thread;
    uint64_t unsettled; /* publications; publisher's thread only */
    bool has_failed;
    int stop_timeout_ms; /* written before the queue is closed */
    enum err stop_code;
    struct error stop_error;
    struct publication *again;
    /* answered, and not yet reported */
    size_t completed_count;
    struct publication *completed[PUBLICATIONS_AT_ONCE];
};

static void fail(struct publisher *publisher, const struct error *err) {
    if (publisher->has_failed) return;
    publisher->has_failed = true;
    publisher->options.on_failed(publisher->options.context, err);
}

/* After a failure nothing more is reported as published: it comes again after a restart. */
static void report_completed(struct publisher *publisher) {
    struct published items[PUBLICATIONS_AT_ONCE];
    size_t count = publisher->completed_count;
    if (count == 0) return;
    for (size_t i = 0; i < count; i++) {
        const struct publication *publication = publisher->completed[i];
        items[i] = (struct published){.delivery = publication->job->delivery,
            .is_error = publication->is_error,
            .is_dropped = publication->is_dropped};
    }
    if (!publisher->has_failed)
        publisher->options.on_published(publisher->options.context, items, count);
    if (!publisher->has_failed && publisher->unsettled == 0) sink_settled(publisher->options.sink);
    for (size_t i = 0; i < count; i++) job_destroy(publisher->completed[i]->job);
    publisher->completed_count = 0;
}

static void complete(struct publication *publication) {
    struct publisher *publisher = publication->publisher;
    publisher->unsettled--;
    publisher->completed[publisher->completed_count++] = publication;
    if (publisher->completed_count == PUBLICATIONS_AT_ONCE) report_completed(publisher);
}

static bool add_dead_letter(
    struct publication *publication, const struct error *err, bool truncated) {
    publication->is_error = true;
    publication->err = *err;
    publication->first[1] = message_of_dead_letter(
        publication->job, &publication->err, truncated, publication->publisher->options.identity);
    return publication->first[1] != NULL;
}

/*
 * What to say instead of a message that was refused for good: an error result and a dead letter
 * instead of outputs, a dead letter without the bytes instead of one with them. False where nothing
 * smaller is left, or no memory to say it.
 */
static bool replace(
    struct publication *publication, const struct message *refused, const struct error *err) {
    const struct identity *identity = publication->publisher->options.identity;
    struct message *result = publication->result;
    if (refused->is_truncated || refused->is_error) return false;
    if (refused != result) return add_dead_letter(publication, &publication->err, true);
    struct outcome outcome = {.code = ERR_PUBLISH_REFUSED, .err = *err};
    struct error ignored;
    outcome.err.code = ERR_PUBLISH_REFUSED;
    if (!add_dead_letter(publication, &outcome.err, false)) return false;
    if (message_write_result(result, publication->job, &outcome, NULL, identity, &ignored) !=
        ERR_OK)
        return false;
    result->record.topic = NULL; /* the topic that refused may be the reply_to */
    publication->first[0] = result;
    return true;
}

static void on_settled(struct record *record, enum err code, const struct error *err) {
    struct message *message = (struct message *)record;
    struct publication *publication = message->owner;
    struct publisher *publisher = publication->publisher;
    if (code == ERR_PUBLISH_REFUSED && replace(publication, message, err)) {
        /* Sent by the thread's loop: a sink's callback must not send. */
        publication->next = publisher->again;
        publisher->again = publication;
    } else if (code == ERR_REVOKED) {
        publication->is_dropped = true;
    } else if (code != ERR_OK) {
        fail(publisher, err);
    }
    publication->unsettled--;
    bool is_waiting = publication->first[0] != NULL || publication->first[1] != NULL;
    if (publication->unsettled == 0 && !is_waiting) complete(publication);
}

static void send(struct publication *publication) {
    struct sink *sink = publication->publisher->options.sink;
    struct message *messages[2] = {publication->first[0], publication->first[1]};
    for (int i = 0; i < 2; i++) {
        publication->first[i] = NULL;
        if (messages[i] != NULL) publication->unsettled++;
    }
    /* The last of them may settle, and end the publication, before sink_send() returns. */
    for (int i = 0; i < 2; i++) {
        if (messages[i] == NULL) continue;
        messages[i]->owner = publication;
        messages[i]->record.answers = &publication->job->delivery->position;
        messages[i]->record.is_last = i == 1 || messages[1] == NULL;
        messages[i]->record.on_settled = on_settled;
        sink_send(sink, &messages[i]->record);
    }
}

static void send_again(struct publisher *publisher) {
    while (publisher->again != NULL) {
        struct publication *publication = publisher->again;
        publisher->again = publication->next;
        send(publication);
    }
}

/* Waits until everything is acknowledged, replacements included. */
static enum err finish(struct publisher *publisher, struct error *err) {
    enum err code;
    do {
        send_again(publisher);
        code = sink_flush(publisher->options.sink, publisher->stop_timeout_ms, err);
        report_completed(publisher);
    } while (code == ERR_OK && publisher->again != NULL);
    return code;
}

static void *publisher_thread(void *context) {
    struct publisher *publisher = context;
    void *items[PUBLICATIONS_AT_ONCE];
    bool is_open = true;
    pthread_setname_np(pthread_self(), "publisher"); /* as tools that list threads show it */
    while (is_open) {
        int wait_ms = publisher->unsettled > 0 ? BUSY_WAIT_MS : IDLE_WAIT_MS;
        size_t count = queue_pop(publisher->queue, items, PUBLICATIONS_AT_ONCE, wait_ms);
        publisher->unsettled += count;
        for (size_t i = 0; i < count; i++) send(items[i]);
        sink_serve(publisher->options.sink, 0);
        send_again(publisher);
        report_completed(publisher);
        is_open = count > 0 || !queue_is_closed(publisher->queue);
    }
    publisher->stop_code = finish(publisher, &publisher->stop_error);
    /* What the sink still holds is settled as failed by its end; that is no news any more. */
    publisher->has_failed = true;
    sink_destroy(publisher->options.sink);
    report_completed(publisher);
    return NULL;
}

static enum err no_memory(struct error *err) {
    return error_set(
        err, ERR_NO_MEMORY, 0, "give the process more memory", "no memory to answer a job");
}

static struct publication *publication_create(struct publisher *publisher, struct job *job) {
    struct publication *publication = arena_alloc_beyond(&job->arena, sizeof *publication);
    if (publication == NULL) return NULL;
    *publication = (struct publication){.publisher = publisher, .job = job};
    return publication;
}

enum err publisher_reserve(
    struct publisher *publisher, struct job *job, size_t result_bytes_max, struct error *err) {
    struct publication *publication = publication_create(publisher, job);
    if (publication == NULL) return no_memory(err);
    publication->result = message_reserve_result(job, result_bytes_max);
    if (publication->result == NULL) return no_memory(err);
    job->publication = publication;
    return ERR_OK;
}

static void push_some(
    struct publisher *publisher, struct publication *const *publications, size_t count) {
    void *items[PUBLICATIONS_AT_ONCE];
    struct gate_line *lines[PUBLICATIONS_AT_ONCE]; /* once pushed, a job may be over */
    bool are_suspects[PUBLICATIONS_AT_ONCE];
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        if (publications[i] == NULL) continue;
        lines[used] = publications[i]->job->line;
        are_suspects[used] = publications[i]->job->delivery->is_suspect;
        items[used++] = publications[i];
    }
    if (used == 0) return;
    size_t queued = queue_push_all(publisher->queue, items, used);
    INVARIANT(queued == used, "the queue is closed only after the last push");
    for (size_t i = 0; i < used; i++)
        publisher->options.on_queued(publisher->options.context, lines[i], are_suspects[i]);
}

void publisher_push(
    struct publisher *publisher, struct publication *const *publications, size_t count) {
    for (size_t i = 0; i < count; i += PUBLICATIONS_AT_ONCE)
        push_some(publisher, publications + i,
            count - i < PUBLICATIONS_AT_ONCE ? count - i : PUBLICATIONS_AT_ONCE);
}

/* What was cancelled did as its sender wished: nobody has to look at it, and nobody replays it. */
static bool is_failure(enum err code) {
    return code != ERR_OK && code != ERR_CANCELLED;
}

static enum err encode(struct publisher *publisher, struct job *job, const struct outcome *outcome,
    const struct digest *const *blobs, struct publication **ret, struct error *err) {
    enum err code = ERR_OK;
    if (job->publication == NULL)
        code = publisher_reserve(publisher, job, ERROR_RESULT_BYTES + job->id.size, err);
    if (code != ERR_OK) return code;
    struct publication *publication = job->publication;
    struct message *result = publication->result;
    struct state *state = publisher->options.state;
    state_enter(state, &job->delivery->position, job->retry_count + 1);
    code = message_write_result(result, job, outcome, blobs, publisher->options.identity, err);
    bool is_whole = code != ERR_OK || !is_failure(outcome->code) ||
                    add_dead_letter(publication, &outcome->err, false);
    state_leave(state);
    if (code != ERR_OK) return code;
    if (!is_whole) return no_memory(err);
    publication->is_error = outcome->code != ERR_OK;
    publication->first[0] = result;
    *ret = publication;
    return ERR_OK;
}

static void on_stored(void *context, struct job *job, const struct outcome *outcome,
    const struct digest *const *blobs) {
    struct publisher *publisher = context;
    struct publication *publication;
    struct error err;
    if (encode(publisher, job, outcome, blobs, &publication, &err) == ERR_OK) {
        publisher_push(publisher, &publication, 1);
        return;
    }
    publisher->options.on_failed(publisher->options.context, &err);
    job_destroy(job); /* unanswered and uncommitted: it comes again */
}

static enum err start_storer(struct publisher *publisher, struct error *err) {
    const struct publisher_options *options = &publisher->options;
    if (options->blobs == NULL) return ERR_OK;
    struct storer_options storer = {.blobs = options->blobs,
        .inline_bytes_max = options->inline_bytes_max,
        .queue_length = options->queue_length,
        .on_stored = on_stored,
        .context = publisher};
    return storer_start(&storer, &publisher->storer, err);
}

/* The sink's thread comes last: from then on it owns the sink. */
static enum err start_threads(struct publisher *publisher, struct error *err) {
    publisher->queue = queue_create(publisher->options.queue_length);
    enum err code = publisher->queue != NULL ? start_storer(publisher, err) : ERR_NO_MEMORY;
    if (code == ERR_OK &&
        pthread_create(&publisher->thread, NULL, publisher_thread, publisher) != 0)
        code = ERR_NO_MEMORY;
    if (code == ERR_OK) return ERR_OK;
    storer_stop(publisher->storer);
    queue_destroy(publisher->queue);
    return error_set(err, ERR_NO_MEMORY, 0, "raise the limits on memory and threads",
        "cannot start the publisher");
}

enum err publisher_start(
    const struct publisher_options *options, struct publisher **ret, struct error *err) {
    struct publisher *publisher = calloc(1, sizeof *publisher);
    enum err code = ERR_NO_MEMORY;
    if (publisher != NULL) {
        publisher->options = *options;
        code = start_threads(publisher, err);
    } else {
        error_set(err, code, 0, "give the process more memory", "no memory for the publisher");
    }
    if (code == ERR_OK) {
        *ret = publisher;
    } else {
        sink_destroy(options->sink);
        free(publisher);
    }
    return code;
}

enum err publisher_stop(struct publisher *publisher, int timeout_ms, struct error *err) {
    if (publisher == NULL) return ERR_OK;
    storer_stop(publisher->storer); /* it still pushes */
    publisher->stop_timeout_ms = timeout_ms;
    queue_close(publisher->queue); /* its lock orders the write above */
    pthread_join(publisher->thread, NULL);
    enum err code = publisher->stop_code;
    if (code != ERR_OK) *err = publisher->stop_error;
    queue_destroy(publisher->queue);
    free(publisher);
    return code;
}

enum err publisher_encode(struct publisher *publisher, struct job *job,
    const struct outcome *outcome, struct publication **ret, struct error *err) {
    *ret = NULL;
    if (!storer_wants(publisher->storer, job, outcome))
        return encode(publisher, job, outcome, NULL, ret, err);
    struct outcome failed = {.telemetry = outcome->telemetry};
    failed.code = storer_push(publisher->storer, job, outcome, &failed.err);
    return failed.code == ERR_OK ? ERR_OK : encode(publisher, job, &failed, NULL, ret, err);
}

enum err publisher_push_undecodable(struct publisher *publisher, struct delivery *delivery,
    const struct error *reason, struct error *err) {
    struct job *job = calloc(1, sizeof *job);
    if (job == NULL) return no_memory(err);
    job->delivery = delivery;
    struct publication *publication = publication_create(publisher, job);
    if (publication == NULL || !add_dead_letter(publication, reason, false)) {
        job->delivery = NULL;
        job_destroy(job);
        return no_memory(err);
    }
    publisher_push(publisher, &publication, 1);
    return ERR_OK;
}
