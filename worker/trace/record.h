/**
 * What is kept of a traced job, or of a batch with traced jobs, until its spans are exported. It is
 * one block of memory of bounded size. Private to trace/.
 *
 * Units: times are clock_ns(). Lifetime: record_of_job() or record_of_batch() to free(). Threads:
 * plain values.
 */
#ifndef TRACE_RECORD_H
#define TRACE_RECORD_H

#include "base/hash.h"
#include "job/job.h"
#include "job/trace.h"

/** The spans of a job, in the order of their numbers. */
enum span_of_job {
    SPAN_RECEIVE, /* from when the message came until it was decoded */
    SPAN_PROCESS, /* until its outcome was final */
    SPAN_DECODE,  /* these three belong to `process` */
    SPAN_PREPARE,
    SPAN_DEVICE,
    SPAN_SEND, /* until its answer was acknowledged; the answer's traceparent names it */
    SPANS_OF_JOB
};

enum {
    SPANS_OF_BATCH = 3, /* its trace takes two numbers, its span one */
    RECORD_LINKS_MAX = 128,
    RECORD_TOPIC_BYTES = 256,
    RECORD_ID_BYTES = 257,
    RECORD_STATE_BYTES = 513,
    RECORD_PROGRAM_BYTES = 65
};

struct span_time {
    uint64_t begun_ns, ended_ns; /* ended_ns 0: there is no such span */
};

/** Where a link leads. */
struct span_link {
    char trace_id[TRACE_ID_TEXT + 1], span_id[SPAN_ID_TEXT + 1];
};

struct job_record {
    char trace_id[TRACE_ID_TEXT + 1], parent_id[SPAN_ID_TEXT + 1];
    uint8_t flags;
    struct span_time times[SPANS_OF_JOB];
    char ids[SPANS_OF_JOB][SPAN_ID_TEXT + 1];
    bool has_batch;
    struct span_link batch;
    uint64_t batch_id, batch_jobs;
    enum err code;
    bool is_letter; /* it has no result */
    int32_t partition;
    int64_t offset;
    uint64_t instances;
    uint32_t retries;
    char job[RECORD_ID_BYTES], program[RECORD_PROGRAM_BYTES];
    char topic[RECORD_TOPIC_BYTES], reply_to[RECORD_TOPIC_BYTES], state[RECORD_STATE_BYTES];
    char message[sizeof(((struct error *)NULL)->message)];
};

struct batch_record {
    struct span_link self;
    struct span_time time;
    uint64_t batch_id, jobs, launches;
    size_t links_left_out, link_count;
    struct span_link links[]; /* its traced jobs */
};

struct record {
    struct record *next;
    size_t bytes, spans;
    bool is_batch;
    union {
        struct job_record job;
        struct batch_record batch;
    } of;
};

/** The key that makes ids of numbers; each process has its own. */
struct span_ids {
    uint64_t key[2];
};

void span_id_write(const struct span_ids *ids, uint64_t number, char ret[static SPAN_ID_TEXT + 1]);

/** The job's answer was acknowledged at `now_ns`. `program` is its name, or "". NULL: no memory. */
struct record *record_of_job(
    const struct span_ids *ids, const struct job *job, const char *program, uint64_t now_ns);

/** The jobs of a batch, `traced_count` of which are traced; their trace->batch is its first number.
 * NULL: no memory. */
struct record *record_of_batch(const struct span_ids *ids, struct job *const *jobs, size_t count,
    size_t traced_count, uint64_t number);

#endif
