#include "publish/publisher.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/crew.h"
#include "base/invariant.h"
#include "base/pulse.h"
#include "publish/storer.h"
#include "state/state.h"

enum {
    PUBLICATIONS_AT_ONCE = 64,
    BUSY_WAIT_MS = 1, /* between looks at the queue while acknowledgements are due */
    IDLE_WAIT_MS = 100,
    FLUSH_MS = 100,           /* between looks at what has failed meanwhile */
    ERROR_RESULT_BYTES = 2048 /* without the job's id */
};

/* In the arena of its job, as its messages are. */
struct publication {
    struct publisher *publisher;
    struct job *job;          /* owned; has no id where the message is no job */
    struct error err;         /* what its answers say; ERR_OK: nothing failed */
    struct message *result;   /* NULL where the message is no job */
    struct message *first[2]; /* until they are sent */
    /* publisher's thread only */
    uint32_t unsettled;
    bool has_letter; /* sent, or about to be */
    bool is_dropped;
    bool is_lost; /* an answer of it found no taker */
};

struct publisher {
    struct publisher_options options;
    struct queue *queue;
    struct storer *storer; /* NULL where all outputs are in results */
    struct crew *crew;
    uint64_t unsettled;  /* publications; publisher's thread only */
    bool has_failed;     /* nothing more is sent */
    int stop_timeout_ms; /* written before the queue is closed */
    enum err stop_code;
    struct error stop_error;
    /* answered, and not yet reported */
    size_t completed_count;
    struct publication *completed[PUBLICATIONS_AT_ONCE];
};

static void fail(struct publisher *publisher, const struct error *err) {
    if (publisher->has_failed) return;
    publisher->has_failed = true;
    publisher->options.on_failed(publisher->options.context, err);
}

/* What is acknowledged is reported, also after a failure: the sink may have committed it. */
static void report_completed(struct publisher *publisher) {
    struct published items[PUBLICATIONS_AT_ONCE];
    size_t count = 0;
    for (size_t i = 0; i < publisher->completed_count; i++) {
        const struct publication *publication = publisher->completed[i];
        if (publication->is_lost) continue;
        items[count++] = (struct published){.delivery = publication->job->delivery,
            .code = publication->err.code,
            .is_dropped = publication->is_dropped};
    }
    if (count > 0) publisher->options.on_published(publisher->options.context, items, count);
    if (count > 0 && !publisher->has_failed && publisher->unsettled == 0)
        sink_settled(publisher->options.sink);
    for (size_t i = 0; i < publisher->completed_count; i++)
        job_destroy(publisher->completed[i]->job);
    publisher->completed_count = 0;
}

static void complete(struct publication *publication) {
    struct publisher *publisher = publication->publisher;
    publisher->unsettled--;
    INVARIANT(publisher->completed_count < PUBLICATIONS_AT_ONCE,
        "what is completed is reported before there is more than PUBLICATIONS_AT_ONCE");
    publisher->completed[publisher->completed_count++] = publication;
    if (publisher->completed_count == PUBLICATIONS_AT_ONCE) report_completed(publisher);
}

static bool add_letter(struct publication *publication, enum answer answer) {
    publication->has_letter = true;
    publication->first[1] = message_of_dead_letter(
        publication->job, answer, &publication->err, publication->publisher->options.identity);
    return publication->first[1] != NULL;
}

static bool add_error_result(struct publication *publication, enum answer answer) {
    const struct identity *identity = publication->publisher->options.identity;
    struct outcome outcome = {.code = publication->err.code, .err = publication->err};
    struct error ignored; /* its cause is the refusal before */
    publication->first[0] = publication->result;
    return message_write_result(publication->result, answer, publication->job, &outcome, NULL,
               identity, &ignored) == ERR_OK;
}

/* Goes down the ladder, to what is to be said instead of what was refused for good. A job whose
 * outputs were refused has failed, so it has a letter, too. False where nothing is left to say, or
 * no memory to say it. */
static bool replace(
    struct publication *publication, enum answer refused, const struct error *refusal) {
    enum answer next = answer_next(refused);
    bool has_succeeded = publication->err.code == ERR_OK;
    if (next == ANSWER_COUNT) return false;
    if (has_succeeded) publication->err = *refusal;
    if (answer_is_letter(next)) {
        bool is_said = !answer_is_letter(refused) && publication->has_letter;
        return is_said || add_letter(publication, next);
    }
    if (has_succeeded && !add_letter(publication, ANSWER_LETTER)) return false;
    return add_error_result(publication, next);
}

static void on_settled(struct record *record, enum err code, const struct error *err);

/* Of the records that answer a message, the last one of those that are on their way is so marked:
 * `has_last` says that it is among these. */
static void send(struct publication *publication, bool has_last) {
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
        messages[i]->record.is_last = has_last && (i == 1 || messages[1] == NULL);
        messages[i]->record.on_settled = on_settled;
        sink_send(sink, &messages[i]->record);
    }
}

/* What is said instead goes at once: in a transaction it stands beside what it belongs to. */
static void on_settled(struct record *record, enum err code, const struct error *err) {
    struct message *message = (struct message *)record;
    struct publication *publication = message->owner;
    struct publisher *publisher = publication->publisher;
    bool has_last = record->is_last;
    if (code == ERR_REVOKED) {
        publication->is_dropped = true;
    } else if (code == ERR_PUBLISH_REFUSED && !publisher->has_failed &&
               replace(publication, message->answer, err)) {
        send(publication, has_last);
    } else if (code != ERR_OK) {
        publication->is_lost = true;
        fail(publisher, err);
    }
    publication->unsettled--;
    if (publication->unsettled == 0) complete(publication);
}

