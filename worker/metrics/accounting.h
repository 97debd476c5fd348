/** Adds what jobs and batches cost to the worker's counters. Threads: any. */
#ifndef METRICS_ACCOUNTING_H
#define METRICS_ACCOUNTING_H

#include "job/outcome.h"
#include "metrics/counters.h"

/** Call once for each job, when its outcome is known; ERR_OK: it succeeded. */
void account_job(struct counters *counters, enum err outcome, const struct job_telemetry *job);

/** Call once for each batch, after its fence. */
void account_batch(struct counters *counters, const struct batch_telemetry *batch);

#endif
