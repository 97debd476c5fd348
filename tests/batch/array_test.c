/* Slices of arrays on the CPU driver: any cut of an array gives the bytes that its instances give
 * as single jobs, and the array's receipts are the sum of its slices'. */
#include "batch/array.h"

#include <stdio.h>

#include "batch_rig.h"
#include "plan/extent.h"

enum { INSTANCES = 7 };

static struct job *array;

static int set_up(void **state) {
    batch_rig_init(1, false, false, NULL);
    return 0;
}

static int tear_down(void **state) {
    destroy_ready_job(array);
    batch_rig_fini();
    return 0;
}

/* As prepare/ leaves it. */
static void make_array(const char *yaml) {
    struct job *job = array = create_ready_job(yaml);
    job->spools = arena_alloc(&job->arena, job->output_count, sizeof job->spools[0]);
    job->room.places = arena_alloc(&job->arena, job->output_count, sizeof job->room.places[0]);
    for (size_t i = 0; i < job->output_count; i++) {
        job->room.places[i] = job->room.bytes;
        job->room.bytes += job_output_bytes(job, i);
    }
    job->room.data = arena_alloc(&job->arena, job->room.bytes, 1);
    assert_non_null(job->room.data);
    for (size_t i = 0; i < job->output_count; i++)
        job->found[i] = slice_of(job_output_place(job, i), job_output_bytes(job, i));
    job->state = JOB_ON_DEVICE;
    array_reset(job);
}

/* y = k x + y with two floats each: x is {i, 10 i}, y is 100 but for a write, k is i. */
static void make_saxpy(const char *step, const char *outputs) {
    char yaml[2048];
    snprintf(yaml, sizeof yaml,
        "id: a\ncount: 7\nbuffers:\n"
        "  x: {each: true, bytes: 8, data: {f32: [0, 0, 1, 10, 2, 20, 3, 30, 4, 40, 5, 50, 6, "
        "60]}}\n"
        "  y: {each: true, bytes: 8, writes: [{instance: 0, offset: 0, data: {f32: [100]}},\n"
        "      {instance: 5, offset: 4, data: {f32: [500]}}]}\n"
        "  z: {bytes: 300}\n"
        "steps: [{program: saxpy, args: [{each: {f32: [0, 1, 2, 3, 4, 5, 6]}}, x, y, {u32: 2}], "
        "elements: 2%s}]\noutputs: %s\n",
        step, outputs);
    make_array(yaml);
}

static void run_slice(uint32_t most) {
    struct array_slice slice = array_take(array, most);
    struct job *job = &batch.slice;
    array_make_slice(array, slice, clock_ns(), 1, job);
    OK(tenancy_enter(context.tenancy, array->tenant, lease.stream, &err));
    OK(batch_begin(&batch, &job, 1, 0, false, 1 + slice.first, &err));
    OK(batch_finish(&batch, &err));
    batch_recycle(&batch);
}

static void run_all(uint32_t most) {
    bool is_last = false;
    array_reset(array);
    memset(array->room.data, 0xee, array->room.bytes);
    while (array_has_more(array)) {
        assert_false(is_last);
        run_slice(most);
        is_last = array_merge(array, &batch.slice);
    }
    assert_true(is_last);
    assert_int_equal(array->outcome.code, ERR_OK);
}

static void assert_saxpy(void) {
    float got[2 * INSTANCES];
    assert_int_equal(array->outcome.outputs[0].size, sizeof got);
    memcpy(got, array->outcome.outputs[0].data, sizeof got);
    for (int i = 0; i < INSTANCES; i++) {
        assert_true(got[2 * i] == (float)(i * i + (i == 0 ? 100 : 0)));
        assert_true(got[2 * i + 1] == (float)(10 * i * i + (i == 5 ? 500 : 0)));
    }
}

