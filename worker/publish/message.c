#include "publish/message.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/invariant.h"
#include "base/pack.h"
#include "broker/dead_letter.h"
#include "publish/uploader.h"

enum {
    OWN_HEADERS_MAX = 6,         /* of a result */
    DEAD_LETTER_HEADERS_MAX = 8, /* dlq.*, beside the job's own */
    TEXT_BYTES = 512             /* positions and numbers; names from outside come on top */
};

/* What a letter leaves out, as dlq.truncated says it. */
static const char *const cuts[] = {"", "payload", "key", "payload,key", "headers",
    "payload,headers", "key,headers", "payload,key,headers"};
enum { CUT_PAYLOAD = 1, CUT_KEY = 2, CUT_HEADERS = 4 };

static struct message *message_create(
    struct job *job, size_t headers_max, size_t text_max, size_t payload_max) {
    size_t fixed = sizeof(struct message) + headers_max * sizeof(struct header) + text_max;
    struct message *message = arena_alloc_beyond(&job->arena, fixed + payload_max);
    if (message == NULL) return NULL;
    *message = (struct message){
        .job = job, .text_max = text_max, .payload_max = payload_max, .headers_max = headers_max};
    message->text = (char *)&message->headers[headers_max];
    message->payload = (uint8_t *)message->text + text_max;
    return message;
}

/* Starts what the sink gets anew; the rooms stay. */
static void message_begin(struct message *message, enum answer answer) {
    const struct delivery *delivery = message->job->delivery;
    message->text_used = 0;
    message->answer = answer;
    message->record =
        (struct record){.route = answer_is_letter(answer) ? ROUTE_DEAD_LETTER : ROUTE_RESULT,
            .has_key = delivery->has_key,
            .key = delivery->key,
            .headers = message->headers};
}

static void append_header(struct message *message, const struct header *header) {
    INVARIANT(message->record.header_count < message->headers_max,
        "every caller reserves the headers that it writes");
    message->headers[message->record.header_count++] = *header;
}

static void add_header(struct message *message, const char *name, struct slice value) {
    append_header(message, &(struct header){.name = slice_of_text(name), .value = value});
}

__attribute__((format(printf, 2, 3))) static struct slice add_text(
    struct message *message, const char *format, ...) {
    char *text = message->text + message->text_used;
    size_t room = message->text_max - message->text_used;
    va_list args;
    va_start(args, format);
    int size = vsnprintf(text, room, format, args);
    va_end(args);
    INVARIANT(size >= 0 && (size_t)size < room, "every caller reserves the text that it writes");
    message->text_used += (size_t)size + 1;
    return slice_of(text, (size_t)size);
}

static struct slice add_source(struct message *message, const struct position *position) {
    return add_text(
        message, "%s/%" PRId32 "/%" PRId64, position->topic, position->partition, position->offset);
}

/* Another key than the sender's; none where it has no data. */
static void take_key(struct message *message, struct slice key) {
    message->record.has_key = key.data != NULL;
    message->record.key = key;
}

static void copy_header(
    struct message *message, const struct delivery *delivery, const char *name) {
    struct slice value;
    if (delivery_header(delivery, name, &value)) add_header(message, name, value);
}

/* The headers that results and dead letters share. */
static void add_common_headers(struct message *message, const char *status) {
    const struct job *job = message->job;
    const struct position *position = &job->delivery->position;
    add_header(message, "content-type", slice_of_text("application/msgpack"));
    if (job->id.size > 0) add_header(message, "gpu-worker-job-id", job->id);
    add_header(message, "gpu-worker-status", slice_of_text(status));
    add_header(message, "gpu-worker-source", add_source(message, position));
}

static uint32_t attempts_of(const struct job *job) {
    return job->delivery->failed_attempts + job->retry_count + 1;
}

static void pack_error(msgpack_packer *packer, const struct job *job) {
    const struct outcome *outcome = &job->outcome;
    pack_text(packer, "error");
    msgpack_pack_map(packer, 5);
    pack_text(packer, "code");
    pack_text(packer, err_code(outcome->code));
    pack_text(packer, "message");
    pack_text(packer, outcome->err.message);
    pack_text(packer, "fix");
    pack_text(packer, outcome->err.fix);
    pack_text(packer, "retry");
    pack_text(packer, err_retry_name(outcome->code));
    pack_uint(packer, "attempts", attempts_of(job));
}

static void pack_blob(msgpack_packer *packer, const struct digest *digest) {
    char name[DIGEST_TEXT_SIZE];
    pack_text(packer, "blob");
    pack_text(packer, digest_format(digest, name));
}

static void pack_data(msgpack_packer *packer, struct slice bytes) {
    pack_text(packer, "data");
    msgpack_pack_bin(packer, bytes.size);
    msgpack_pack_bin_body(packer, bytes.data, bytes.size);
}

