/** The worker's telemetry as a message (schemas/telemetry.schema.json). Threads: pure. */
#ifndef METRICS_ENCODE_REPORT_H
#define METRICS_ENCODE_REPORT_H

#include "base/slice.h"
#include "metrics/report.h"

/** The message's payload, which the caller frees. Its data is NULL if memory is short. */
struct slice encode_report(const struct report *report, const struct identity *identity);

#endif