TEST(any_cut_of_an_array_gives_the_same_bytes) {
    make_saxpy("", "[{buffer: y}]");
    for (uint32_t most = 1; most <= INSTANCES + 1; most++) {
        run_all(most);
        assert_saxpy();
        const struct job_telemetry *telemetry = &array->outcome.telemetry;
        uint32_t slices = (INSTANCES + most - 1) / most;
        assert_int_equal(telemetry->instances, INSTANCES);
        assert_int_equal(telemetry->slices, slices);
        assert_int_equal(telemetry->kernel_launches, INSTANCES);
        assert_int_equal(telemetry->h2d_bytes, 8 * INSTANCES + 8);
        assert_int_equal(telemetry->d2h_bytes, 8 * INSTANCES);
        assert_int_equal(telemetry->param_bytes, 24 * INSTANCES);
        assert_int_equal(telemetry->batch.launches, slices);
        assert_int_equal(telemetry->batch.sync_points, slices);
        assert_int_equal(telemetry->batch.readbacks, slices);
        assert_int_equal(telemetry->batch.uploads, slices);
    }
}

TEST(a_part_of_each_instance_is_read) {
    make_saxpy("", "[{buffer: y, offset: 4, bytes: 4, as: second}]");
    run_all(3);
    float got[INSTANCES];
    assert_int_equal(array->outcome.outputs[0].size, sizeof got);
    memcpy(got, array->outcome.outputs[0].data, sizeof got);
    for (int i = 0; i < INSTANCES; i++)
        assert_true(got[i] == (float)(10 * i * i + (i == 5 ? 500 : 0)));
}

/* y = k x with two floats: x is {1, 10} for all, k is i. Without data of their own, slices take the
 * 256 bytes of x, and as many for the table of those with several instances. */
static void make_products(void) {
    make_array("id: a\ncount: 7\nbuffers: {x: {data: {f32: [1, 10]}}, y: {each: true, bytes: 8}}\n"
               "steps: [{program: saxpy, args: [{each: {f32: [0, 1, 2, 3, 4, 5, 6]}}, x, y, {u32: "
               "2}], elements: 2}]\noutputs: [{buffer: y}]\n");
}

static void assert_products(void) {
    float got[2 * INSTANCES];
    memcpy(got, array->outcome.outputs[0].data, sizeof got);
    for (int i = 0; i < INSTANCES; i++) {
        assert_true(got[2 * i] == (float)i);
        assert_true(got[2 * i + 1] == (float)(10 * i));
    }
}

/* Runs slices of two instances, and between the first and the others what the test says. Returns
 * the bytes that went up for them. */
static uint64_t run_pairs(void (*between)(void)) {
    array_reset(array);
    for (int i = 0; array_has_more(array); i++) {
        run_slice(2);
        (void)array_merge(array, &batch.slice);
        if (i == 0 && between != NULL) between();
    }
    assert_int_equal(array->outcome.code, ERR_OK);
    assert_products();
    return array->outcome.telemetry.batch.h2d_bytes;
}

TEST(what_all_instances_share_goes_up_once) {
    make_products();
    assert_int_equal(run_pairs(NULL), 256 + 3 * 256);
    assert_int_equal(array->outcome.telemetry.batch.uploads, 3);
    run_all(1);
    assert_products();
    assert_int_equal(array->outcome.telemetry.batch.h2d_bytes, 256);
}

static void run_other_job(void) {
    struct job *other = create_ready_job(
        "id: b\nbuffers: {x: {data: {f32: [7, 7]}}, y: {bytes: 8}}\nsteps: [{program: saxpy, args: "
        "[{f32: 1}, x, y, {u32: 2}], elements: 2}]\noutputs: [{buffer: y}]\n");
    OK(batch_begin(&batch, &other, 1, 0, false, 99, &err));
    OK(batch_finish(&batch, &err));
    batch_recycle(&batch);
    destroy_ready_job(other);
}

/* As if the slab's inputs were those of an earlier try. */
static void begin_again(void) {
    struct job before = *array;
    array_reset(array);
    before.progress.run = array->progress.run;
    *array = before;
}

static void let_another_tenant_in(void) {
    OK(tenancy_enter(context.tenancy, slice_of_text("other"), lease.stream, &err));
    tenancy_leave(context.tenancy);
}