static void pack_output(msgpack_packer *packer, const struct job *job, size_t index) {
    const struct digest *blob = upload_digest(job, index);
    const struct job_output *output = &job->outputs[index];
    const struct job_buffer *buffer = &job->buffers[output->buffer];
    bool has_type = buffer->datatype != DATATYPE_NONE;
    bool has_shape = output->is_whole && buffer->shape != NULL;
    msgpack_pack_map(packer, 2 + (size_t)has_type + (size_t)has_shape);
    pack_text(packer, "name");
    pack_slice(packer, output->name);
    if (has_type) {
        pack_text(packer, "datatype");
        pack_text(packer, datatype_name(buffer->datatype));
    }
    if (has_shape) {
        pack_text(packer, "shape");
        msgpack_pack_array(packer, buffer->rank);
        for (size_t i = 0; i < buffer->rank; i++) msgpack_pack_uint64(packer, buffer->shape[i]);
    }
    if (blob != NULL) pack_blob(packer, blob);
    else pack_data(packer, job->outcome.outputs[index]);
}

static void pack_residents(msgpack_packer *packer, const struct job *job) {
    size_t count = 0;
    for (size_t i = 0; i < job->buffer_count; i++) count += job->buffers[i].resident.size > 0;
    pack_text(packer, "residents");
    msgpack_pack_map(packer, count);
    for (size_t i = 0; i < job->buffer_count; i++) {
        if (job->buffers[i].resident.size == 0) continue;
        pack_slice(packer, job->buffers[i].resident);
        msgpack_pack_uint64(packer, job->outcome.generations[i]);
    }
}

static void pack_telemetry(msgpack_packer *packer, const struct job_telemetry *telemetry) {
    const struct {
        const char *key;
        uint64_t value;
    } fields[] = {
        {"h2d_bytes", telemetry->h2d_bytes},
        {"d2h_bytes", telemetry->d2h_bytes},
        {"param_bytes", telemetry->param_bytes},
        {"kernel_launches", telemetry->kernel_launches},
        {"static_hits", telemetry->static_hits},
        {"static_misses", telemetry->static_misses},
        {"static_bytes_saved", telemetry->static_bytes_saved},
        {"queue_ns", telemetry->queue_ns},
        {"decode_ns", telemetry->decode_ns},
        {"prepare_ns", telemetry->prepare_ns},
        {"stage_ns", telemetry->stage_ns},
        {"enqueue_ns", telemetry->enqueue_ns},
        {"wait_ns", telemetry->wait_ns},
        {"wall_ns", telemetry->wall_ns},
    };
    const struct batch_telemetry *batch = &telemetry->batch;
    const size_t count = sizeof fields / sizeof fields[0];
    pack_text(packer, "telemetry");
    msgpack_pack_map(packer, count + (telemetry->is_timed ? 2 : 1));
    for (size_t i = 0; i < count; i++) pack_uint(packer, fields[i].key, fields[i].value);
    if (telemetry->is_timed) pack_uint(packer, "device_ns", telemetry->device_ns);
    pack_text(packer, "batch");
    msgpack_pack_map(packer, 8);
    pack_uint(packer, "id", batch->id);
    pack_uint(packer, "jobs", batch->jobs);
    pack_uint(packer, "copies", batch->uploads + batch->readbacks);
    pack_uint(packer, "h2d_bytes", batch->h2d_bytes);
    pack_uint(packer, "d2h_bytes", batch->d2h_bytes);
    pack_uint(packer, "launches", batch->launches);
    pack_uint(packer, "coalesced_launches", batch->coalesced_launches);
    pack_uint(packer, "sync_points", batch->sync_points);
}

static void pack_source_and_worker(
    msgpack_packer *packer, const struct position *position, const struct identity *identity) {
    pack_text(packer, "source");
    msgpack_pack_map(packer, 3);
    pack_text(packer, "topic");
    pack_text(packer, position->topic);
    pack_text(packer, "partition");
    msgpack_pack_int32(packer, position->partition);
    pack_text(packer, "offset");
    msgpack_pack_int64(packer, position->offset);
    pack_text(packer, "worker");
    msgpack_pack_map(packer, 3);
    pack_text(packer, "host");
    pack_text(packer, identity->host);
    pack_text(packer, "device");
    pack_text(packer, identity->device);
    pack_text(packer, "version");
    pack_text(packer, identity->version);
}

static void pack_result(
    msgpack_packer *packer, const struct job *job, const struct identity *identity) {
    const struct outcome *outcome = &job->outcome;
    bool is_ok = outcome->code == ERR_OK;
    bool has_residents = is_ok && outcome->generations != NULL;
    msgpack_pack_map(packer, 7 + (size_t)!is_ok + (size_t)has_residents);
    pack_uint(packer, "v", 1);
    pack_text(packer, "id");
    pack_slice(packer, job->id);
    pack_text(packer, "status");
    pack_text(packer, is_ok ? "ok" : "error");
    if (!is_ok) pack_error(packer, job);
    pack_text(packer, "outputs");
    msgpack_pack_array(packer, is_ok ? job->output_count : 0);
    for (size_t i = 0; is_ok && i < job->output_count; i++) pack_output(packer, job, i);
    if (has_residents) pack_residents(packer, job);
    pack_telemetry(packer, &outcome->telemetry);
    pack_source_and_worker(packer, &job->delivery->position, identity);
}

