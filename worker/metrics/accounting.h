/** Adds what jobs and batches cost to the worker's counters. Threads: any. */
#ifndef METRICS_ACCOUNTING_H
#define METRICS_ACCOUNTING_H

#include "metrics/board.h"

/** Call once for each job that is answered; ERR_OK: it succeeded. Of an array also what its batches
 * cost. */
void account_job(struct counters *counters, enum err outcome, const struct job_telemetry *job);

/**
 * Call once for each message that is answered for good. `program` is the name of the program that
 * it runs; "": not known.
 */
void account_answer(
    struct board *board, const struct job *job, const char *program, uint64_t now_ns);

/** Call once for each batch, after its fence. What the batch of a slice cost is told with its
 * array, if that is answered here. */
void account_batch(struct counters *counters, const struct batch_telemetry *batch, bool is_slice);

#endif
