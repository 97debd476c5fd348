/**
 * Traces jobs whose senders trace them, and exports the spans by OTLP/HTTP in JSON.
 *
 * A job is traced if the message's traceparent says that it is sampled. What it went through is
 * noted when its answer is acknowledged, so a job that another worker gets has no spans of this
 * one. The job's result then names the span `send` of this worker as its parent. A batch has a span
 * and a trace of its own, which is linked to its traced jobs, and they to it.
 *
 * The collector is asked by a thread of the tracer's own. Jobs never wait for it: what is noted
 * waits in a queue of bounded memory, and is dropped and counted when that is full, or when the
 * collector refuses it. A collector that is away is asked again a few times.
 *
 * Lifetime: tracer_start() to tracer_stop(), which waits some seconds at most for the last spans.
 * Threads: any, but for tracer_stop().
 */
#ifndef TRACE_TRACER_H
#define TRACE_TRACER_H

#include "job/job.h"
#include "metrics/counters.h"
#include "metrics/report.h"

struct tracer;

struct tracer_options {
    const char *url; /* where it has no path, that of the protocol is used */
    const struct identity *identity;
    const char *group, *results_topic, *letters_topic;
    struct counters *counters;
    /** Spans could not be exported, or the collector rejected some. From the tracer's thread. */
    void (*on_failed)(void *context, const struct error *err);
    void *context;
};

/** What the options point to must live until tracer_stop(). ERR_CONFIG, ERR_NO_MEMORY. */
MUST_CHECK enum err tracer_start(
    const struct tracer_options *options, struct tracer **ret, struct error *err);
void tracer_stop(struct tracer *tracer); /* NULL is fine */

/** A job was just decoded. Sets job->trace if the job is traced, and there is memory for it. */
void tracer_begin(struct tracer *tracer, struct job *job);

/** A batch of these jobs, at least one, is over; or one of them is an array. */
void tracer_note_batch(struct tracer *tracer, struct job *const *jobs, size_t count);

/** The answer to a job with job->trace was acknowledged. `program` is its name, or "". */
void tracer_end(struct tracer *tracer, const struct job *job, const char *program, uint64_t now_ns);

#endif
