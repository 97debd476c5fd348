/* Batches on the CPU driver: how they lie, what moves, and what becomes of each job. */
#include <stdio.h>

#include "batch_rig.h"
#include "cpu_driver/cpu_driver.h"
#include "gpu/event.h"

enum { JOBS_MAX = 4 };

static struct job *jobs[JOBS_MAX];
static size_t job_count;

static void open_batch(bool can_map, const char *faults) {
    batch_rig_init(JOBS_MAX, can_map, false, faults);
    job_count = 0;
}

static void forget_jobs(void) {
    for (size_t i = 0; i < job_count; i++) destroy_ready_job(jobs[i]);
    job_count = 0;
}

static void close_batch(void) {
    forget_jobs();
    batch_rig_fini();
}

static struct job *add(const char *yaml) {
    return jobs[job_count++] = create_ready_job(yaml);
}

/* y = k x + y, with x = {1, 2} and y = {10, 20}; `y` and `more` in YAML. */
static struct job *add_saxpy(int k, const char *y, const char *more) {
    char yaml[512];
    snprintf(yaml, sizeof yaml,
        "id: j\nbuffers: {x: {data: {f32: [1, 2]}}, y: {%s}}\n"
        "steps: [{program: saxpy, args: [{f32: %d}, x, y, {u32: 2}], elements: 2%s",
        y, k, more);
    return add(yaml);
}

#define DATA "data: {f32: [10, 20]}"
#define END "}]\noutputs: [{buffer: y}]\n"

static enum err begin(bool is_guarded) {
    return batch_begin(&batch, jobs, job_count, 0, is_guarded, 7, &err);
}

static void run(void) {
    OK(begin(false));
    OK(batch_finish(&batch, &err));
}

static void assert_output(const struct job *job, size_t index, float a, float b) {
    const float expected[] = {a, b};
    assert_int_equal(job->outcome.code, ERR_OK);
    assert_int_equal(job->outcome.outputs[index].size, sizeof expected);
    assert_memory_equal(job->outcome.outputs[index].data, expected, sizeof expected);
}

TEST(one_copy_up_one_launch_and_one_copy_back_serve_all_jobs) {
    open_batch(false, NULL);
    for (int k = 0; k < 3; k++) (void)add_saxpy(k, DATA, END);
    run();
    for (int k = 0; k < 3; k++) {
        assert_output(jobs[k], 0, 10 + (float)k, 20 + 2 * (float)k);
        assert_int_equal(jobs[k]->state, JOB_ON_DEVICE);
        assert_int_equal(jobs[k]->run, RUN_DONE);
        const struct job_telemetry *telemetry = &jobs[k]->outcome.telemetry;
        assert_int_equal(telemetry->h2d_bytes, 16);
        assert_int_equal(telemetry->d2h_bytes, 8);
        assert_int_equal(telemetry->kernel_launches, 1);
        assert_false(telemetry->is_timed);
        assert_int_equal(telemetry->batch.id, 7);
        assert_int_equal(telemetry->batch.jobs, 3);
        assert_int_equal(telemetry->batch.uploads, 1);
        assert_int_equal(telemetry->batch.readbacks, 1);
        assert_int_equal(telemetry->batch.launches, 1);
        assert_int_equal(telemetry->batch.coalesced_launches, 1);
        assert_int_equal(telemetry->batch.sync_points, 1);
        assert_int_equal(telemetry->batch.h2d_bytes, 256 + 3 * 512); /* the table, x and y */
        assert_int_equal(telemetry->batch.d2h_bytes, 3 * 256);
    }
    batch_recycle(&batch);
    close_batch();
}

TEST(each_group_of_all_jobs_is_one_range_behind_the_tables) {
    open_batch(false, NULL);
    for (int k = 0; k < 2; k++) (void)add_saxpy(k, DATA, END);
    (void)add_saxpy(3, "bytes: 300", END);
    OK(begin(false));
    const uint64_t starts[] = {256, 256 + 3 * 256, 256 + 5 * 256, 256 + 7 * 256, 256 + 7 * 256};
    for (size_t g = 0; g <= GROUP_COUNT; g++) assert_int_equal(batch.start[g], starts[g]);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(batch.items[i].base[GROUP_INPUT], 256 + i * 256);
    assert_int_equal(batch.items[1].base[GROUP_INOUT], starts[GROUP_INOUT] + 256);
    assert_int_equal(batch.items[2].base[GROUP_OUTPUT], starts[GROUP_OUTPUT]);
    OK(batch_finish(&batch, &err));
    batch_recycle(&batch);
    close_batch();
}

/* Two jobs one after the other: the second one's output stands where the first one's bytes were,
 * and no kernel writes to it. Returns how often the device was told to clear. */
