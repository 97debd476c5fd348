#include "publish/publisher.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/crew.h"
#include "base/invariant.h"
#include "base/pulse.h"
#include "publish/uploader.h"
#include "state/state.h"

enum {
    JOBS_AT_ONCE = 64,
    BUSY_WAIT_MS = 1, /* between looks at the queue while acknowledgements are due */
    IDLE_WAIT_MS = 100,
    FLUSH_MS = 100,           /* between looks at what has failed meanwhile */
    ERROR_RESULT_BYTES = 2048 /* without the job's id */
};

struct publisher {
    struct publisher_options options;
    struct queue *queue;
    struct uploader *uploader; /* NULL where all outputs are in results */
    struct crew *crew;
    pthread_mutex_t lock; /* of the sink: held while it is used; guards what follows */
    uint64_t unsettled;   /* jobs */
    bool has_failed;      /* nothing more is sent */
    int stop_timeout_ms;  /* written before the queue is closed */
    enum err stop_code;
    struct error stop_error;
    /* answered, and not yet reported */
    size_t completed_count;
    struct job *completed[JOBS_AT_ONCE];
};

static void fail(struct publisher *publisher, const struct error *err) {
    if (publisher->has_failed) return;
    publisher->has_failed = true;
    publisher->options.on_failed(publisher->options.context, err);
}

/* What is acknowledged is reported, also after a failure: the sink may have committed it. */
static void report_completed(struct publisher *publisher) {
    const struct publisher_options *options = &publisher->options;
    size_t count = publisher->completed_count;
    if (count == 0) return;
    options->on_published(options->context, publisher->completed, count);
    publisher->completed_count = 0;
    if (!publisher->has_failed && publisher->unsettled == 0) sink_settled(options->sink);
}

static void complete(struct job *job) {
    struct publisher *publisher = job->publisher;
    publisher->unsettled--;
    INVARIANT(publisher->completed_count < JOBS_AT_ONCE,
        "what is completed is reported before there is more than JOBS_AT_ONCE");
    publisher->completed[publisher->completed_count++] = job;
    if (publisher->completed_count == JOBS_AT_ONCE) report_completed(publisher);
}

static bool add_letter(struct job *job, enum answer answer) {
    job->has_letter = true;
    job->unsent[1] = message_of_dead_letter(job, answer, job->publisher->options.identity);
    return job->unsent[1] != NULL;
}

static bool add_error_result(struct job *job, enum answer answer) {
    struct error ignored; /* its cause is the refusal before */
    job->unsent[0] = job->result;
    return message_write_result(job->result, answer, job->publisher->options.identity, &ignored) ==
           ERR_OK;
}

/* Goes down the ladder, to what is to be said instead of what was refused for good. A job whose
 * outputs were refused has failed, so it has a letter, too. False where nothing is left to say, or
 * no memory to say it. */
static bool replace(struct job *job, enum answer refused, const struct error *refusal) {
    enum answer next = answer_next(refused);
    bool had_outputs = outcome_has_outputs(&job->outcome);
    if (next == ANSWER_COUNT) return false;
    if (had_outputs) {
        job->outcome.code = refusal->code;
        job->outcome.err = *refusal;
    }
    if (answer_is_letter(next)) {
        bool is_said = !answer_is_letter(refused) && job->has_letter;
        return is_said || add_letter(job, next);
    }
    if (had_outputs && !job->has_letter && !add_letter(job, ANSWER_LETTER)) return false;
    return add_error_result(job, next);
}

static void on_settled(struct record *record, enum err code, const struct error *err);

/* Of the records that answer a message, the last one of those that are on their way is so marked:
 * `has_last` says that it is among these. */
static void send(struct job *job, bool has_last) {
    struct sink *sink = job->publisher->options.sink;
    struct message *messages[2] = {job->unsent[0], job->unsent[1]};
    for (int i = 0; i < 2; i++) {
        job->unsent[i] = NULL;
        if (messages[i] != NULL) job->unsettled_count++;
    }
    /* The last of them may settle, and end the job, before sink_send() returns. */
    for (int i = 0; i < 2; i++) {
        if (messages[i] == NULL) continue;
        messages[i]->record.answers = &job->delivery->position;
        messages[i]->record.is_last = has_last && (i == 1 || messages[1] == NULL);
        messages[i]->record.on_settled = on_settled;
        sink_send(sink, &messages[i]->record);
    }
}

/* What is said instead goes at once: in a transaction it stands beside what it belongs to. */
static void on_settled(struct record *record, enum err code, const struct error *err) {
    struct message *message = (struct message *)record;
    struct job *job = message->job;
    struct publisher *publisher = job->publisher;
    bool has_last = record->is_last;
    if (code == ERR_REVOKED) {
        job->is_dropped = true;
    } else if (code == ERR_PUBLISH_REFUSED && !publisher->has_failed &&
               replace(job, message->answer, err)) {
        send(job, has_last);
    } else if (code != ERR_OK) {
        job->is_lost = true;
        fail(publisher, err);
    }
    job->unsettled_count--;
    if (job->unsettled_count == 0) complete(job);
}

