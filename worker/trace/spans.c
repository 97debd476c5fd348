#include "trace/spans.h"

#include <inttypes.h>

#include "base/json_writer.h"

/* Numbers of the protocol. */
enum { KIND_INTERNAL = 1, KIND_CLIENT = 3, KIND_PRODUCER = 4, KIND_CONSUMER = 5 };
enum { STATUS_ERROR = 2 };
enum { FLAGS_KNOW_REMOTE = 0x100, FLAGS_REMOTE = 0x200 }; /* whether the parent is elsewhere */

static const struct span_info {
    const char *name, *operation; /* the operation of the conventions; NULL: it is none */
    int kind;
    bool is_within; /* the job's `process` is its parent, else the sender's span */
} infos[SPANS_OF_JOB] = {
    [SPAN_RECEIVE] = {"receive", "receive", KIND_CLIENT, false},
    [SPAN_PROCESS] = {"process", "process", KIND_CONSUMER, false},
    [SPAN_DECODE] = {"decode", NULL, KIND_INTERNAL, true},
    [SPAN_PREPARE] = {"prepare", NULL, KIND_INTERNAL, true},
    [SPAN_DEVICE] = {"device", NULL, KIND_INTERNAL, true},
    [SPAN_SEND] = {"send", "send", KIND_PRODUCER, true},
};

/* ---- values: OTLP has numbers of 64 bits as strings ---- */

static void write_digits(struct json_writer *json, const char *key, uint64_t number) {
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRIu64, number);
    json_text(json, key, digits);
}

static void begin_attribute(struct json_writer *json, const char *key) {
    json_object(json, NULL);
    json_text(json, "key", key);
    json_object(json, "value");
}

static void end_attribute(struct json_writer *json) {
    json_end(json);
    json_end(json);
}

/* What is empty is not known. */
static void put_text(struct json_writer *json, const char *key, const char *text) {
    if (text[0] == 0) return;
    begin_attribute(json, key);
    json_bytes(json, "stringValue", slice_of_text(text));
    end_attribute(json);
}

static void put_number(struct json_writer *json, const char *key, int64_t number) {
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRId64, number);
    begin_attribute(json, key);
    json_text(json, "intValue", digits);
    end_attribute(json);
}

/* ---- spans ---- */

static void write_time(struct json_writer *json, const struct span_time *time, uint64_t unix_ns) {
    uint64_t begun_ns = time->begun_ns + unix_ns, ended_ns = time->ended_ns + unix_ns;
    write_digits(json, "startTimeUnixNano", begun_ns);
    write_digits(json, "endTimeUnixNano", ended_ns > begun_ns ? ended_ns : begun_ns);
}

static void write_link(struct json_writer *json, const struct span_link *link) {
    json_object(json, NULL);
    json_text(json, "traceId", link->trace_id);
    json_text(json, "spanId", link->span_id);
    json_end(json);
}

static void put_operation(struct json_writer *json, const struct spans_options *options,
    const struct job_record *record, enum span_of_job span) {
    const char *answers = record->is_letter ? options->letters_topic : options->results_topic;
    if (infos[span].operation == NULL) return;
    put_text(json, "messaging.system", "kafka");
    put_text(json, "messaging.operation.name", infos[span].name);
    put_text(json, "messaging.operation.type", infos[span].operation);
    if (span == SPAN_SEND) {
        put_text(json, "messaging.destination.name",
            record->reply_to[0] != 0 ? record->reply_to : answers);
        return;
    }
    char partition[12];
    snprintf(partition, sizeof partition, "%" PRId32, record->partition);
    put_text(json, "messaging.destination.name", record->topic);
    put_text(json, "messaging.destination.partition.id", partition);
    put_text(json, "messaging.consumer.group.name", options->group);
    put_number(json, "messaging.kafka.offset", record->offset);
}

static void put_job(struct json_writer *json, const struct job_record *record) {
    put_text(json, "gpu_worker.job.id", record->job);
    put_text(json, "gpu_worker.program", record->program);
    put_number(json, "gpu_worker.retries", record->retries);
    if (record->instances > 0) put_number(json, "gpu_worker.instances", (int64_t)record->instances);
    if (record->code != ERR_OK) put_text(json, "error.type", err_code(record->code));
}

static void put_batch(struct json_writer *json, uint64_t id, uint64_t jobs) {
    put_number(json, "gpu_worker.batch.id", (int64_t)id);
    put_number(json, "gpu_worker.batch.jobs", (int64_t)jobs);
}

