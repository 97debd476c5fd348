/** Jobs of the differential test's kernels, planned as a lane gets them, without a device. */
#ifndef TESTS_BATCH_PLANNED_H
#define TESTS_BATCH_PLANNED_H

#include "batch/layout.h"
#include "plan/planner.h"
#include "support/jobs.h"
#include "testing.h"

enum { PLANNED_MAX = 8, UPLOAD_BYTES = 1 << 14, UNTOUCHED = 0xee };

/* A batch of up to so many jobs in host memory; the test says where they lie. */
struct planned {
    struct registry *registry;
    struct batch batch;
    struct batch_context context;
    struct batch_memory memory;
    struct batch_item items[PLANNED_MAX];
    struct kernel kernels[2]; /* with a batched form, and without */
    uint64_t upload[UPLOAD_BYTES / 8];
};

static struct planned *planned;

static inline int planned_set_up(void **state) {
    struct problems problems;
    problems_init(&problems);
    planned = calloc(1, sizeof *planned);
    assert_non_null(planned);
    planned->registry = registry_load(MIX_FOLDER, &problems);
    assert_int_equal(problems.count, 0);
    problems_fini(&problems);
    memset(planned->upload, UNTOUCHED, sizeof planned->upload);
    planned->kernels[0].batched = (CUfunction)planned;
    planned->memory.upload =
        (struct pool_block){.address = (uintptr_t)planned->upload, .bytes = sizeof planned->upload};
    planned->batch = (struct batch){.context = &planned->context,
        .memory = &planned->memory,
        .items = planned->items,
        .origin = 0x10000};
    return 0;
}

static inline int planned_tear_down(void **state) {
    for (size_t i = 0; i < planned->batch.count; i++) job_destroy(planned->items[i].job);
    registry_destroy(planned->registry);
    free(planned);
    return 0;
}

/* Adds a job to the batch; all of its launches have a batched form. */
static inline struct batch_item *planned_add(const char *yaml) {
    const struct plan_limits limits = {.device = {.architecture = 80,
                                           .memory_bytes = 1ull << 34,
                                           .block_threads_max = 1024,
                                           .block_max = {1024, 1024, 64},
                                           .grid_max = {2147483647, 65535, 65535},
                                           .param_bytes_max = 4096,
                                           .shared_bytes_max = 65536,
                                           .cooperative = true},
        .job_bytes_max = 1 << 20,
        .result_bytes_max = 1 << 20};
    struct error err;
    assert_true(planned->batch.count < PLANNED_MAX);
    struct batch_item *item = &planned->items[planned->batch.count++];
    struct job *job = item->job = test_job(yaml);
    if (plan_job(job, planned->registry, &limits, &job->plan, &err) != ERR_OK)
        fail_msg("%s", err.message);
    job->statics = arena_alloc(&job->arena, job->buffer_count, sizeof job->statics[0]);
    job->residents = arena_alloc(&job->arena, job->buffer_count, sizeof job->residents[0]);
    job->blobs = arena_alloc(&job->arena, job->buffer_count, sizeof job->blobs[0]);
    job->kernels = arena_alloc(&job->arena, job->plan->launch_count, sizeof job->kernels[0]);
    assert_non_null(job->kernels);
    for (size_t i = 0; i < job->plan->launch_count; i++)
        job->kernels[i].kernel = &planned->kernels[0];
    return item;
}

#define PLANNED(name) cmocka_unit_test_setup_teardown(name, planned_set_up, planned_tear_down)

#endif