static uint64_t clear_after_another(size_t bytes) {
    char yaml[512];
    open_batch(false, NULL);
    (void)add_saxpy(1, "fill: 7, bytes: 4096", END);
    run();
    batch_recycle(&batch);
    forget_jobs();
    uint64_t before = cpu_driver_counters().calls[CPU_fill];
    snprintf(yaml, sizeof yaml,
        "id: j\nbuffers: {x: {data: {f32: [1, 2]}}, y: {" DATA "}, z: {bytes: %zu}}\n"
        "steps: [{program: saxpy, args: [{f32: 1}, x, y, {u32: 2}], elements: 2}]\n"
        "outputs: [{buffer: z}, {buffer: y}]\n",
        bytes);
    struct job *job = add(yaml);
    run();
    assert_output(job, 1, 11, 22);
    assert_int_equal(job->outcome.outputs[0].size, bytes);
    for (size_t i = 0; i < bytes; i++) assert_int_equal(job->outcome.outputs[0].data[i], 0);
    uint64_t fills = cpu_driver_counters().calls[CPU_fill] - before;
    batch_recycle(&batch);
    close_batch();
    return fills;
}

TEST(a_few_zeroes_go_up_with_the_inputs_and_many_are_set_by_the_device) {
    assert_int_equal(clear_after_another(4096), 0);
    assert_int_equal(clear_after_another(8192), 0);
    assert_int_equal(clear_after_another(8448), 1);
}

TEST(jobs_of_other_signatures_run_beside_each_other_with_launches_of_their_own) {
    open_batch(false, NULL);
    (void)add_saxpy(1, DATA, END);
    (void)add_saxpy(2, DATA, ", iterations: 3" END);
    (void)add_saxpy(3, "bytes: 8, fill: 0, writes: [{offset: 4, data: {f32: [5]}}]", END);
    run();
    assert_output(jobs[0], 0, 11, 22);
    assert_output(jobs[1], 0, 16, 32);
    assert_output(jobs[2], 0, 3, 11);
    assert_int_equal(jobs[0]->outcome.telemetry.batch.launches, 5);
    assert_int_equal(jobs[0]->outcome.telemetry.batch.coalesced_launches, 0);
    batch_recycle(&batch);
    close_batch();
}

TEST(a_small_part_of_a_large_buffer_is_read_back_alone_for_each_job) {
    open_batch(false, NULL);
    for (int k = 1; k < 3; k++)
        (void)add_saxpy(k, "bytes: 1000000, writes: [{offset: 0, data: {f32: [10, 20]}}]",
            "}]\noutputs: [{buffer: y, bytes: 8}, {buffer: y, offset: 8, bytes: 8, as: rest}]\n");
    run();
    for (int k = 1; k < 3; k++) {
        assert_output(jobs[k - 1], 0, 10 + (float)k, 20 + 2 * (float)k);
        assert_output(jobs[k - 1], 1, 0, 0);
    }
    assert_true(jobs[0]->outcome.telemetry.batch.d2h_bytes < 10000);
    batch_recycle(&batch);
    close_batch();
}

TEST(what_does_not_fit_the_slab_has_memory_of_its_own_for_that_time) {
    open_batch(false, NULL);
    (void)add_saxpy(1, "bytes: 7936", END); /* with x the whole slab */
    run();
    assert_ptr_equal(batch.memory, &batch.slabs);
    batch_recycle(&batch);
    forget_jobs();
    (void)add_saxpy(1, "bytes: 7940, writes: [{offset: 0, data: {f32: [10, 20]}}]",
        "}]\noutputs: [{buffer: y, bytes: 8}]\n");
    run();
    assert_ptr_equal(batch.memory, &batch.large);
    assert_output(jobs[0], 0, 11, 22);
    batch_recycle(&batch);
    assert_int_equal(batch.large.device.address, 0);
    assert_int_equal(batch.large.upload.address, 0);
    assert_int_equal(batch.large.readback.address, 0);
    close_batch();
}

/* A job of two outputs, which are in the middle of its result's room. */
static struct job *add_with_room(void) {
    struct job *job = add_saxpy(1, "bytes: 4096, writes: [{offset: 0, data: {f32: [10, 20]}}]",
        "}]\noutputs: [{buffer: y}, {buffer: x}, {buffer: y, offset: 4, bytes: 0, as: e}]\n");
    job->room.places = arena_alloc(&job->arena, 3, sizeof job->room.places[0]);
    assert_non_null(job->room.places);
    job->room.places[0] = 512;
    job->room.places[1] = 512 + 4096 + 7;
    job->room.bytes = 5120; /* all of this would fit the slab */
    return job;
}