static void write_status(struct json_writer *json, const struct job_record *record) {
    if (record->code == ERR_OK) return;
    json_object(json, "status");
    json_int(json, "code", STATUS_ERROR);
    json_bytes(json, "message", slice_of_text(record->message));
    json_end(json);
}

static void write_job_span(struct json_writer *json, const struct spans_options *options,
    const struct job_record *record, enum span_of_job span, uint64_t unix_ns) {
    const struct span_info *info = &infos[span];
    json_object(json, NULL);
    json_text(json, "traceId", record->trace_id);
    json_text(json, "spanId", record->ids[span]);
    json_text(
        json, "parentSpanId", info->is_within ? record->ids[SPAN_PROCESS] : record->parent_id);
    json_int(
        json, "flags", record->flags | FLAGS_KNOW_REMOTE | (info->is_within ? 0 : FLAGS_REMOTE));
    json_text(json, "name", info->name);
    json_int(json, "kind", info->kind);
    write_time(json, &record->times[span], unix_ns);
    if (record->state[0] != 0) json_bytes(json, "traceState", slice_of_text(record->state));
    json_array(json, "attributes");
    put_operation(json, options, record, span);
    if (span == SPAN_PROCESS) put_job(json, record);
    if (span == SPAN_DEVICE) put_batch(json, record->batch_id, record->batch_jobs);
    json_end(json);
    if (span == SPAN_DEVICE && record->has_batch) {
        json_array(json, "links");
        write_link(json, &record->batch);
        json_end(json);
    }
    if (span == SPAN_PROCESS) write_status(json, record);
    json_end(json);
}

/* The batch begins a trace of its own: its jobs may be of many. */
static void write_batch_span(
    struct json_writer *json, const struct batch_record *record, uint64_t unix_ns) {
    json_object(json, NULL);
    json_text(json, "traceId", record->self.trace_id);
    json_text(json, "spanId", record->self.span_id);
    json_int(json, "flags", FLAGS_KNOW_REMOTE | 1);
    json_text(json, "name", "batch");
    json_int(json, "kind", KIND_INTERNAL);
    write_time(json, &record->time, unix_ns);
    json_array(json, "attributes");
    put_batch(json, record->batch_id, record->jobs);
    put_number(json, "gpu_worker.batch.launches", (int64_t)record->launches);
    json_end(json);
    json_array(json, "links");
    for (size_t i = 0; i < record->link_count; i++) write_link(json, &record->links[i]);
    json_end(json);
    json_uint(json, "droppedLinksCount", record->links_left_out);
    json_end(json);
}

static void write_record(struct json_writer *json, const struct spans_options *options,
    const struct record *record, uint64_t unix_ns) {
    if (record->is_batch) {
        write_batch_span(json, &record->of.batch, unix_ns);
        return;
    }
    for (int i = 0; i < SPANS_OF_JOB; i++)
        if (record->of.job.times[i].ended_ns != 0)
            write_job_span(json, options, &record->of.job, (enum span_of_job)i, unix_ns);
}

static void write_resource(struct json_writer *json, const struct identity *identity) {
    char instance[160];
    snprintf(instance, sizeof instance, "%.128s/%" PRIu32, identity->host, identity->device_index);
    json_object(json, "resource");
    json_array(json, "attributes");
    put_text(json, "service.name", "gpu-worker");
    put_text(json, "service.version", identity->version);
    put_text(json, "service.instance.id", instance);
    put_text(json, "host.name", identity->host);
    put_text(json, "gpu_worker.device", identity->device);
    json_end(json);
    json_end(json);
}

void spans_write(const struct spans_options *options, const struct record *records,
    uint64_t unix_ns, FILE *out) {
    struct json_writer json = {.out = out};
    json_object(&json, NULL);
    json_array(&json, "resourceSpans");
    json_object(&json, NULL);
    write_resource(&json, options->identity);
    json_array(&json, "scopeSpans");
    json_object(&json, NULL);
    json_object(&json, "scope");
    json_text(&json, "name", "gpu-worker");
    json_bytes(&json, "version", slice_of_text(options->identity->version));
    json_end(&json);
    json_array(&json, "spans");
    for (const struct record *record = records; record != NULL; record = record->next)
        write_record(&json, options, record, unix_ns);
    json_end_all(&json);
}
