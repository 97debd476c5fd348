/** Adds what a job asked for, and what a batch moved, to the worker's counters. Threads: any. */
#ifndef EXECUTE_TALLY_H
#define EXECUTE_TALLY_H

#include "execute/outcome.h"
#include "telemetry/counters.h"

/** Once a job, when its outcome is known. */
void tally_job(struct counters *counters, const struct outcome *outcome);

/** Once a batch, after its fence. */
void tally_batch(struct counters *counters, const struct batch_telemetry *batch);

#endif
