#include "trace/tracer.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/backoff.h"
#include "base/clock.h"
#include "base/condition.h"
#include "base/crew.h"
#include "http/client.h"
#include "state/crash.h"
#include "trace/context.h"
#include "trace/reply.h"
#include "trace/spans.h"

enum {
    QUEUE_BYTES_MAX = 4 << 20,
    EXPORT_RECORDS_MAX = 256, /* in one request */
    EXPORT_WAIT_MS = 1000,    /* for so many */
    REQUEST_TIMEOUT_MS = 3000,
    STOP_TIMEOUT_MS = 3000, /* no request begins later */
    TRIES_MAX = 5,
    RETRY_BASE_MS = 500,
    RETRY_MAX_MS = 8000
};

struct tracer {
    struct tracer_options options;
    const char *path;
    struct http_client *client;
    struct span_ids ids;
    atomic_uint_fast64_t next_number; /* of a span; from 1 */
    struct crew *crew;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    struct record *first, **last;
    size_t count, bytes;
    bool is_stopping;
    uint64_t stop_ns; /* no request begins later */
};

/* ---- what jobs call ---- */

/* Relaxed: numbers only have to differ. */
static uint64_t take_numbers(struct tracer *tracer, uint64_t count) {
    return atomic_fetch_add_explicit(&tracer->next_number, count, memory_order_relaxed);
}

void tracer_begin(struct tracer *tracer, struct job *job) {
    struct trace_context context;
    if (!trace_context_read(job->delivery, &context) || (context.flags & TRACE_SAMPLED) == 0)
        return;
    struct job_trace *trace = arena_alloc_beyond(&job->arena, sizeof *trace);
    if (trace == NULL) return;
    *trace = (struct job_trace){.trace_id = context.trace_id,
        .parent_id = context.span_id,
        .state = trace_state_of(job->delivery),
        .flags = context.flags,
        .spans = take_numbers(tracer, SPANS_OF_JOB),
        .begun_ns = clock_ns() - job->decode_ns};
    char send_id[SPAN_ID_TEXT + 1];
    span_id_write(&tracer->ids, trace->spans + SPAN_SEND, send_id);
    snprintf(trace->traceparent, sizeof trace->traceparent, "00-%.*s-%s-%02x", TRACE_ID_TEXT,
        (const char *)context.trace_id.data, send_id, context.flags & 3u);
    job->trace = trace;
}

/* Owns the record; NULL: there was no memory for it. */
static void enqueue(struct tracer *tracer, struct record *record, size_t spans) {
    bool has_room = false;
    pthread_mutex_lock(&tracer->lock);
    if (record != NULL && tracer->bytes + record->bytes <= QUEUE_BYTES_MAX) {
        has_room = true;
        *tracer->last = record;
        tracer->last = &record->next;
        tracer->bytes += record->bytes;
        if (++tracer->count == EXPORT_RECORDS_MAX) pthread_cond_signal(&tracer->changed);
    }
    pthread_mutex_unlock(&tracer->lock);
    if (has_room) return;
    counters_add(tracer->options.counters, COUNTER_traces_spans_dropped, spans);
    free(record);
}

void tracer_end(
    struct tracer *tracer, const struct job *job, const char *program, uint64_t now_ns) {
    struct record *record = record_of_job(&tracer->ids, job, program, now_ns);
    enqueue(tracer, record, record != NULL ? record->spans : SPANS_OF_JOB);
}

void tracer_note_batch(struct tracer *tracer, struct job *const *jobs, size_t count) {
    size_t traced_count = 0;
    for (size_t i = 0; i < count; i++) traced_count += jobs[i]->trace != NULL;
    if (traced_count == 0 || jobs[0]->instances > 0) return; /* an array has many batches */
    uint64_t number = take_numbers(tracer, SPANS_OF_BATCH);
    for (size_t i = 0; i < count; i++)
        if (jobs[i]->trace != NULL) jobs[i]->trace->batch = number;
    enqueue(tracer, record_of_batch(&tracer->ids, jobs, count, traced_count, number), 1);
}

/* ---- the thread ---- */

/* The records for the next request; NULL: there are none, or the tracer stops and time is over. */
static struct record *take_records(struct tracer *tracer, bool *is_stopping) {
    pthread_mutex_lock(&tracer->lock);
    uint64_t until_ns = clock_ns_in(EXPORT_WAIT_MS);
    while (!tracer->is_stopping && tracer->count < EXPORT_RECORDS_MAX &&
           condition_wait_until(&tracer->changed, &tracer->lock, until_ns)) {
    }
    struct record *records = tracer->first, **end = &records;
    for (size_t i = 0; i < EXPORT_RECORDS_MAX && *end != NULL; i++) {
        tracer->count--;
        tracer->bytes -= (*end)->bytes;
        end = &(*end)->next;
    }
    tracer->first = *end;
    if (*end == NULL) tracer->last = &tracer->first;
    *end = NULL;
    *is_stopping = tracer->is_stopping;
    pthread_mutex_unlock(&tracer->lock);
    return records;
}

/* Waits before the next try. False: there is none. */
static bool wait_to_retry(struct tracer *tracer, uint32_t failed_count) {
    uint64_t number = take_numbers(tracer, 1);
    uint64_t random = hash_with_key(tracer->ids.key, slice_of(&number, sizeof number));
    uint64_t until_ns = clock_ns_in(backoff_ms(RETRY_BASE_MS, RETRY_MAX_MS, failed_count, random));
    pthread_mutex_lock(&tracer->lock);
    while (
        !tracer->is_stopping && condition_wait_until(&tracer->changed, &tracer->lock, until_ns)) {
    }
    bool is_stopping = tracer->is_stopping;
    pthread_mutex_unlock(&tracer->lock);
    return !is_stopping;
}

