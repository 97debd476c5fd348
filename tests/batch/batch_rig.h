/** A batch on the CPU driver, and jobs as prepare/ leaves them, for tests of batch.h and array.h.
 */
#ifndef TESTS_BATCH_BATCH_RIG_H
#define TESTS_BATCH_BATCH_RIG_H

#include "base/clock.h"
#include "batch/batch.h"
#include "metrics/board.h"
#include "prepare/kernels.h"
#include "support/device_rig.h"
#include "support/jobs.h"
#include "testing.h"

enum { SLAB_BYTES = 8192 };

static struct device_rig rig;
static struct batch_context context;
static struct batch batch;
static struct stream_lease lease;
static struct board *board;
static struct error err;

#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) != ERR_OK) fail_msg("%s", err.message);                                         \
    } while (0)

static void batch_rig_init(size_t jobs_max, bool can_map, bool has_graphs, const char *faults) {
    device_rig_init(&rig, faults);
    OK(stream_lease_take(rig.leases, false, &lease, &err));
    OK(board_create(&board, NULL, &err));
    context = (struct batch_context){.device = &rig.device,
        .device_pool = rig.device_pool,
        .pinned_pool = rig.pinned_pool,
        .statics = rig.statics,
        .device_counters = &rig.device_counters,
        .pinned_counters = &rig.pinned_counters,
        .counters = &board->counters,
        .leases = rig.leases,
        .stream = lease.stream,
        .slab_bytes = SLAB_BYTES,
        .can_map = can_map,
        .has_graphs = has_graphs,
        .jobs_max = jobs_max};
    OK(batch_init(&batch, &context, 0, &err));
}

/* The batch's jobs have ended. */
static void batch_rig_fini(void) {
    batch_fini(&batch);
    board_destroy(board);
    OK(stream_lease_release(rig.leases, &lease, &err));
    device_rig_fini(&rig);
}

/* A job that is ready; it holds nothing but its kernels. */
static struct job *create_ready_job(const char *yaml) {
    struct job *job = test_job(yaml);
    job->plan = device_rig_plan(&rig, job);
    job->modules = rig.set;
    job->statics = arena_alloc(&job->arena, job->buffer_count, sizeof job->statics[0]);
    job->residents = arena_alloc(&job->arena, job->buffer_count, sizeof job->residents[0]);
    job->blobs = arena_alloc(&job->arena, job->buffer_count, sizeof job->blobs[0]);
    job->kernels = arena_alloc(&job->arena, job->plan->launch_count, sizeof job->kernels[0]);
    job->found = arena_alloc(&job->arena, job->output_count, sizeof job->found[0]);
    assert_non_null(job->found);
    assert_true(kernels_pin(job));
    OK(kernels_load(&rig.device, job, &err));
    job->submitted_ns = job->ready_ns = clock_ns();
    job->state = JOB_READY;
    return job;
}

static void destroy_ready_job(struct job *job) {
    kernels_release(job);
    job_destroy(job);
}

#endif
