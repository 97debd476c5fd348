#include "publish/message.h"

#include <endian.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/invariant.h"
#include "base/number.h"
#include "base/writer.h"
#include "broker/dead_letter.h"
#include "job/trace.h"
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

/* Each result has it: formatting it with printf() took as long as a tenth of the result. */
static struct slice add_source(struct message *message, const struct position *position) {
    size_t topic_size = strlen(position->topic);
    char *text = message->text + message->text_used, *next = text;
    INVARIANT(message->text_max - message->text_used >= topic_size + 2 + 2 * NUMBER_TEXT_MAX,
        "every caller reserves the text that it writes");
    memcpy(next, position->topic, topic_size);
    next += topic_size;
    *next++ = '/';
    next += number_write(next, position->partition);
    *next++ = '/';
    next += number_write(next, position->offset);
    message->text_used += (size_t)(next - text);
    return slice_of(text, (size_t)(next - text));
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

static void write_error(struct writer *writer, const struct job *job) {
    const struct outcome *outcome = &job->outcome;
    write_key(writer, "error");
    write_map(writer, 5);
    write_key(writer, "code");
    write_text(writer, err_code(outcome->code));
    write_key(writer, "message");
    write_text(writer, outcome->err.message);
    write_key(writer, "fix");
    write_text(writer, outcome->err.fix);
    write_key(writer, "retry");
    write_text(writer, err_retry_name(outcome->code));
    write_number(writer, "attempts", attempts_of(job));
}

static void write_blob(struct writer *writer, const struct digest *digest) {
    char name[DIGEST_TEXT_SIZE];
    write_key(writer, "blob");
    write_text(writer, digest_format(digest, name));
}

/* What an output says besides its data. */
static void write_output_head(
    struct writer *writer, const struct job *job, const struct job_output *output) {
    const struct job_buffer *buffer = &job->buffers[output->buffer];
    bool has_type = buffer->datatype != DATATYPE_NONE;
    bool has_shape = output->is_whole && buffer->shape != NULL;
    write_map(writer, 2 + (size_t)has_type + (size_t)has_shape);
    write_key(writer, "name");
    write_slice(writer, output->name);
    if (has_type) {
        write_key(writer, "datatype");
        write_text(writer, datatype_name(buffer->datatype));
    }
    if (has_shape) {
        write_key(writer, "shape");
        write_array(writer, buffer->rank + (size_t)(job->instances > 0));
        if (job->instances > 0) write_uint64(writer, job->instances);
        for (size_t i = 0; i < buffer->rank; i++) write_uint64(writer, buffer->shape[i]);
    }
}

static void write_data_head(struct writer *writer, size_t size) {
    write_key(writer, "data");
    write_bin(writer, size);
}

static void write_outputs(struct writer *writer, const struct job *job) {
    for (size_t i = 0; i < job->output_count; i++) {
        const struct digest *blob = upload_digest(job, i);
        write_output_head(writer, job, &job->outputs[i]);
        if (blob != NULL) {
            write_blob(writer, blob);
            continue;
        }
        write_data_head(writer, job->outcome.outputs[i].size);
        writer_move(writer, job->outcome.outputs[i]);
    }
}

static void write_residents(struct writer *writer, const struct job *job) {
    size_t count = 0;
    for (size_t i = 0; i < job->buffer_count; i++) count += job->buffers[i].resident.size > 0;
    write_key(writer, "residents");
    write_map(writer, count);
    for (size_t i = 0; i < job->buffer_count; i++) {
        if (job->buffers[i].resident.size == 0) continue;
        write_slice(writer, job->buffers[i].resident);
        write_uint64(writer, job->outcome.generations[i]);
    }
}

static void write_telemetry(struct writer *writer, const struct job_telemetry *telemetry) {
    const struct batch_telemetry *batch = &telemetry->batch;
    write_key(writer, "telemetry");
    bool is_array = telemetry->instances > 0;
    write_map(writer, 15 + (size_t)telemetry->is_timed + 2 * (size_t)is_array);
    write_number(writer, "h2d_bytes", telemetry->h2d_bytes);
    write_number(writer, "d2h_bytes", telemetry->d2h_bytes);
    write_number(writer, "param_bytes", telemetry->param_bytes);
    write_number(writer, "kernel_launches", telemetry->kernel_launches);
    write_number(writer, "static_hits", telemetry->static_hits);
    write_number(writer, "static_misses", telemetry->static_misses);
    write_number(writer, "static_bytes_saved", telemetry->static_bytes_saved);
    write_number(writer, "queue_ns", telemetry->queue_ns);
    write_number(writer, "decode_ns", telemetry->decode_ns);
    write_number(writer, "prepare_ns", telemetry->prepare_ns);
    write_number(writer, "stage_ns", telemetry->stage_ns);
    write_number(writer, "enqueue_ns", telemetry->enqueue_ns);
    write_number(writer, "wait_ns", telemetry->wait_ns);
    write_number(writer, "wall_ns", telemetry->wall_ns);
    if (telemetry->is_timed) write_number(writer, "device_ns", telemetry->device_ns);
    if (is_array) {
        write_number(writer, "instances", telemetry->instances);
        write_number(writer, "slices", telemetry->slices);
    }
    write_key(writer, "batch");
    write_map(writer, 8);
    write_number(writer, "id", batch->id);
    write_number(writer, "jobs", batch->jobs);
    write_number(writer, "copies", batch->uploads + batch->readbacks);
    write_number(writer, "h2d_bytes", batch->h2d_bytes);
    write_number(writer, "d2h_bytes", batch->d2h_bytes);
    write_number(writer, "launches", batch->launches);
    write_number(writer, "coalesced_launches", batch->coalesced_launches);
    write_number(writer, "sync_points", batch->sync_points);
}

static void write_source(struct writer *writer, const struct position *position) {
    write_key(writer, "source");
    write_map(writer, 3);
    write_key(writer, "topic");
    write_text(writer, position->topic);
    write_key(writer, "partition");
    write_int32(writer, position->partition);
    write_key(writer, "offset");
    write_int64(writer, position->offset);
}

static void write_worker(struct writer *writer, const struct identity *identity) {
    write_key(writer, "worker");
    write_map(writer, 3);
    write_key(writer, "host");
    write_text(writer, identity->host);
    write_key(writer, "device");
    write_text(writer, identity->device);
    write_key(writer, "version");
    write_text(writer, identity->version);
}

static const char *status_of(const struct job *job) {
    if (job->outcome.code == ERR_OK) return "ok";
    return outcome_has_outputs(&job->outcome) ? "partial" : "error";
}

static void write_failed(struct writer *writer, const struct outcome *outcome) {
    write_key(writer, "failed");
    write_array(writer, outcome->failed_count);
    for (size_t i = 0; i < outcome->failed_count; i++) {
        const struct failed_instance *failed = &outcome->failed[i];
        write_map(writer, 3);
        write_number(writer, "instance", failed->instance);
        write_key(writer, "code");
        write_text(writer, err_code(failed->code));
        write_key(writer, "message");
        write_text(writer, failed->message);
    }
}

static bool has_residents(const struct outcome *outcome) {
    return outcome->code == ERR_OK && outcome->generations != NULL;
}

static bool has_rounds(const struct job *job) {
    return job->long_job != NULL && job->outcome.code == ERR_OK;
}

/* What comes before the outputs. */
static void write_head(struct writer *writer, const struct job *job) {
    const struct outcome *outcome = &job->outcome;
    bool is_ok = outcome->code == ERR_OK, has_outputs = outcome_has_outputs(outcome);
    bool is_partial = has_outputs && !is_ok;
    write_map(writer, 7 + (size_t)!is_ok + (size_t)is_partial + (size_t)has_residents(outcome) +
                          2 * (size_t)has_rounds(job));
    write_number(writer, "v", 1);
    write_key(writer, "id");
    write_slice(writer, job->id);
    write_key(writer, "status");
    write_text(writer, status_of(job));
    if (!is_ok) write_error(writer, job);
    if (is_partial) write_failed(writer, outcome);
    write_key(writer, "outputs");
    write_array(writer, has_outputs ? job->output_count : 0);
}

static const char *const end_names[] = {[LONG_END_UNTIL] = "until",
    [LONG_END_REPEAT] = "repeat",
    [LONG_END_TIME] = "time",
    [LONG_END_STOP] = "stop"};

/* After which round each instance was done, and why. */
static void write_rounds(struct writer *writer, const struct job *job) {
    const struct long_job *long_job = job->long_job;
    uint32_t count = job->instances;
    if (count == 0) {
        write_number(writer, "rounds", long_job->rounds_of[0]);
        write_key(writer, "ended");
        write_text(writer, end_names[long_job->ends[0]]);
        return;
    }
    write_key(writer, "rounds");
    write_bin(writer, count * sizeof(uint32_t));
    for (uint32_t i = 0; i < count; i++) {
        uint32_t rounds = htole32(long_job->rounds_of[i]);
        writer_move(writer, slice_of(&rounds, sizeof rounds));
    }
    write_key(writer, "ended");
    write_bin(writer, count);
    writer_move(writer, slice_of(long_job->ends, count));
}

/* What comes behind them. */
static void write_tail(
    struct writer *writer, const struct job *job, const struct identity *identity) {
    if (has_residents(&job->outcome)) write_residents(writer, job);
    if (has_rounds(job)) write_rounds(writer, job);
    write_telemetry(writer, &job->outcome.telemetry);
    write_source(writer, &job->delivery->position);
    write_worker(writer, identity);
}

/* The head is written into the message, and then copied to where outputs that have places begin.
 * Returns what writes the rest. */
static struct writer join_head(struct message *message, struct writer head) {
    const struct result_room *room = &message->job->room;
    message->record.payload = slice_of(message->payload, 0);
    if (room->data == NULL || !outcome_has_outputs(&message->job->outcome)) return head;
    size_t size = (size_t)(head.next - message->payload);
    struct writer rest = {.next = room->data + message->outputs_at,
        .left = room->bytes - message->outputs_at,
        .is_over = head.is_over || size > message->outputs_at};
    if (rest.is_over) return rest;
    memcpy(rest.next - size, message->payload, size);
    message->record.payload.data = rest.next - size;
    return rest;
}

static enum err encode_payload(
    struct message *message, const struct identity *identity, struct error *err) {
    const struct job *job = message->job;
    struct writer writer = {.next = message->payload, .left = message->payload_max};
    write_head(&writer, job);
    writer = join_head(message, writer);
    if (outcome_has_outputs(&job->outcome)) write_outputs(&writer, job);
    write_tail(&writer, job, identity);
    if (writer.is_over)
        return error_set(err, ERR_INTERNAL, 0, "report this with the job",
            "a result is larger than the %zu bytes that were planned", message->payload_max);
    message->record.payload.size = (size_t)(writer.next - message->record.payload.data);
    return ERR_OK;
}

struct message *message_reserve_result(struct job *job, size_t payload_max) {
    const char *topic = job->delivery->position.topic;
    size_t text_max = TEXT_BYTES + strlen(topic) + job->reply_to.size;
    return message_create(job, OWN_HEADERS_MAX, text_max, payload_max);
}

/* The outputs as they will stand in the result, but for their data: places are where that begins,
 * counted from the first output's head. */
static void place_in_result(struct message *message, const struct plan *plan) {
    static const struct digest some;
    struct job *job = message->job;
    struct writer writer = {.next = message->payload, .left = message->payload_max};
    uint64_t data_bytes = 0;
    for (size_t i = 0; i < job->output_count; i++) {
        write_output_head(&writer, job, &job->outputs[i]);
        if (plan->outputs[i].is_stored) {
            write_blob(&writer, &some);
            continue;
        }
        write_data_head(&writer, job_output_bytes(job, i));
        job->room.places[i] = (uint64_t)(writer.next - message->payload) + data_bytes;
        data_bytes += job_output_bytes(job, i);
    }
    INVARIANT(!writer.is_over, "a result is planned with room for all that its outputs say");
}

/* The head takes up to `head_max`. Of the outputs in the result the first is aligned as on the
 * device; those for the blob store stand behind the result, each aligned. */
static void place_outputs(
    struct message *message, const struct plan *plan, size_t head_max, size_t payload_max) {
    struct job *job = message->job;
    struct result_room *room = &job->room;
    place_in_result(message, plan);
    size_t first = 0;
    while (first < job->output_count && plan->outputs[first].is_stored) first++;
    uint64_t before = first < job->output_count ? room->places[first] : 0;
    message->outputs_at = plan_aligned(head_max + before) - before;
    room->bytes = plan_aligned(message->outputs_at + payload_max);
    for (size_t i = 0; i < job->output_count; i++) {
        if (!plan->outputs[i].is_stored) room->places[i] += message->outputs_at;
        if (!plan->outputs[i].is_stored || plan->outputs[i].is_spooled) continue;
        room->places[i] = room->bytes;
        room->bytes += plan_aligned(job_output_bytes(job, i));
    }
}

struct message *message_reserve_around(
    struct job *job, const struct plan *plan, size_t payload_max) {
    size_t besides = payload_max; /* the outputs' data; more than the head needs */
    for (size_t i = 0; i < job->output_count; i++)
        if (!plan->outputs[i].is_stored) besides -= job_output_bytes(job, i);
    struct message *message = message_reserve_result(job, besides);
    job->room.places = arena_alloc(&job->arena, job->output_count, sizeof job->room.places[0]);
    if (message == NULL || job->room.places == NULL) return NULL;
    place_outputs(message, plan, besides, payload_max);
    if (job->instances > 0) job->room.data = arena_alloc_beyond(&job->arena, job->room.bytes);
    return job->instances == 0 || job->room.data != NULL ? message : NULL;
}

enum err message_write_result(struct message *message, enum answer answer,
    const struct identity *identity, struct error *err) {
    const struct job *job = message->job;
    message_begin(message, answer);
    if (answer == ANSWER_RESULT && job->reply_to.size > 0)
        message->record.topic = (const char *)add_text(
            message, "%.*s", (int)job->reply_to.size, (const char *)job->reply_to.data)
                                    .data;
    add_common_headers(message, status_of(job));
    if (answer == ANSWER_BARE_ERROR) {
        take_key(message, (struct slice){0});
    } else {
        if (job->trace == NULL) copy_header(message, job->delivery, "traceparent");
        else add_header(message, "traceparent", slice_of_text(job->trace->traceparent));
        copy_header(message, job->delivery, "tracestate");
    }
    return encode_payload(message, identity, err);
}

/* Copies the sender's headers from the first on, as many as take `bytes_max` together. False if
 * that is not all of them. */
static bool copy_headers(
    struct message *message, const struct delivery *delivery, size_t bytes_max) {
    size_t left = bytes_max;
    for (size_t i = 0; i < delivery->header_count; i++) {
        const struct header *header = &delivery->headers[i];
        if (dead_letter_owns(header->name)) continue; /* it would speak for the worker */
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

/* --- progress --- */

size_t message_progress_size(const struct job *job) {
    const struct long_job *long_job = job->long_job;
    size_t size = PLAN_RESULT_OVERHEAD_BYTES + job->id.size + strlen(job->delivery->position.topic);
    for (size_t i = 0; i < long_job->shown_count; i++) {
        const struct job_output *output = &long_job->shown[i];
        size += 64 + output->name.size + 9 * (job->buffers[output->buffer].rank + 1) +
                output->bytes * job_instances(job);
    }
    return size;
}

/* The parts of all instances, side by side. */
static void write_shown(struct writer *writer, const struct job *job, size_t index) {
    const struct job_output *output = &job->long_job->shown[index];
    const struct shown_output *found = &job->long_job->found[index];
    uint32_t count = job_instances(job);
    write_output_head(writer, job, output);
    write_data_head(writer, output->bytes * count);
    for (uint32_t i = 0; i < count; i++)
        writer_append(writer, found->data + found->stride * i, output->bytes);
}

size_t message_write_progress(const struct job *job, uint8_t *ret, size_t size_max) {
    const struct long_job *long_job = job->long_job;
    struct writer writer = {.next = ret, .left = size_max};
    write_map(&writer, 7);
    write_number(&writer, "v", 1);
    write_key(&writer, "id");
    write_slice(&writer, job->id);
    write_number(&writer, "attempt", attempts_of(job));
    write_number(&writer, "rounds", long_job->rounds);
    write_number(&writer, "live", long_job->live_count);
    write_key(&writer, "outputs");
    write_array(&writer, long_job->shown_count);
    for (size_t i = 0; i < long_job->shown_count; i++) write_shown(&writer, job, i);
    write_source(&writer, &job->delivery->position);
    INVARIANT(!writer.is_over, "message_progress_size() says what it takes at most");
    return (size_t)(writer.next - ret);
}
