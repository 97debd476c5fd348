/**
 * What a job that is traced keeps of its trace (trace/tracer.h). Lifetime: that of its job.
 * Threads: the job's.
 */
#ifndef JOB_TRACE_H
#define JOB_TRACE_H

#include <stdint.h>

#include "base/slice.h"

enum {
    TRACE_ID_TEXT = 32,    /* hexadecimal digits of a trace's id */
    SPAN_ID_TEXT = 16,     /* and of a span's */
    TRACEPARENT_BYTES = 55 /* of W3C Trace Context: version, trace id, parent id and flags */
};

struct job_trace {
    struct slice trace_id, parent_id; /* as the sender's traceparent has them */
    struct slice state;               /* the sender's tracestate; may be empty */
    uint8_t flags;
    uint64_t spans;                          /* the number of its first span */
    uint64_t batch;                          /* of the span of its batch; 0: it has none */
    uint64_t begun_ns;                       /* clock_ns() when its decoding began */
    uint64_t ended_ns;                       /* when its outcome was final */
    char traceparent[TRACEPARENT_BYTES + 1]; /* of its result */
};

#endif
