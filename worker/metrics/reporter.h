/**
 * The thread that publishes what the worker says of itself, through a sink of its own.
 *
 * A report says what came since the last one that was acknowledged, so one that the sink refuses
 * is not lost: the next one says it. While one is on its way, none is sent. A telemetry that cannot
 * be published fails nothing; it is logged, at most once a minute.
 *
 * Lifetime: reporter_start() to reporter_stop(). Threads: its own.
 */
#ifndef METRICS_REPORTER_H
#define METRICS_REPORTER_H

#include "broker/sink.h"
#include "metrics/collector.h"

struct reporter;

struct reporter_options {
    struct sink *sink; /* owned, also where the start fails; NULL: nothing is published */
    const struct collector *collector;
    const struct identity *identity;
    uint32_t interval_ms; /* 0: nothing is published */
};

/** What it collects from is there. *ret stays as it is where nothing is published. */
MUST_CHECK enum err reporter_start(
    const struct reporter_options *options, struct reporter **ret, struct error *err);

/**
 * Publishes what came since, and ends the thread; waits 2 s at most. Once no job runs any more, so
 * that the reports together say all, and while what it collects from is there. NULL is fine.
 */
void reporter_stop(struct reporter *reporter);

#endif
