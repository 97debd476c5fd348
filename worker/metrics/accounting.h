/** Adds what jobs and batches cost to the worker's counters. Threads: any. */
#ifndef METRICS_ACCOUNTING_H
#define METRICS_ACCOUNTING_H

#include "metrics/board.h"

/** Call once for each job, when its outcome is known; ERR_OK: it succeeded. */
void account_job(struct counters *counters, enum err outcome, const struct job_telemetry *job);

/**
 * Call once for each message that is answered for good. `program` is the name of the program that
 * it runs; "": not known.
 */
void account_answer(
    struct board *board, const struct job *job, const char *program, uint64_t now_ns);

/** Call once for each batch, after its fence. */
void account_batch(struct counters *counters, const struct batch_telemetry *batch);

#endif
