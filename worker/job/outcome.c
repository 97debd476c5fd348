#include "job/outcome.h"

void telemetry_merge(struct job_telemetry *total, const struct job_telemetry *part) {
    const struct job_telemetry before = *total;
    const struct batch_telemetry *batch = &before.batch;
    *total = *part; /* what the whole job asks for stands in each */
    if (batch->id != 0 && before.queue_ns < total->queue_ns) total->queue_ns = before.queue_ns;
    total->slices += before.slices;
    total->stage_ns += before.stage_ns;
    total->enqueue_ns += before.enqueue_ns;
    total->wait_ns += before.wait_ns;
    total->device_ns += before.device_ns;
    if (before.wall_ns > total->wall_ns) total->wall_ns = before.wall_ns;
    total->batch.jobs += batch->jobs;
    total->batch.uploads += batch->uploads;
    total->batch.readbacks += batch->readbacks;
    total->batch.h2d_bytes += batch->h2d_bytes;
    total->batch.d2h_bytes += batch->d2h_bytes;
    total->batch.launches += batch->launches;
    total->batch.coalesced_launches += batch->coalesced_launches;
    total->batch.sync_points += batch->sync_points;
}
