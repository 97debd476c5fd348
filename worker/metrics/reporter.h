/**
 * The thread that reports what the worker does: once a second on its board, and in each interval as
 * telemetry, through a sink of its own.
 *
 * A report covers the time since the last acknowledged one, so if the sink refuses a report, the
 * next one includes it. Only one report is under way at a time. If telemetry cannot be published,
 * no job fails; it is logged at most once a minute.
 *
 * Lifetime: reporter_start() to reporter_stop(). Threads: its own.
 */
#ifndef METRICS_REPORTER_H
#define METRICS_REPORTER_H

#include "broker/sink.h"
#include "metrics/collector.h"

struct reporter;
struct board;
struct meter;

struct reporter_options {
    struct sink *sink; /* owned, even if the start fails; NULL: nothing is published */
    struct board *board;
    const struct collector *collector;
    const struct identity *identity;
    struct meter *meter;  /* how the device is used; NULL: not known */
    uint32_t interval_ms; /* 0: nothing is published */
};

/** Call it when everything it reads from exists. */
MUST_CHECK enum err reporter_start(
    const struct reporter_options *options, struct reporter **ret, struct error *err);

/**
 * Publishes a last report and ends the thread; waits 2 s at most. Call it when no job runs any
 * more, so that the reports together cover everything, and while all that it reads from still
 * exists. NULL is fine.
 */
void reporter_stop(struct reporter *reporter);

/**
 * Publishes a last report of a process that ends while jobs run and threads may hang: waits 2 s at
 * most, and nothing but the end of the process may follow. NULL is fine. Threads: any but its own.
 */
void reporter_tell_last(struct reporter *reporter);

#endif
