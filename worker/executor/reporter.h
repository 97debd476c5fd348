/**
 * The thread that publishes what the worker says of itself, through a sink of its own. Private to
 * executor/.
 *
 * A report says what came since the last one that was acknowledged, so one that the sink refuses
 * is not lost: the next one says it. While one is on its way, none is sent. A telemetry that cannot
 * be published fails nothing; it is logged, at most once a minute.
 *
 * Lifetime: reporter_start() to reporter_stop(). Threads: its own.
 */
#ifndef EXECUTOR_REPORTER_H
#define EXECUTOR_REPORTER_H

#include "executor/stages.h"

/** Every stage is there. Owns the sink, also where this fails. NULL is no sink: no reporter. */
MUST_CHECK enum err reporter_start(
    struct stages *stages, struct sink *sink, struct reporter **ret, struct error *err);

/**
 * Publishes what came since, and ends the thread; waits 2 s at most. Once no job runs any more, so
 * that the reports together say all, and while the stages' services are there. NULL is fine.
 */
void reporter_stop(struct reporter *reporter);

#endif
