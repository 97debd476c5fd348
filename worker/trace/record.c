#include "trace/record.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"

void span_id_write(const struct span_ids *ids, uint64_t number, char ret[static SPAN_ID_TEXT + 1]) {
    uint64_t id = hash_with_key(ids->key, slice_of(&number, sizeof number));
    snprintf(ret, SPAN_ID_TEXT + 1, "%016" PRIx64, id != 0 ? id : 1);
}

static void link_to_batch(const struct span_ids *ids, uint64_t number, struct span_link *ret) {
    char half[SPAN_ID_TEXT + 1];
    span_id_write(ids, number, half);
    memcpy(ret->trace_id, half, SPAN_ID_TEXT);
    span_id_write(ids, number + 1, half);
    memcpy(ret->trace_id + SPAN_ID_TEXT, half, SPAN_ID_TEXT + 1);
    span_id_write(ids, number + 2, ret->span_id);
}

/* Texts from outside; what is too long is cut. */
static void copy_text(struct slice text, char *ret, size_t size) {
    size_t bytes = text.size < size - 1 ? text.size : size - 1;
    if (bytes > 0) memcpy(ret, text.data, bytes);
    ret[bytes] = 0;
    text_mend(ret);
}
#define COPY(text, field) copy_text((text), (field), sizeof(field))

/* On the device from when a lane took it until its outputs were on the host. */
static struct span_time device_time(const struct job *job) {
    const struct job_telemetry *telemetry = &job->outcome.telemetry;
    if (telemetry->batch.id == 0) return (struct span_time){0};
    return (struct span_time){
        job->ready_ns + telemetry->queue_ns, job->delivery->received_ns + telemetry->wall_ns};
}

static void note_times(const struct job *job, uint64_t now_ns, struct job_record *record) {
    const struct job_trace *trace = job->trace;
    struct span_time *times = record->times;
    times[SPAN_RECEIVE] = (struct span_time){job->delivery->received_ns, trace->begun_ns};
    times[SPAN_PROCESS] = (struct span_time){trace->begun_ns, trace->ended_ns};
    times[SPAN_DECODE] = (struct span_time){trace->begun_ns, trace->begun_ns + job->decode_ns};
    if (job->submitted_ns != 0 && job->ready_ns >= job->submitted_ns)
        times[SPAN_PREPARE] = (struct span_time){job->submitted_ns, job->ready_ns};
    times[SPAN_DEVICE] = device_time(job);
    times[SPAN_SEND] = (struct span_time){trace->ended_ns, now_ns};
}

struct record *record_of_job(
    const struct span_ids *ids, const struct job *job, const char *program, uint64_t now_ns) {
    const struct job_trace *trace = job->trace;
    const struct position *position = &job->delivery->position;
    struct record *ret = calloc(1, sizeof *ret);
    if (ret == NULL) return NULL;
    struct job_record *record = &ret->of.job;
    COPY(trace->trace_id, record->trace_id);
    COPY(trace->parent_id, record->parent_id);
    COPY(trace->state, record->state);
    COPY(job->id, record->job);
    COPY(job->reply_to, record->reply_to);
    COPY(slice_of_text(position->topic), record->topic);
    COPY(slice_of_text(program), record->program);
    note_times(job, now_ns, record);
    for (size_t i = 0; i < SPANS_OF_JOB; i++) {
        span_id_write(ids, trace->spans + i, record->ids[i]);
        ret->spans += record->times[i].ended_ns != 0;
    }
    record->flags = trace->flags;
    record->has_batch = trace->batch != 0;
    if (record->has_batch) link_to_batch(ids, trace->batch, &record->batch);
    record->batch_id = job->outcome.telemetry.batch.id;
    record->batch_jobs = job->outcome.telemetry.batch.jobs;
    record->instances = job->instances;
    record->retries = job->retry_count;
    record->partition = position->partition;
    record->offset = position->offset;
    record->is_letter = job->id.size == 0;
    record->code = job->outcome.code;
    if (record->code != ERR_OK) COPY(slice_of_text(job->outcome.err.message), record->message);
    ret->bytes = sizeof *ret;
    return ret;
}

struct record *record_of_batch(const struct span_ids *ids, struct job *const *jobs, size_t count,
    size_t traced_count, uint64_t number) {
    size_t link_count = traced_count < RECORD_LINKS_MAX ? traced_count : RECORD_LINKS_MAX;
    size_t bytes = sizeof(struct record) + link_count * sizeof(struct span_link);
    struct record *ret = calloc(1, bytes);
    if (ret == NULL) return NULL;
    struct batch_record *record = &ret->of.batch;
    ret->is_batch = true;
    ret->bytes = bytes;
    ret->spans = 1;
    link_to_batch(ids, number, &record->self);
    record->time = device_time(jobs[0]);
    record->batch_id = jobs[0]->outcome.telemetry.batch.id;
    record->jobs = count;
    record->launches = jobs[0]->outcome.telemetry.batch.launches;
    record->links_left_out = traced_count - link_count;
    for (size_t i = 0; i < count && record->link_count < link_count; i++) {
        const struct job_trace *trace = jobs[i]->trace;
        if (trace == NULL) continue;
        struct span_link link;
        COPY(trace->trace_id, link.trace_id);
        span_id_write(ids, trace->spans + SPAN_DEVICE, link.span_id);
        record->links[record->link_count++] = link;
    }
    return ret;
}
