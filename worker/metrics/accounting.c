#include "metrics/accounting.h"

static void account_timed(struct counters *counters, const struct job_telemetry *job) {
#define ADD(field)                                                                                 \
    counters_add(counters, COUNTER_timed_##field, job->field);                                     \
    counters_raise(counters, COUNTER_timed_##field##_max, job->field);
    ADD(wall_ns)
    ADD(enqueue_ns)
    ADD(wait_ns)
    ADD(device_ns)
#undef ADD
    counters_add(counters, COUNTER_timed_jobs, 1);
}

/* What a result tells of its batch: of an array, the sum of its slices'. */
static void account_told(
    struct counters *counters, const struct batch_telemetry *batch, uint64_t count) {
    counters_add(counters, COUNTER_batches_count, count);
    counters_add(counters, COUNTER_batches_copies, batch->uploads + batch->readbacks);
#define ADD(field) counters_add(counters, COUNTER_batches_##field, batch->field);
    ADD(jobs)
    ADD(h2d_bytes)
    ADD(d2h_bytes)
    ADD(launches)
    ADD(coalesced_launches)
    ADD(sync_points)
#undef ADD
}

void account_job(struct counters *counters, enum err outcome, const struct job_telemetry *job) {
#define ADD(field)                                                                                 \
    if (job->field != 0) counters_add(counters, COUNTER_jobs_##field, job->field);
    ADD(h2d_bytes)
    ADD(d2h_bytes)
    ADD(param_bytes)
    ADD(kernel_launches)
    ADD(instances)
    ADD(slices)
    ADD(static_hits)
    ADD(static_misses)
    ADD(static_bytes_saved)
    ADD(queue_ns)
    ADD(decode_ns)
    ADD(prepare_ns)
    ADD(stage_ns)
    ADD(enqueue_ns)
    ADD(wait_ns)
    ADD(wall_ns)
#undef ADD
    counters_add(counters, COUNTER_engine_param_upload_bytes, job->param_bytes);
    counters_observe(counters, HISTOGRAM_queue, job->queue_ns);
    counters_observe(counters, HISTOGRAM_decode, job->decode_ns);
    counters_observe(counters, HISTOGRAM_prepare, job->prepare_ns);
    counters_observe(counters, HISTOGRAM_device, job->enqueue_ns + job->wait_ns);
    if (outcome == ERR_OK && job->is_timed) account_timed(counters, job);
    if (job->is_sum) account_told(counters, &job->batch, job->batch.sync_points);
}

void account_answer(
    struct board *board, const struct job *job, const char *program, uint64_t now_ns) {
    uint64_t total_ns = now_ns - job->delivery->received_ns;
    uint64_t until_ns = job->outcome.telemetry.wall_ns;
    counters_add_outcome(&board->counters, job->outcome.code);
    counters_observe(&board->counters, HISTOGRAM_total, total_ns);
    if (total_ns > until_ns)
        counters_observe(&board->counters, HISTOGRAM_publish, total_ns - until_ns);
    ledger_note_answer(&board->ledger, program, job);
}

/* In a batch of one job nothing is shared; in another, a launch may be of several jobs. */
static void account_kinds(struct counters *counters, const struct batch_telemetry *batch) {
    uint64_t launches = batch->launches - batch->coalesced_launches;
    bool is_alone = batch->jobs == 1, is_coalesced = batch->coalesced_launches > 0;
    counters_add(counters, is_alone ? COUNTER_kinds_launches_alone : COUNTER_kinds_launches_batched,
        launches);
    counters_add(counters, COUNTER_kinds_launches_coalesced, batch->coalesced_launches);
    counters_add(counters, COUNTER_kinds_graph_launches, batch->graph_launches);
    counters_add(counters, COUNTER_kinds_graphs_refused, batch->graphs_refused);
    counters_add(counters,
        is_alone       ? COUNTER_kinds_sync_points_alone
        : is_coalesced ? COUNTER_kinds_sync_points_coalesced
                       : COUNTER_kinds_sync_points_batched,
        batch->sync_points);
    counters_observe(counters, HISTOGRAM_batch_jobs, batch->jobs);
}

void account_batch(struct counters *counters, const struct batch_telemetry *batch, bool is_slice) {
    counters_add(counters, COUNTER_engine_host_to_device_bytes, batch->h2d_bytes);
    counters_add(counters, COUNTER_engine_device_to_host_bytes, batch->d2h_bytes);
    counters_add(counters, COUNTER_engine_kernel_launches, batch->launches);
    counters_add(counters, COUNTER_engine_coalesced_launches, batch->coalesced_launches);
    counters_add(counters, COUNTER_engine_sync_points, batch->sync_points);
    counters_add(counters, COUNTER_engine_upload_operations, batch->uploads);
    counters_add(counters, COUNTER_engine_readback_operations, batch->readbacks);
    account_kinds(counters, batch);
    if (!is_slice) account_told(counters, batch, 1);
}