TEST(what_all_instances_share_goes_up_again_if_the_slab_has_it_no_more) {
    make_products();
    assert_int_equal(run_pairs(run_other_job), 2 * 256 + 3 * 256);
    assert_int_equal(run_pairs(begin_again), 2 * 256 + 3 * 256);
    batch_fini(&batch);
    OK(tenancy_create(&rig.device, rig.leases, &context.tenancy, &err));
    OK(batch_init(&batch, &context, 0, &err));
    assert_int_equal(run_pairs(let_another_tenant_in), 2 * 256 + 3 * 256);
    batch_fini(&batch);
    tenancy_destroy(context.tenancy);
    context.tenancy = NULL;
    OK(batch_init(&batch, &context, 0, &err));
}

/* A batch that reads nothing back has no memory for it. */
TEST(an_output_without_bytes_is_assembled_from_nowhere) {
    struct job slice;
    make_saxpy("", "[{buffer: y}, {buffer: y, offset: 8, bytes: 0, as: none}]");
    array_make_slice(array, array_take(array, INSTANCES), clock_ns(), 1, &slice);
    OK(array_assemble(&slice, 1, NULL, 8, &err));
    OK(array_assemble(&slice, 1, NULL, 0, &err));
    assert_int_equal(array->found[1].size, 0);
}

/* Blocks that wait for each other must be those of one launch. */
TEST(instances_that_share_no_launches_have_their_own) {
    make_saxpy("", "[{buffer: y}]");
    struct plan_launch *launch = (struct plan_launch *)(uintptr_t)&array->plan->launches[0];
    launch->cooperative = true;
    for (uint32_t most = 1; most <= INSTANCES; most += 3) {
        run_all(most);
        assert_saxpy();
        assert_int_equal(array->outcome.telemetry.batch.launches, INSTANCES);
        assert_int_equal(array->outcome.telemetry.batch.coalesced_launches, 0);
    }
}

TEST(a_timed_array_shares_launches_and_sums_the_time_of_its_slices) {
    make_saxpy("", "[{buffer: y}]\ntiming: true");
    run_all(4);
    assert_saxpy();
    assert_true(array->outcome.telemetry.is_timed);
    assert_int_equal(array->outcome.telemetry.batch.launches, 2);
    assert_int_equal(array->outcome.telemetry.batch.coalesced_launches, 2);
}

TEST(a_guarded_array_gives_the_same_bytes) {
    make_saxpy("", "[{buffer: y}]");
    array_reset(array);
    struct job *job = &batch.slice;
    array_make_slice(array, array_take(array, INSTANCES), clock_ns(), 1, job);
    OK(batch_begin(&batch, &job, 1, 0, true, 1, &err));
    OK(batch_finish(&batch, &err));
    batch_recycle(&batch);
    assert_true(array_merge(array, job));
    assert_saxpy();
}

TEST(an_array_has_waited_until_its_first_slice_began_whichever_ends_first) {
    struct job first, second;
    make_saxpy("", "[{buffer: y}]");
    array_make_slice(array, array_take(array, 4), clock_ns(), 1, &first);
    array_make_slice(array, array_take(array, 4), clock_ns(), 1, &second);
    first.outcome.telemetry =
        (struct job_telemetry){.batch.id = 1, .slices = 1, .queue_ns = 10, .wait_ns = 1000};
    second.outcome.telemetry =
        (struct job_telemetry){.batch.id = 2, .slices = 1, .queue_ns = 500, .wait_ns = 20};
    assert_false(array_merge(array, &second));
    assert_true(array_merge(array, &first));
    assert_int_equal(array->outcome.telemetry.queue_ns, 10);
    assert_int_equal(array->outcome.telemetry.wait_ns, 1020);
}

TEST(after_an_error_no_more_slices_are_taken_and_the_last_one_ends_the_array) {
    struct job first, second;
    make_saxpy("", "[{buffer: y}]");
    array_make_slice(array, array_take(array, 2), clock_ns(), 1, &first);
    array_make_slice(array, array_take(array, 2), clock_ns(), 1, &second);
    assert_true(array_has_more(array));
    first.outcome.code =
        error_set(&first.outcome.err, ERR_CANCELLED, 0, "none", "it was cancelled");
    assert_false(array_merge(array, &first));
    assert_false(array_has_more(array));
    assert_true(array_merge(array, &second));
    assert_int_equal(array->outcome.code, ERR_CANCELLED);
    assert_string_equal(array->outcome.err.message, "it was cancelled");
}