static bool may_begin(struct tracer *tracer) {
    pthread_mutex_lock(&tracer->lock);
    bool may = !tracer->is_stopping || clock_ns() < tracer->stop_ns;
    pthread_mutex_unlock(&tracer->lock);
    return may;
}

/* As the protocol has it: the collector may take it later. 0: it was not reached. */
static bool is_worth_another(long status) {
    return status == 0 || status == 429 || (status >= 502 && status <= 504);
}

static bool send(struct tracer *tracer, struct slice body, struct reply *reply) {
    const struct http_request request = {.method = HTTP_POST,
        .path = tracer->path,
        .body = body,
        .type = "Content-Type: application/json",
        .body_max = REPLY_BODY_BYTES_MAX,
        .take = reply_take,
        .context = reply};
    for (uint32_t failed_count = 1; may_begin(tracer); failed_count++) {
        struct http_answer answer;
        struct error err;
        reply->size = 0;
        if (http_client_send(tracer->client, &request, &answer, &err) == ERR_OK) return true;
        tracer->options.on_failed(tracer->options.context, &err);
        if (failed_count == TRIES_MAX || !is_worth_another(answer.status) ||
            !wait_to_retry(tracer, failed_count))
            return false;
    }
    return false;
}

/* How many of the spans the collector kept. What it rejected is not sent again, as the protocol has
 * it. */
static size_t count_kept(struct tracer *tracer, struct reply *reply, size_t span_count) {
    char message[REPLY_MESSAGE_BYTES];
    struct error err;
    uint64_t rejected = reply_rejected(reply, message);
    if (rejected == 0) return span_count;
    (void)error_set(&err, ERR_IO, 0, "correct what the collector's message says",
        "the collector rejected %" PRIu64 " of %zu spans: %s", rejected, span_count, message);
    tracer->options.on_failed(tracer->options.context, &err);
    return rejected < span_count ? span_count - (size_t)rejected : 0;
}

/* How many of their spans the collector took. */
static size_t export_records(
    struct tracer *tracer, const struct record *records, size_t span_count) {
    const struct tracer_options *options = &tracer->options;
    const struct spans_options spans = {.identity = options->identity,
        .group = options->group,
        .results_topic = options->results_topic,
        .letters_topic = options->letters_topic};
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) return 0;
    spans_write(&spans, records, clock_unix_ns() - clock_ns(), out);
    bool is_whole = ferror(out) == 0;
    is_whole = fclose(out) == 0 && is_whole;
    struct reply reply;
    bool is_sent = is_whole && send(tracer, slice_of(text, size), &reply);
    free(text);
    return is_sent ? count_kept(tracer, &reply, span_count) : 0;
}

static void run_tracer(void *context, uint32_t index) {
    struct tracer *tracer = context;
    crash_is_no_evidence();
    for (bool is_stopping = false; !is_stopping || tracer->first != NULL;) {
        size_t spans = 0;
        struct record *records = take_records(tracer, &is_stopping);
        for (const struct record *each = records; each != NULL; each = each->next)
            spans += each->spans;
        if (records == NULL) continue;
        size_t exported = export_records(tracer, records, spans);
        counters_add(tracer->options.counters, COUNTER_traces_spans_exported, exported);
        counters_add(tracer->options.counters, COUNTER_traces_spans_dropped, spans - exported);
        while (records != NULL) {
            struct record *record = records;
            records = record->next;
            free(record);
        }
    }
}

/* ---- its life ---- */

static const char *path_of(const char *url) {
    const char *host = strstr(url, "://");
    const char *path = host != NULL ? strchr(host + 3, '/') : NULL;
    return path == NULL || path[1] == 0 ? "v1/traces" : "";
}

static void destroy(struct tracer *tracer) {
    http_client_destroy(tracer->client);
    pthread_cond_destroy(&tracer->changed);
    pthread_mutex_destroy(&tracer->lock);
    free(tracer);
}

enum err tracer_start(
    const struct tracer_options *options, struct tracer **ret, struct error *err) {
    const struct http_client_options http = {
        .url = options->url, .setting = "tracing.otlp_url", .timeout_ms = REQUEST_TIMEOUT_MS};
    struct tracer *tracer = calloc(1, sizeof *tracer);
    if (tracer == NULL) return error_no_memory(err, "no memory for traces");
    tracer->options = *options;
    tracer->path = path_of(options->url);
    tracer->last = &tracer->first;
    atomic_init(&tracer->next_number, 1);
    pthread_mutex_init(&tracer->lock, NULL);
    pthread_cond_init(&tracer->changed, NULL);
    if (getrandom(&tracer->ids, sizeof tracer->ids, 0) != sizeof tracer->ids) abort();
    const struct crew_options crew = {
        .name = "tracer", .count = 1, .run = run_tracer, .context = tracer};
    enum err code = http_client_create(&http, &tracer->client, err);
    if (code == ERR_OK) code = crew_start(&crew, &tracer->crew, err);
    if (code == ERR_OK) *ret = tracer;
    else destroy(tracer);
    return code;
}

void tracer_stop(struct tracer *tracer) {
    if (tracer == NULL) return;
    pthread_mutex_lock(&tracer->lock);
    tracer->is_stopping = true;
    tracer->stop_ns = clock_ns_in(STOP_TIMEOUT_MS);
    pthread_cond_signal(&tracer->changed);
    pthread_mutex_unlock(&tracer->lock);
    crew_join(&tracer->crew);
    destroy(tracer);
}
