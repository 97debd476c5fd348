/**
 * Coalesced launches: neighbouring jobs of a batch share one launch for each step, if they have the
 * same launch signature and all of their kernels have a batched form. The batched kernel is
 * `kernel(rows, jobs)`, launched with grid.y = jobs. rows[block_y()] holds one job's arguments in
 * the order of the entry, 8 bytes each: a device pointer, or a value in its low bytes. A parameter
 * block is there as a pointer, if the entry has it in a buffer. Entries that take it by value are
 * launched for each job.
 *
 * The instances of an array's slice share launches in the same way, each with a row of its own: an
 * `each` buffer's cell points to the instance's part, an `each` argument's has its value.
 *
 * Timed jobs never share a launch; the instances of a timed array do. The rows of a batch go up
 * with its packed upload, in front of the groups. Threads: those of batch.h.
 */
#ifndef BATCH_COALESCE_H
#define BATCH_COALESCE_H

#include "batch/layout.h"

/** grid.y of every CUDA device: so many jobs or instances may share a launch. */
enum { COALESCED_ROWS_MAX = 65535 };

/** Items [first, first + count) of a batch; one without rows is launched alone. */
struct coalesced_run {
    size_t first, count;
    uint32_t rows;  /* jobs or instances that share launches; 0: there is no table */
    uint64_t table; /* where its rows start in the layout */
};

/** Whether every step of the job, or of the slice, has a batched kernel, and leaves grid.y for the
 * others that share its launches. */
bool coalesce_can(const struct job *job);

/** Finds the runs and reserves their tables: batch->table_bytes. Part of the batch's layout. */
void coalesce_lay_out(struct batch *batch);

/** The run that starts at item `first`. */
struct coalesced_run coalesced_run_at(const struct batch *batch, size_t first);

/**
 * How many jobs like this one a device runs side by side when they share launches, with one block
 * on each multiprocessor; 1 where they cannot share launches.
 */
uint32_t coalesce_jobs_at_once(const struct job *job, uint32_t multiprocessors);

/** Whether the batch's long job needs another table than the device has: without the rows of
 * instances that have become done. */
bool coalesce_has_new_rows(const struct batch *batch);

/** Writes all tables into the upload slab. */
void coalesce_stage(const struct batch *batch);

/** Of the tables of a run of so many rows. */
uint64_t coalesce_table_bytes(const struct plan *plan, size_t rows);

/** The device address of the rows of one step. */
CUdeviceptr coalesced_rows(const struct batch *batch, const struct coalesced_run *run, size_t step);

#endif
