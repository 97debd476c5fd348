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

void account_job(struct counters *counters, enum err outcome, const struct job_telemetry *job) {
#define ADD(field) counters_add(counters, COUNTER_jobs_##field, job->field);
    ADD(h2d_bytes)
    ADD(d2h_bytes)
    ADD(param_bytes)
    ADD(kernel_launches)
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
    if (outcome == ERR_OK && job->is_timed) account_timed(counters, job);
}

void account_batch(struct counters *counters, const struct batch_telemetry *batch) {
    counters_add(counters, COUNTER_batches_count, 1);
    counters_add(counters, COUNTER_batches_copies, batch->uploads + batch->readbacks);
#define ADD(field, engine_field)                                                                   \
    counters_add(counters, COUNTER_batches_##field, batch->field);                                 \
    counters_add(counters, COUNTER_engine_##engine_field, batch->field);
    ADD(h2d_bytes, host_to_device_bytes)
    ADD(d2h_bytes, device_to_host_bytes)
    ADD(launches, kernel_launches)
    ADD(coalesced_launches, coalesced_launches)
    ADD(sync_points, sync_points)
#undef ADD
    counters_add(counters, COUNTER_batches_jobs, batch->jobs);
    counters_add(counters, COUNTER_engine_upload_operations, batch->uploads);
    counters_add(counters, COUNTER_engine_readback_operations, batch->readbacks);
}