static void read_back_to_room(bool is_guarded) {
    open_batch(true, NULL);
    struct job *job = add_with_room();
    OK(begin(is_guarded));
    assert_null(job->room.data);
    OK(batch_finish(&batch, &err));
    batch_recycle(&batch);
    assert_true(job->room.pinned_bytes >= job->room.bytes);
    for (size_t i = 0; i < 2; i++)
        assert_ptr_equal(job->outcome.outputs[i].data, job_output_place(job, i));
    const float y[] = {11, 22, 0}, x[] = {1, 2};
    assert_int_equal(job->outcome.outputs[0].size, 4096);
    assert_memory_equal(job_output_place(job, 0), y, sizeof y);
    assert_memory_equal(job_output_place(job, 1), x, sizeof x);
    assert_int_equal(job->outcome.outputs[2].size, 0);
    struct pool_block block = {(uintptr_t)job->room.data, job->room.pinned_bytes};
    pool_give_back(rig.pinned_pool, &rig.pinned_counters, &block);
    close_batch();
}

TEST(a_large_job_keeps_the_memory_that_its_outputs_were_read_back_to) {
    read_back_to_room(false);
}

TEST(a_guarded_job_keeps_the_memory_that_its_outputs_were_read_back_to) {
    read_back_to_room(true);
}

TEST(a_large_job_that_fails_leaves_its_memory_to_the_batch) {
    open_batch(false, "cuLaunchKernel:launch_out_of_resources@1");
    struct job *job = add_with_room();
    run();
    assert_int_not_equal(job->outcome.code, ERR_OK);
    assert_null(job->room.data);
    batch_recycle(&batch);
    assert_int_equal(batch.large.readback.address, 0);
    close_batch();
}

TEST(jobs_for_which_there_is_no_memory_are_untouched_and_the_batch_serves_others) {
    open_batch(false, NULL);
    struct job *job = add_saxpy(1, "bytes: 16000000", END);
    assert_true(err_is_shortage(begin(false)));
    assert_int_equal(job->state, JOB_READY);
    assert_int_equal(job->run, RUN_NONE);
    assert_int_equal(batch.large.device.address, 0);
    forget_jobs();
    (void)add_saxpy(1, DATA, END);
    run();
    assert_output(jobs[0], 0, 11, 22);
    batch_recycle(&batch);
    close_batch();
}

TEST(jobs_that_touch_each_byte_once_are_run_where_the_host_put_them) {
    open_batch(true, NULL);
    for (int k = 0; k < 3; k++) (void)add_saxpy(k, DATA, END);
    run();
    assert_true(batch.is_mapped);
    for (int k = 0; k < 3; k++) assert_output(jobs[k], 0, 10 + (float)k, 20 + 2 * (float)k);
    assert_int_equal(jobs[0]->outcome.telemetry.batch.uploads, 0);
    assert_int_equal(jobs[0]->outcome.telemetry.batch.readbacks, 0);
    assert_int_equal(jobs[0]->outcome.telemetry.batch.h2d_bytes, 3 * 16);
    assert_int_equal(jobs[0]->outcome.telemetry.batch.d2h_bytes, 3 * 8);
    batch_recycle(&batch);
    close_batch();
}

TEST(one_job_that_touches_bytes_twice_has_all_of_its_batch_copied) {
    open_batch(true, NULL);
    (void)add_saxpy(1, DATA, END);
    (void)add_saxpy(1, DATA, ", iterations: 2" END);
    run();
    assert_false(batch.is_mapped);
    assert_output(jobs[0], 0, 11, 22);
    assert_output(jobs[1], 0, 12, 24);
    assert_int_equal(jobs[0]->outcome.telemetry.batch.uploads, 1);
    batch_recycle(&batch);
    close_batch();
}

TEST(a_guarded_job_has_blocks_of_its_own_and_gives_the_same) {
    open_batch(true, NULL);
    (void)add_saxpy(2, DATA, END);
    OK(begin(true));
    assert_false(batch.is_mapped);
    assert_non_null(batch.guarded);
    OK(batch_finish(&batch, &err));
    assert_output(jobs[0], 0, 12, 24);
    batch_recycle(&batch);
    assert_null(batch.guarded);
    close_batch();
}

TEST(a_timed_job_says_what_it_took_and_is_launched_alone) {
    open_batch(false, NULL);
    (void)add_saxpy(1, DATA, "}]\ntiming: true\noutputs: [{buffer: y}]\n");
    (void)add_saxpy(1, DATA, END);
    run();
    assert_true(jobs[0]->outcome.telemetry.is_timed);
    assert_false(jobs[1]->outcome.telemetry.is_timed);
    assert_int_equal(jobs[0]->outcome.telemetry.batch.launches, 2);
    batch_recycle(&batch);
    close_batch();
}

