#include "trace/spans.h"

#include <inttypes.h>

#include "decode/print_json.h"

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

/* ---- attributes: a comma stands before all but the first ---- */

struct attributes {
    FILE *out;
    bool has_some;
};

static void begin_attribute(struct attributes *attributes, const char *key) {
    fprintf(attributes->out, "%s{\"key\":\"%s\",\"value\":{", attributes->has_some ? "," : "", key);
    attributes->has_some = true;
}

/* What is empty is not known. */
static void put_text(struct attributes *attributes, const char *key, const char *text) {
    if (text[0] == 0) return;
    begin_attribute(attributes, key);
    fputs("\"stringValue\":", attributes->out);
    print_text_json(slice_of_text(text), attributes->out);
    fputs("}}", attributes->out);
}

static void put_number(struct attributes *attributes, const char *key, int64_t number) {
    begin_attribute(attributes, key);
    fprintf(attributes->out, "\"intValue\":\"%" PRId64 "\"}}", number);
}

/* ---- spans ---- */

static void write_time(const struct span_time *time, uint64_t unix_ns, FILE *out) {
    uint64_t begun_ns = time->begun_ns + unix_ns, ended_ns = time->ended_ns + unix_ns;
    fprintf(out, "\"startTimeUnixNano\":\"%" PRIu64 "\",\"endTimeUnixNano\":\"%" PRIu64 "\"",
        begun_ns, ended_ns > begun_ns ? ended_ns : begun_ns);
}

static void write_link(const struct span_link *link, FILE *out) {
    fprintf(out, "{\"traceId\":\"%s\",\"spanId\":\"%s\"}", link->trace_id, link->span_id);
}

static void put_operation(struct attributes *attributes, const struct spans_options *options,
    const struct job_record *record, enum span_of_job span) {
    const char *answers = record->is_letter ? options->letters_topic : options->results_topic;
    if (infos[span].operation == NULL) return;
    put_text(attributes, "messaging.system", "kafka");
    put_text(attributes, "messaging.operation.name", infos[span].name);
    put_text(attributes, "messaging.operation.type", infos[span].operation);
    if (span == SPAN_SEND) {
        put_text(attributes, "messaging.destination.name",
            record->reply_to[0] != 0 ? record->reply_to : answers);
        return;
    }
    char partition[12];
    snprintf(partition, sizeof partition, "%" PRId32, record->partition);
    put_text(attributes, "messaging.destination.name", record->topic);
    put_text(attributes, "messaging.destination.partition.id", partition);
    put_text(attributes, "messaging.consumer.group.name", options->group);
    put_number(attributes, "messaging.kafka.offset", record->offset);
}

static void put_job(struct attributes *attributes, const struct job_record *record) {
    put_text(attributes, "gpu_worker.job.id", record->job);
    put_text(attributes, "gpu_worker.program", record->program);
    put_number(attributes, "gpu_worker.retries", record->retries);
    if (record->instances > 0)
        put_number(attributes, "gpu_worker.instances", (int64_t)record->instances);
    if (record->code != ERR_OK) put_text(attributes, "error.type", err_code(record->code));
}

static void put_batch(struct attributes *attributes, uint64_t id, uint64_t jobs) {
    put_number(attributes, "gpu_worker.batch.id", (int64_t)id);
    put_number(attributes, "gpu_worker.batch.jobs", (int64_t)jobs);
}

static void write_status(const struct job_record *record, FILE *out) {
    if (record->code == ERR_OK) return;
    fprintf(out, ",\"status\":{\"code\":%d,\"message\":", STATUS_ERROR);
    print_text_json(slice_of_text(record->message), out);
    fputc('}', out);
}