/* Waits until everything is acknowledged, replacements included, or something is lost. */
static enum err finish(struct publisher *publisher, struct error *err) {
    uint64_t deadline_ns = clock_ns_in((uint64_t)publisher->stop_timeout_ms);
    enum err code = ERR_OK;
    while (!publisher->has_failed) {
        pulse_busy();
        code = sink_flush(publisher->options.sink, FLUSH_MS, err);
        bool is_over = publisher->unsettled == 0 && publisher->completed_count == 0;
        report_completed(publisher);
        if (code == ERR_OK ? is_over : code != ERR_TIMEOUT) break;
        if (code == ERR_TIMEOUT && publisher->stop_timeout_ms >= 0 && clock_ns() >= deadline_ns)
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

static void take(struct publisher *publisher, struct job *job) {
    publisher->unsettled++;
    if (!publisher->has_failed) {
        send(job, true);
    } else {
        job->is_lost = true;
        complete(job);
    }
}

/* Jobs leave the queue and are sent under one lock: nobody overtakes them. Returns how many. */
static size_t send_queued(struct publisher *publisher) {
    void *items[JOBS_AT_ONCE];
    size_t count = queue_pop(publisher->queue, items, JOBS_AT_ONCE, 0);
    pulse_busy(); /* also where nothing came: the sink is served */
    for (size_t i = 0; i < count; i++) take(publisher, items[i]);
    if (publisher->has_failed) end_sink(publisher);
    else sink_serve(publisher->options.sink, 0);
    report_completed(publisher);
    return count;
}

static void run_publisher(void *context, uint32_t index) {
    struct publisher *publisher = context;
    int wait_ms = IDLE_WAIT_MS;
    bool is_open = true;
    while (is_open) {
        queue_wait(publisher->queue, wait_ms);
        pthread_mutex_lock(&publisher->lock);
        size_t count = send_queued(publisher);
        wait_ms = publisher->unsettled > 0 ? BUSY_WAIT_MS : IDLE_WAIT_MS;
        pthread_mutex_unlock(&publisher->lock);
        is_open = count > 0 || !queue_is_closed(publisher->queue);
    }
    publisher->stop_code = finish(publisher, &publisher->stop_error);
    pulse_idle(); /* closing has time-outs of its own */
    end_sink(publisher);
    report_completed(publisher);
}

static enum err no_memory(struct error *err) {
    return error_no_memory(err, "no memory to answer a job");
}

enum err publisher_reserve(struct job *job, const struct plan *plan, size_t result_bytes_max,
    bool has_room, struct error *err) {
    job->result = has_room || job->instances > 0
                      ? message_reserve_around(job, plan, result_bytes_max)
                      : message_reserve_result(job, result_bytes_max);
    return job->result != NULL ? ERR_OK : no_memory(err);
}

/* Sends the one answer that there is, if that takes less time than waking up the publisher. */
static bool send_at_once(struct publisher *publisher, struct job *job) {
    if (job->unsent[0] == NULL || job->unsent[1] != NULL) return false; /* letters are rare */
    if (pthread_mutex_trylock(&publisher->lock) != 0) return false;
    bool is_alone = !publisher->has_failed && publisher->unsettled == 0 &&
                    queue_is_empty(publisher->queue) &&
                    sink_takes_at_once(publisher->options.sink, &job->unsent[0]->record);
    if (is_alone) {
        take(publisher, job);
        sink_serve(publisher->options.sink, 0);
        report_completed(publisher);
    }
    pthread_mutex_unlock(&publisher->lock);
    return is_alone;
}

static void push_some(struct publisher *publisher, struct job *const *jobs, size_t count) {
    struct key_queue *key_queues[JOBS_AT_ONCE]; /* once pushed, a job may be over */
    bool are_suspects[JOBS_AT_ONCE];
    void *items[JOBS_AT_ONCE];
    if (count == 0) return;
    for (size_t i = 0; i < count; i++) {
        key_queues[i] = jobs[i]->key_queue;
        are_suspects[i] = jobs[i]->delivery->is_suspect;
        items[i] = jobs[i];
        jobs[i]->key_queue = NULL;
        job_move(jobs[i], JOB_ANSWERED);
    }
    if (count > 1 || !send_at_once(publisher, jobs[0]))
        queue_must_push_all(publisher->queue, items, count);
    for (size_t i = 0; i < count; i++)
        publisher->options.on_queued(publisher->options.context, key_queues[i], are_suspects[i]);
}

void publisher_push(struct publisher *publisher, struct job *const *jobs, size_t count) {
    for (size_t i = 0; i < count; i += JOBS_AT_ONCE)
        push_some(publisher, jobs + i, count - i < JOBS_AT_ONCE ? count - i : JOBS_AT_ONCE);
}

/* A cancelled job ended as its sender wished: it needs no look and no replay. */
static bool is_failure(enum err code) {
    return code != ERR_OK && code != ERR_CANCELLED;
}

static enum err encode_result(struct publisher *publisher, struct job *job, struct error *err) {
    enum err code = ERR_OK;
    if (job->result == NULL)
        job->result = message_reserve_result(job, ERROR_RESULT_BYTES + job->id.size);
    if (job->result == NULL) code = no_memory(err);
    if (code == ERR_OK)
        code = message_write_result(job->result, ANSWER_RESULT, publisher->options.identity, err);
    if (code == ERR_OK) job->unsent[0] = job->result;
    return code;
}

/* A message without an id has a dead letter alone. */
static enum err encode(struct publisher *publisher, struct job *job, struct error *err) {
    bool has_id = job->id.size > 0;
    enum err code = ERR_OK;
    job->publisher = publisher;
    state_enter(publisher->options.state, &job->delivery->position, job->retry_count + 1);
    if (has_id) code = encode_result(publisher, job, err);
    if (code == ERR_OK && is_failure(job->outcome.code) && !add_letter(job, ANSWER_LETTER))
        code = no_memory(err);
    state_leave(publisher->options.state);
    if (code == ERR_OK && has_id) publisher->options.on_encoded(publisher->options.context, job);
    return code;
}

enum err publisher_encode(
    struct publisher *publisher, struct job *job, bool *is_encoded, struct error *err) {
    *is_encoded = false;
    if (uploader_wants(publisher->uploader, job)) {
        struct error not_pushed;
        enum err code = uploader_push(publisher->uploader, job, &not_pushed);
        if (code == ERR_OK) return code;
        upload_end(job);
        job->outcome.code = code;
        job->outcome.err = not_pushed;
        publisher->options.on_not_uploaded(publisher->options.context, job);
        return ERR_OK;
    }
    enum err code = encode(publisher, job, err);
    *is_encoded = code == ERR_OK;
    return code;
}

static void on_uploaded(void *context, struct job *job) {
    struct publisher *publisher = context;
    struct outcome *outcome = &job->outcome;
    bool is_encoded = outcome_has_outputs(outcome);
    if (is_encoded) {
        struct error err;
        enum err code = encode(publisher, job, &err);
        is_encoded = code == ERR_OK;
        if (!is_encoded) outcome->code = code;
        if (!is_encoded) outcome->err = err;
    }
    upload_end(job);
    if (is_encoded) publisher_push(publisher, &job, 1);
    else publisher->options.on_not_uploaded(publisher->options.context, job);
}

static enum err start_uploader(struct publisher *publisher, struct error *err) {
    const struct publisher_options *options = &publisher->options;
    if (options->blobs == NULL) return ERR_OK;
    struct uploader_options uploader = {.blobs = options->blobs,
        .inline_bytes_max = options->inline_bytes_max,
        .queue_length = options->queue_length,
        .on_uploaded = on_uploaded,
        .context = publisher};
    return uploader_start(&uploader, &publisher->uploader, err);
}

/* The sink's thread comes last: from then on it owns the sink. */
static enum err start_threads(struct publisher *publisher, struct error *err) {
    publisher->queue = queue_create(publisher->options.queue_length);
    if (publisher->queue == NULL)
        return error_no_memory(err, "no memory for the publisher's queue");
    const struct crew_options crew = {
        .name = "publisher", .count = 1, .run = run_publisher, .context = publisher};
    enum err code = start_uploader(publisher, err);
    if (code == ERR_OK) code = crew_start(&crew, &publisher->crew, err);
    if (code == ERR_OK) return ERR_OK;
    uploader_stop(publisher->uploader);
    queue_destroy(publisher->queue);
    return code;
}

static void publisher_free(struct publisher *publisher) {
    if (publisher == NULL) return;
    pthread_mutex_destroy(&publisher->lock);
    free(publisher);
}

enum err publisher_start(
    const struct publisher_options *options, struct publisher **ret, struct error *err) {
    struct publisher *publisher = calloc(1, sizeof *publisher);
    enum err code = ERR_NO_MEMORY;
    if (publisher != NULL) {
        publisher->options = *options;
        pthread_mutex_init(&publisher->lock, NULL);
        code = start_threads(publisher, err);
    } else {
        error_set(err, code, 0, "give the process more memory", "no memory for the publisher");
    }
    if (code == ERR_OK) {
        *ret = publisher;
    } else {
        sink_destroy(options->sink);
        publisher_free(publisher);
    }
    return code;
}

enum err publisher_stop(struct publisher *publisher, int timeout_ms, struct error *err) {
    if (publisher == NULL) return ERR_OK;
    uploader_stop(publisher->uploader); /* it still pushes */
    publisher->stop_timeout_ms = timeout_ms;
    queue_close(publisher->queue); /* its lock orders the write above */
    crew_join(&publisher->crew);
    enum err code = publisher->stop_code;
    if (code != ERR_OK) *err = publisher->stop_error;
    queue_destroy(publisher->queue);
    publisher_free(publisher);
    return code;
}