/* Waits until everything is acknowledged, replacements included, or something is lost. */
static enum err finish(struct publisher *publisher, struct error *err) {
    uint64_t deadline_ns = clock_ns_in((uint64_t)publisher->stop_timeout_ms);
    enum err code = ERR_OK;
    while (!publisher->has_failed) {
        pulse_busy();
        code = sink_flush(publisher->options.sink, FLUSH_MS, err);
        report_completed(publisher);
        if (code != ERR_TIMEOUT) break;
        if (publisher->stop_timeout_ms >= 0 && clock_ns() >= deadline_ns)
            return error_set(err, ERR_TIMEOUT, 0, "check that the brokers can be reached",
                "answers were not acknowledged within %d ms", publisher->stop_timeout_ms);
    }
    return publisher->has_failed ? ERR_OK : code; /* on_failed has told */
}

/* What the sink still holds is settled as failed by its end; that is no news any more. */
static void end_sink(struct publisher *publisher) {
    publisher->has_failed = true;
    sink_destroy(publisher->options.sink);
    publisher->options.sink = NULL;
}

static void take(struct publisher *publisher, struct publication *publication) {
    publisher->unsettled++;
    if (!publisher->has_failed) {
        send(publication, true);
    } else {
        publication->is_lost = true;
        complete(publication);
    }
}

static void run_publisher(void *context, uint32_t index) {
    struct publisher *publisher = context;
    void *items[PUBLICATIONS_AT_ONCE];
    bool is_open = true;
    while (is_open) {
        int wait_ms = publisher->unsettled > 0 ? BUSY_WAIT_MS : IDLE_WAIT_MS;
        size_t count = queue_pop(publisher->queue, items, PUBLICATIONS_AT_ONCE, wait_ms);
        pulse_busy(); /* also where nothing came: the sink is served */
        for (size_t i = 0; i < count; i++) take(publisher, items[i]);
        if (publisher->has_failed) end_sink(publisher);
        else sink_serve(publisher->options.sink, 0);
        report_completed(publisher);
        is_open = count > 0 || !queue_is_closed(publisher->queue);
    }
    publisher->stop_code = finish(publisher, &publisher->stop_error);
    pulse_idle(); /* closing has time-outs of its own */
    end_sink(publisher);
    report_completed(publisher);
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
    struct key_queue *key_queues[PUBLICATIONS_AT_ONCE]; /* once pushed, a job may be over */
    bool are_suspects[PUBLICATIONS_AT_ONCE];
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        if (publications[i] == NULL) continue;
        key_queues[used] = publications[i]->job->key_queue;
        are_suspects[used] = publications[i]->job->delivery->is_suspect;
        items[used++] = publications[i];
    }
    if (used == 0) return;
    queue_must_push_all(publisher->queue, items, used);
    for (size_t i = 0; i < used; i++)
        publisher->options.on_queued(publisher->options.context, key_queues[i], are_suspects[i]);
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
    if (outcome->code != ERR_OK) publication->err = outcome->err;
    publication->err.code = outcome->code;
    code = message_write_result(
        result, ANSWER_RESULT, job, outcome, blobs, publisher->options.identity, err);
    bool is_whole =
        code != ERR_OK || !is_failure(outcome->code) || add_letter(publication, ANSWER_LETTER);
    state_leave(state);
    if (code != ERR_OK) return code;
    if (!is_whole) return no_memory(err);
    publication->first[0] = result;
    publisher->options.on_encoded(publisher->options.context, outcome);
    *ret = publication;
    return ERR_OK;
}

static void on_stored(void *context, struct job *job, const struct outcome *outcome,
    const struct digest *const *blobs) {
    struct publisher *publisher = context;
    struct publication *publication;
    struct outcome failed = {.telemetry = outcome->telemetry};
    failed.code = outcome->code;
    failed.err = outcome->err;
    if (failed.code == ERR_OK)
        failed.code = encode(publisher, job, outcome, blobs, &publication, &failed.err);
    if (failed.code == ERR_OK) publisher_push(publisher, &publication, 1);
    else publisher->options.on_not_stored(publisher->options.context, job, &failed);
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
    if (publisher->queue == NULL)
        return error_set(err, ERR_NO_MEMORY, 0, "give the process more memory",
            "no memory for the publisher's queue");
    const struct crew_options crew = {
        .name = "publisher", .count = 1, .run = run_publisher, .context = publisher};
    enum err code = start_storer(publisher, err);
    if (code == ERR_OK) code = crew_start(&crew, &publisher->crew, err);
    if (code == ERR_OK) return ERR_OK;
    storer_stop(publisher->storer);
    queue_destroy(publisher->queue);
    return code;
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
    crew_join(&publisher->crew);
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
    if (publication != NULL) publication->err = *reason;
    if (publication == NULL || !add_letter(publication, ANSWER_LETTER)) {
        job->delivery = NULL;
        job_destroy(job);
        return no_memory(err);
    }
    publisher_push(publisher, &publication, 1);
    return ERR_OK;
}