/* The payload's room while it fills. */
struct writer {
    uint8_t *next;
    size_t left;
    bool is_over;
};

static int write_payload(void *context, const char *bytes, size_t size) {
    struct writer *writer = context;
    if (size > writer->left) writer->is_over = true;
    if (writer->is_over) return -1;
    if (size > 0) memcpy(writer->next, bytes, size);
    writer->next += size;
    writer->left -= size;
    return 0;
}

static enum err encode_payload(
    struct message *message, const struct identity *identity, struct error *err) {
    struct writer writer = {.next = message->payload, .left = message->payload_max};
    msgpack_packer packer;
    msgpack_packer_init(&packer, &writer, write_payload);
    pack_result(&packer, message->job, identity);
    if (writer.is_over)
        return error_set(err, ERR_INTERNAL, 0, "report this with the job",
            "a result is larger than the %zu bytes that were planned", message->payload_max);
    message->record.payload = slice_of(message->payload, message->payload_max - writer.left);
    return ERR_OK;
}

struct message *message_reserve_result(struct job *job, size_t payload_max) {
    const char *topic = job->delivery->position.topic;
    size_t text_max = TEXT_BYTES + strlen(topic) + job->reply_to.size;
    return message_create(job, OWN_HEADERS_MAX, text_max, payload_max);
}

enum err message_write_result(struct message *message, enum answer answer,
    const struct identity *identity, struct error *err) {
    const struct job *job = message->job;
    message_begin(message, answer);
    if (answer == ANSWER_RESULT && job->reply_to.size > 0)
        message->record.topic = (const char *)add_text(
            message, "%.*s", (int)job->reply_to.size, (const char *)job->reply_to.data)
                                    .data;
    add_common_headers(message, job->outcome.code != ERR_OK ? "error" : "ok");
    if (answer == ANSWER_BARE_ERROR) {
        take_key(message, (struct slice){0});
    } else {
        copy_header(message, job->delivery, "traceparent");
        copy_header(message, job->delivery, "tracestate");
    }
    return encode_payload(message, identity, err);
}

/* Those of the sender's headers that take no more than `bytes_max` together, from the first on.
 * False where that is not all of them. */
static bool copy_headers(
    struct message *message, const struct delivery *delivery, size_t bytes_max) {
    size_t left = bytes_max;
    for (size_t i = 0; i < delivery->header_count; i++) {
        const struct header *header = &delivery->headers[i];
        if (header->name.size > left || header->value.size > left - header->name.size) return false;
        left -= header->name.size + header->value.size;
        append_header(message, header);
    }
    return !delivery->is_cut;
}

/* The sender's own part, as far as each piece of it has its place. Returns what is left out. */
static unsigned add_senders(struct message *message, const struct delivery *delivery, size_t max) {
    unsigned cut = 0;
    message->record.payload = delivery->payload;
    if (delivery->payload.size > max) {
        message->record.payload = slice_of(NULL, 0);
        cut |= CUT_PAYLOAD;
    }
    if (delivery->key.size > max) {
        take_key(message, (struct slice){0});
        cut |= CUT_KEY;
    }
    if (!copy_headers(message, delivery, max)) cut |= CUT_HEADERS;
    return cut;
}

struct message *message_of_dead_letter(
    struct job *job, enum answer answer, const struct identity *identity) {
    const struct error *err = &job->outcome.err;
    const struct delivery *delivery = job->delivery;
    const struct position *position = &delivery->position;
    size_t headers_max = delivery->header_count + OWN_HEADERS_MAX + DEAD_LETTER_HEADERS_MAX;
    size_t text_max = TEXT_BYTES + sizeof err->message + sizeof err->fix +
                      3 * strlen(position->topic) + strlen(identity->host);
    struct message *message = message_create(job, headers_max, text_max, 0);
    if (message == NULL) return NULL;
    message_begin(message, answer);
    unsigned cut = add_senders(message, delivery, answer_part_bytes_max(answer));
    add_common_headers(message, "dead");
    /* A compacted topic takes nothing without a key. */
    if (answer == ANSWER_COORDINATES) take_key(message, add_source(message, position));
    add_header(message, DEAD_LETTER_CODE, slice_of_text(err_code(job->outcome.code)));
    add_header(message, DEAD_LETTER_MESSAGE,
        add_text(message, "%s%s%s", err->message, err->fix[0] != 0 ? "; " : "", err->fix));
    add_header(message, DEAD_LETTER_ATTEMPTS, add_text(message, "%" PRIu32, attempts_of(job)));
    add_header(message, DEAD_LETTER_TOPIC, add_text(message, "%s", position->topic));
    add_header(message, DEAD_LETTER_PARTITION, add_text(message, "%" PRId32, position->partition));
    add_header(message, DEAD_LETTER_OFFSET, add_text(message, "%" PRId64, position->offset));
    add_header(message, DEAD_LETTER_WORKER,
        add_text(message, "%s/%" PRIu32, identity->host, identity->device_index));
    if (cut != 0) add_header(message, DEAD_LETTER_TRUNCATED, slice_of_text(cuts[cut]));
    return message;
}