TEST(a_job_that_was_applied_before_launches_nothing) {
    open_batch(false, NULL);
    struct job *job = add_saxpy(1, DATA, END);
    job->is_applied = true;
    run();
    assert_int_equal(job->outcome.code, ERR_OK);
    assert_int_equal(job->outcome.telemetry.batch.launches, 0);
    assert_int_equal(job->outcome.telemetry.kernel_launches, 0);
    assert_int_equal(job->outcome.telemetry.h2d_bytes, 0);
    assert_int_equal(job->outcome.telemetry.param_bytes, 0);
    batch_recycle(&batch);
    close_batch();
}

TEST(a_job_whose_launch_is_refused_fails_alone) {
    open_batch(false, "cuLaunchKernel:launch_out_of_resources@1");
    (void)add_saxpy(1, DATA, ", iterations: 2" END);
    (void)add_saxpy(2, DATA, END);
    run();
    assert_int_not_equal(jobs[0]->outcome.code, ERR_OK);
    assert_null(jobs[0]->outcome.outputs);
    assert_int_equal(jobs[0]->run, RUN_STARTED);
    assert_output(jobs[1], 0, 12, 24);
    batch_recycle(&batch);
    close_batch();
}

TEST(a_copy_that_is_refused_fails_all_jobs_and_the_batch_goes_on) {
    open_batch(false, "cuMemcpyHtoDAsync:invalid_value@1");
    for (int k = 0; k < 2; k++) (void)add_saxpy(k, DATA, END);
    run();
    for (int k = 0; k < 2; k++) {
        assert_int_not_equal(jobs[k]->outcome.code, ERR_OK);
        assert_true(jobs[k]->outcome.err.message[0] != 0);
    }
    batch_recycle(&batch);
    forget_jobs();
    (void)add_saxpy(1, DATA, END);
    run();
    assert_output(jobs[0], 0, 11, 22);
    batch_recycle(&batch);
    close_batch();
}

TEST(a_fence_that_was_seen_is_not_asked_again) {
    open_batch(false, NULL);
    (void)add_saxpy(1, DATA, END);
    OK(begin(false));
    while (!batch_is_done(&batch)) continue;
    uint64_t asked = cpu_driver_counters().calls[CPU_event_query];
    assert_true(batch_is_done(&batch));
    OK(batch_finish(&batch, &err));
    assert_int_equal(cpu_driver_counters().calls[CPU_event_query], asked);
    assert_int_equal(cpu_driver_counters().calls[CPU_event_synchronize], 0);
    batch_recycle(&batch);
    close_batch();
}

TEST(jobs_for_which_there_is_no_memory_end_their_tenants_turn) {
    struct tenancy *tenancy;
    bool has_entered;
    open_batch(false, NULL);
    OK(tenancy_create(&rig.device, rig.leases, &tenancy, &err));
    context.tenancy = tenancy;
    (void)add_saxpy(1, "bytes: 16000000", END);
    OK(tenancy_enter(tenancy, slice_of_text("one"), context.stream, &err));
    assert_true(err_is_shortage(begin(false)));
    OK(tenancy_try_enter(tenancy, slice_of_text("another"), context.stream, &has_entered, &err));
    assert_true(has_entered);
    tenancy_leave(tenancy);
    context.tenancy = NULL;
    tenancy_destroy(tenancy);
    close_batch();
}

RUN_TESTS(T(one_copy_up_one_launch_and_one_copy_back_serve_all_jobs),
    T(each_group_of_all_jobs_is_one_range_behind_the_tables),
    T(a_few_zeroes_go_up_with_the_inputs_and_many_are_set_by_the_device),
    T(jobs_of_other_signatures_run_beside_each_other_with_launches_of_their_own),
    T(a_small_part_of_a_large_buffer_is_read_back_alone_for_each_job),
    T(what_does_not_fit_the_slab_has_memory_of_its_own_for_that_time),
    T(a_large_job_keeps_the_memory_that_its_outputs_were_read_back_to),
    T(a_guarded_job_keeps_the_memory_that_its_outputs_were_read_back_to),
    T(a_large_job_that_fails_leaves_its_memory_to_the_batch),
    T(jobs_for_which_there_is_no_memory_are_untouched_and_the_batch_serves_others),
    T(jobs_that_touch_each_byte_once_are_run_where_the_host_put_them),
    T(one_job_that_touches_bytes_twice_has_all_of_its_batch_copied),
    T(a_guarded_job_has_blocks_of_its_own_and_gives_the_same),
    T(a_timed_job_says_what_it_took_and_is_launched_alone),
    T(a_job_that_was_applied_before_launches_nothing), T(a_job_whose_launch_is_refused_fails_alone),
    T(a_copy_that_is_refused_fails_all_jobs_and_the_batch_goes_on),
    T(a_fence_that_was_seen_is_not_asked_again),
    T(jobs_for_which_there_is_no_memory_end_their_tenants_turn))
