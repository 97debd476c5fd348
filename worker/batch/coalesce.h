/**
 * Coalesced launches: jobs of a batch that stand side by side, have the same launch signature, and
 * whose kernels all have a batched form, share one launch a step. The batched kernel is
 * `kernel(rows, jobs)`, launched with grid.y = jobs; rows[block_y()] holds one job's arguments in
 * the order of the entry, 8 bytes each: a device pointer, or a value in its low bytes. Words are
 * there by pointer, where the entry has them in a buffer; an entry that takes them by value is
 * launched for each job.
 *
 * Timed jobs never share a launch. The rows of a batch travel in its packed upload, in front of the
 * groups. Threads: those of batch.h.
 */
#ifndef BATCH_COALESCE_H
#define BATCH_COALESCE_H

#include "batch/layout.h"

/** Items [first, first + count) of a batch; count 1 is a job that is launched alone. */
struct coalesced_run {
    size_t first, count;
    uint64_t table; /* where its rows start in the layout */
};

/** Finds the runs and reserves their tables: batch->table_bytes. Part of the batch's layout. */
void coalesce_lay_out(struct batch *batch);

/** The run that starts at item `first`. */
struct coalesced_run coalesced_run_at(const struct batch *batch, size_t first);

/**
 * How many such jobs a device runs side by side, one block on each of its multiprocessors, should
 * they share launches: 1 where they cannot.
 */
uint32_t coalesce_jobs_at_once(const struct job *job, uint32_t multiprocessors);

/** Writes all tables into the upload slab. */
void coalesce_stage(const struct batch *batch);

/** The device address of the rows of one step. */
CUdeviceptr coalesced_rows(const struct batch *batch, const struct coalesced_run *run, size_t step);

#endif