/* The next slice of one instance, and the milliseconds that its array has left then. */
static uint32_t take_slice(struct job *slice, uint64_t now_ms) {
    array_make_slice(array, array_take(array, 1), now_ms * 1000000, 1, slice);
    return slice->timeout_ms;
}

TEST(the_time_of_an_array_runs_while_its_slices_do) {
    struct job first, second, third;
    make_saxpy("", "[{buffer: y}]");
    array->timeout_ms = 100;
    assert_int_equal(take_slice(&first, 1000), 100);
    array_run_slice(&first, 2000000000); /* it stood behind another batch until then */
    array_stop_slice(&first, 2030000000);
    assert_false(array_merge(array, &first));
    assert_int_equal(take_slice(&second, 9000), 70); /* others had the device */
    array_run_slice(&second, 9000000000);
    assert_int_equal(take_slice(&third, 9060), 10);
    OK(array_check_time(&third, &err));
    array_run_slice(&third, 9060000000);
    array_stop_slice(&second, 9065000000);
    assert_false(array_merge(array, &second));
    assert_int_equal(take_slice(&second, 9065), 0);
    assert_int_equal(array_check_time(&second, &err), ERR_GPU_HANG);
    assert_non_null(strstr(err.message, "from 3 of 7 on"));
}

TEST(a_slice_that_shares_the_device_may_take_as_much_longer) {
    struct job slice;
    make_saxpy("", "[{buffer: y}]");
    array->timeout_ms = 100;
    array->progress.used_ns = 70 * 1000000;
    array_make_slice(array, array_take(array, 1), 1, 3, &slice);
    assert_int_equal(slice.timeout_ms, 90);
    array_make_slice(array, array_take(array, 1), 1, 4, &slice);
    assert_int_equal(slice.timeout_ms, 100); /* no longer than the array */
}

TEST(a_slice_that_never_ran_takes_no_time) {
    struct job slice;
    make_saxpy("", "[{buffer: y}]");
    array->timeout_ms = 100;
    (void)take_slice(&slice, 1000);
    array_stop_slice(&slice, 2000000000);
    assert_false(array_merge(array, &slice));
    assert_int_equal(take_slice(&slice, 3000), 100);
}

TEST(a_slice_of_as_many_instances_as_fit_a_slab_fits_it) {
    make_saxpy("", "[{buffer: y}]");
    for (uint64_t bytes = 0; bytes < 20000; bytes += 100) {
        uint32_t count = extent_instances(array->plan, bytes);
        uint64_t taken = 0;
        for (int group = 0; group < GROUP_COUNT; group++)
            taken += extent_group_bytes(array->plan, (enum plan_group)group, count);
        assert_true(count == 1 || taken + count * 4 * 8 <= bytes);
    }
}

#define A(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        A(any_cut_of_an_array_gives_the_same_bytes),
        A(what_all_instances_share_goes_up_once),
        A(what_all_instances_share_goes_up_again_if_the_slab_has_it_no_more),
        A(a_part_of_each_instance_is_read),
        A(an_output_without_bytes_is_assembled_from_nowhere),
        A(instances_that_share_no_launches_have_their_own),
        A(a_timed_array_shares_launches_and_sums_the_time_of_its_slices),
        A(a_guarded_array_gives_the_same_bytes),
        A(an_array_has_waited_until_its_first_slice_began_whichever_ends_first),
        A(after_an_error_no_more_slices_are_taken_and_the_last_one_ends_the_array),
        A(the_time_of_an_array_runs_while_its_slices_do),
        A(a_slice_that_shares_the_device_may_take_as_much_longer),
        A(a_slice_that_never_ran_takes_no_time),
        A(a_slice_of_as_many_instances_as_fit_a_slab_fits_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