static void write_job_span(const struct spans_options *options, const struct job_record *record,
    enum span_of_job span, uint64_t unix_ns, FILE *out) {
    const struct span_info *info = &infos[span];
    struct attributes attributes = {.out = out};
    int flags = record->flags | FLAGS_KNOW_REMOTE | (info->is_within ? 0 : FLAGS_REMOTE);
    fprintf(out,
        "{\"traceId\":\"%s\",\"spanId\":\"%s\",\"parentSpanId\":\"%s\",\"flags\":%d,"
        "\"name\":\"%s\",\"kind\":%d,",
        record->trace_id, record->ids[span],
        info->is_within ? record->ids[SPAN_PROCESS] : record->parent_id, flags, info->name,
        info->kind);
    write_time(&record->times[span], unix_ns, out);
    if (record->state[0] != 0) {
        fputs(",\"traceState\":", out);
        print_text_json(slice_of_text(record->state), out);
    }
    fputs(",\"attributes\":[", out);
    put_operation(&attributes, options, record, span);
    if (span == SPAN_PROCESS) put_job(&attributes, record);
    if (span == SPAN_DEVICE) put_batch(&attributes, record->batch_id, record->batch_jobs);
    fputc(']', out);
    if (span == SPAN_DEVICE && record->has_batch) {
        fputs(",\"links\":[", out);
        write_link(&record->batch, out);
        fputc(']', out);
    }
    if (span == SPAN_PROCESS) write_status(record, out);
    fputc('}', out);
}

/* The batch begins a trace of its own: its jobs may be of many. */
static void write_batch_span(const struct batch_record *record, uint64_t unix_ns, FILE *out) {
    struct attributes attributes = {.out = out};
    fprintf(out,
        "{\"traceId\":\"%s\",\"spanId\":\"%s\",\"flags\":%d,\"name\":\"batch\",\"kind\":%d,",
        record->self.trace_id, record->self.span_id, FLAGS_KNOW_REMOTE | 1, KIND_INTERNAL);
    write_time(&record->time, unix_ns, out);
    fputs(",\"attributes\":[", out);
    put_batch(&attributes, record->batch_id, record->jobs);
    put_number(&attributes, "gpu_worker.batch.launches", (int64_t)record->launches);
    fputs("],\"links\":[", out);
    for (size_t i = 0; i < record->link_count; i++) {
        if (i > 0) fputc(',', out);
        write_link(&record->links[i], out);
    }
    fprintf(out, "],\"droppedLinksCount\":%zu}", record->links_left_out);
}

static void write_record(const struct spans_options *options, const struct record *record,
    uint64_t unix_ns, bool *is_first, FILE *out) {
    size_t count = record->is_batch ? 1 : SPANS_OF_JOB;
    for (size_t i = 0; i < count; i++) {
        if (!record->is_batch && record->of.job.times[i].ended_ns == 0) continue;
        if (!*is_first) fputc(',', out);
        *is_first = false;
        if (record->is_batch) write_batch_span(&record->of.batch, unix_ns, out);
        else write_job_span(options, &record->of.job, (enum span_of_job)i, unix_ns, out);
    }
}

static void write_resource(const struct identity *identity, FILE *out) {
    struct attributes attributes = {.out = out};
    char instance[160];
    snprintf(instance, sizeof instance, "%.128s/%" PRIu32, identity->host, identity->device_index);
    put_text(&attributes, "service.name", "gpu-worker");
    put_text(&attributes, "service.version", identity->version);
    put_text(&attributes, "service.instance.id", instance);
    put_text(&attributes, "host.name", identity->host);
    put_text(&attributes, "gpu_worker.device", identity->device);
}

void spans_write(const struct spans_options *options, const struct record *records,
    uint64_t unix_ns, FILE *out) {
    bool is_first = true;
    fputs("{\"resourceSpans\":[{\"resource\":{\"attributes\":[", out);
    write_resource(options->identity, out);
    fputs("]},\"scopeSpans\":[{\"scope\":{\"name\":\"gpu-worker\",\"version\":", out);
    print_text_json(slice_of_text(options->identity->version), out);
    fputs("},\"spans\":[", out);
    for (const struct record *record = records; record != NULL; record = record->next)
        write_record(options, record, unix_ns, &is_first, out);
    fputs("]}]}]}", out);
}
