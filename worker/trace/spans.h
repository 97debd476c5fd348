/**
 * Spans in the JSON of OTLP, as ExportTraceServiceRequest: ids in hexadecimal, times and 64-bit
 * numbers as strings. The names of attributes are those of OpenTelemetry's conventions for
 * messaging, and gpu_worker.* beside them. Private to trace/. Threads: pure.
 */
#ifndef TRACE_SPANS_H
#define TRACE_SPANS_H

#include <stdio.h>

#include "metrics/report.h"
#include "trace/record.h"

struct spans_options {
    const struct identity *identity;
    const char *group, *results_topic, *letters_topic;
};

/** `unix_ns` is the time since 1970 of clock_ns() == 0. */
void spans_write(
    const struct spans_options *options, const struct record *records, uint64_t unix_ns, FILE *out);

#endif
