#include "batch/coalesce.h"

#include "plan/signature.h"

enum { CELL_BYTES = 8 };

bool coalesce_can(const struct job *job) {
    const struct plan *plan = job->plan;
    if ((plan->job->timing && !job_is_slice(job)) || job->is_applied) return false;
    for (size_t i = 0; i < plan->launch_count; i++) {
        const struct plan_launch *launch = &plan->launches[i];
        bool is_flat = launch->grid[1] == 1 && launch->grid[2] == 1 && !launch->cooperative;
        if (job->kernels[i].kernel->batched == NULL || !is_flat) return false;
        for (size_t k = 0; k < launch->entry->arg_count; k++)
            if (launch->args[k].kind == ARG_WORDS && !launch->entry->params_in_buffer)
                return false; /* a row has 8 bytes for each argument */
    }
    return true;
}

uint32_t coalesce_jobs_at_once(const struct job *job, uint32_t multiprocessors) {
    const struct plan *plan = job->plan;
    uint32_t blocks = 1;
    if (!coalesce_can(job)) return 1;
    for (size_t i = 0; i < plan->launch_count; i++)
        if (plan->launches[i].grid[0] > blocks) blocks = plan->launches[i].grid[0];
    return blocks < multiprocessors ? multiprocessors / blocks : 1;
}

static uint64_t step_bytes(const struct plan_launch *launch, size_t jobs) {
    return launch->entry->arg_count * CELL_BYTES * jobs;
}

/* A single instance is launched as a job is. */
static uint32_t rows_of_slice(const struct job *job) {
    uint32_t count = job_slice_count(job);
    return job_is_slice(job) && count > 1 && coalesce_can(job) ? count : 0;
}

uint64_t coalesce_table_bytes(const struct plan *plan, size_t rows) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < plan->launch_count; i++) bytes += step_bytes(&plan->launches[i], rows);
    return plan_aligned(bytes);
}

void coalesce_lay_out(struct batch *batch) {
    batch->table_bytes = 0;
    for (size_t i = 0; i < batch->count; i++) batch->items[i].is_coalesced = false;
    for (size_t i = 0; i < batch->count;) {
        size_t end = i + 1;
        const struct job *first = batch->items[i].job;
        batch->items[i].table = batch->table_bytes;
        batch->items[i].rows = rows_of_slice(first);
        batch->table_bytes += coalesce_table_bytes(first->plan, batch->items[i].rows);
        if (first->long_job != NULL && batch->items[i].rows > 0)
            batch->items[i].rows = first->long_job->live_count;
        while (!job_is_slice(first) && first->long_job == NULL && coalesce_can(first) &&
               end < batch->count && coalesce_can(batch->items[end].job) &&
               plan_same_signature(first->plan, batch->items[end].job->plan))
            batch->items[end++].is_coalesced = true;
        if (end - i > 1) batch->table_bytes += coalesce_table_bytes(first->plan, end - i);
        i = end;
    }
}

struct coalesced_run coalesced_run_at(const struct batch *batch, size_t first) {
    struct coalesced_run run = {.first = first, .count = 1};
    while (first + run.count < batch->count && batch->items[first + run.count].is_coalesced)
        run.count++;
    run.rows = run.count > 1 ? (uint32_t)run.count : batch->items[first].rows;
    run.table = batch->items[first].table;
    return run;
}

CUdeviceptr coalesced_rows(
    const struct batch *batch, const struct coalesced_run *run, size_t step) {
    const struct plan *plan = batch->items[run->first].job->plan;
    uint64_t at = run->table;
    for (size_t i = 0; i < step; i++) at += step_bytes(&plan->launches[i], run->rows);
    return batch->origin + at;
}

static void write_row(const struct batch *batch, const struct batch_item *item,
    const struct plan_launch *launch, uint64_t *cells) {
    for (size_t i = 0; i < launch->entry->arg_count; i++) {
        const struct job_arg *arg = &launch->args[i];
        if (arg->kind == ARG_BUFFER) cells[i] = batch_address(batch, item, arg->buffer);
        else if (arg->kind == ARG_WORDS) cells[i] = batch_param_block_address(batch, item, launch);
        else cells[i] = arg->bits;
    }
}

/* How far the cells of one instance's row are from those of the instance before. */
static uint64_t stride_of(
    const struct batch_item *item, const struct plan_launch *launch, const struct job_arg *arg) {
    if (arg->kind == ARG_WORDS) return launch->param_block_stride;
    return arg->kind == ARG_BUFFER ? item->job->plan->buffers[arg->buffer].stride : 0;
}

/* Of a long job those that are done have no row. */
static uint32_t instance_of(const struct job *job, uint32_t row) {
    return job->long_job != NULL ? job->long_job->live[row] : row;
}

/* The first instance's row as of a job, the others by their distance from it. */
static void stage_slice(const struct batch *batch, const struct batch_item *item) {
    struct pinned_block upload = pool_block_pinned(&batch->memory->upload);
    const struct plan *plan = item->job->plan;
    uint64_t *row = (uint64_t *)(void *)(upload.data + item->table);
    for (size_t step = 0; step < plan->launch_count; step++) {
        const struct plan_launch *launch = &plan->launches[step];
        size_t cells = launch->entry->arg_count;
        write_row(batch, item, launch, row);
        for (size_t k = 0; k < cells; k++) {
            const struct job_arg *arg = &launch->args[k];
            uint64_t first = row[k], stride = stride_of(item, launch, arg);
            bool is_scalar = arg->each != NULL && arg->kind != ARG_WORDS;
            for (uint32_t i = 0; i < item->rows; i++) {
                uint32_t instance = instance_of(item->job, i);
                row[i * cells + k] = is_scalar
                                         ? job_arg_bits(arg, item->job->slice.first + instance)
                                         : first + instance * stride;
            }
        }
        row += cells * item->rows;
    }
}

static void stage_run(const struct batch *batch, const struct coalesced_run *run) {
    struct pinned_block upload = pool_block_pinned(&batch->memory->upload);
    const struct plan *plan = batch->items[run->first].job->plan;
    uint64_t at = run->table;
    for (size_t step = 0; step < plan->launch_count; step++)
        for (size_t i = run->first; i < run->first + run->count; i++) {
            const struct batch_item *item = &batch->items[i];
            const struct plan_launch *launch = &item->job->plan->launches[step];
            write_row(batch, item, launch, (uint64_t *)(void *)(upload.data + at));
            at += step_bytes(launch, 1);
        }
}

bool coalesce_has_new_rows(const struct batch *batch) {
    const struct long_job *long_job = batch_long_job(batch);
    return long_job != NULL && batch->items[0].rows != long_job->rows_on_device;
}

void coalesce_stage(const struct batch *batch) {
    if (!batch_starts(batch) && !coalesce_has_new_rows(batch)) return;
    for (size_t i = 0; i < batch->count;) {
        struct coalesced_run run = coalesced_run_at(batch, i);
        if (run.count > 1) stage_run(batch, &run);
        else if (run.rows > 0) stage_slice(batch, &batch->items[i]);
        i += run.count;
    }
}
