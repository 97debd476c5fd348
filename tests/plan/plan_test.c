/* Proves: buffers of no bytes; alignment and padding; checks before any work of the GPU;
 * iterations; repeat; residents. */
#include "plan/planner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/extent.h"
#include "support/jobs.h"
#include "testing.h"

static struct registry *registry;

static struct plan_limits generous_limits(void) {
    return (struct plan_limits){.device = {.architecture = 80,
                                    .memory_bytes = 1ull << 34,
                                    .block_threads_max = 1024,
                                    .block_max = {1024, 1024, 64},
                                    .grid_max = {2147483647, 65535, 65535},
                                    .param_bytes_max = 4096,
                                    .shared_bytes_max = 232448,
                                    .cooperative = true},
        .job_bytes_max = 1ull << 30,
        .array_bytes_max = 1ull << 30,
        .result_bytes_max = 1000000,
        .has_key_order = true};
}

/* A saxpy job; `buffers`, `step` and `outputs` replace the usual ones where given. */
static struct job *saxpy_job(const char *buffers, const char *step, const char *outputs) {
    char yaml[4096];
    snprintf(yaml, sizeof yaml, "id: j\nbuffers: %s\nsteps: [%s]\noutputs: %s\n",
        buffers != NULL ? buffers : "{x: {data: {f32: [1, 2, 3]}}, y: {data: {f32: [4, 5, 6]}}}",
        step != NULL ? step : "{program: saxpy, args: [{f32: 2}, x, y, {u32: 0}], elements: 3}",
        outputs != NULL ? outputs : "[{buffer: y}]");
    return test_job(yaml);
}

static const struct plan *plan_valid(struct job *job) {
    struct plan_limits limits = generous_limits();
    struct error err = {0};
    const struct plan *plan = NULL;
    enum err code = plan_job(job, registry, &limits, &plan, &err);
    if (code != ERR_OK) print_message("%s\n", err.message);
    assert_int_equal(code, ERR_OK);
    return plan;
}

/* The error must name what is wrong, and say how to fix it. */
static void assert_refused(
    struct job *job, const struct plan_limits *limits, enum err code, const char *part) {
    struct error err = {0};
    const struct plan *plan = NULL;
    assert_int_equal(plan_job(job, registry, limits, &plan, &err), code);
    if (strstr(err.message, part) == NULL) print_message("%s\n", err.message);
    assert_non_null(strstr(err.message, part));
    assert_true(err.fix[0] != 0);
    assert_null(plan);
    job_destroy(job);
}

static void assert_step_refused(const char *step, enum err code, const char *part) {
    struct plan_limits limits = generous_limits();
    assert_refused(saxpy_job(NULL, step, NULL), &limits, code, part);
}

TEST(plan_puts_each_buffer_into_the_group_of_its_traffic) {
    struct job *job = saxpy_job("{x: {data: {f32: [1]}}, y: {data: {f32: [1]}}, "
                                "z: {bytes: 8}, s: {bytes: 16}}",
        NULL, "[{buffer: y}, {buffer: z}]");
    const struct plan *plan = plan_valid(job);
    assert_int_equal(plan->buffers[0].group, GROUP_INPUT);
    assert_int_equal(plan->buffers[1].group, GROUP_INOUT);
    assert_int_equal(plan->buffers[2].group, GROUP_OUTPUT);
    assert_int_equal(plan->buffers[3].group, GROUP_SCRATCH);
    job_destroy(job);
}

TEST(plan_starts_buffers_of_a_group_at_multiples_of_256) {
    struct job *job = saxpy_job(
        "{x: {data: {f32: [1]}}, y: {data: {f32: [1]}}, z: {data: {f32: [1]}}}", NULL, NULL);
    const struct plan *plan = plan_valid(job);
    assert_int_equal(plan->buffers[0].offset, 0);
    assert_int_equal(plan->buffers[2].offset, 256);
    assert_int_equal(plan->group_bytes[GROUP_INPUT], 512);
    job_destroy(job);
}

/* ---- arrays ---- */

/* Three instances of saxpy; the plan's buffers are x, y and what follows. */
static struct job *array_job(const char *buffers, const char *args) {
    char yaml[2048];
    snprintf(yaml, sizeof yaml,
        "id: j\ncount: 3\nbuffers: {%s}\nsteps: [{program: saxpy, args: [%s], elements: 3}]\n"
        "outputs: [{buffer: y}]\n",
        buffers, args);
    return test_job(yaml);
}

#define EACH_X "x: {each: true, bytes: 12}"
#define EACH_Y "y: {each: true, bytes: 12, data: {f32: [1, 2, 3, 4, 5, 6, 7, 8, 9]}}"
#define ARGS "{f32: 2}, x, y, {u32: 3}"

TEST(plan_of_an_array_counts_all_instances_and_lays_none_out) {
    struct job *job = array_job(EACH_X ", " EACH_Y, ARGS);
    const struct plan *plan = plan_valid(job);
    assert_int_equal(plan->buffers[0].group, GROUP_SCRATCH);
    assert_int_equal(plan->buffers[1].group, GROUP_INOUT);
    assert_int_equal(plan->buffers[1].stride, 16);
    for (int group = 0; group < GROUP_COUNT; group++) assert_int_equal(plan->group_bytes[group], 0);
    assert_int_equal(plan->h2d_bytes, 36);
    assert_int_equal(plan->d2h_bytes, 36);
    assert_int_equal(plan->kernel_launches, 3);
    assert_int_equal(plan->param_bytes, 3 * 24);
    assert_false(plan->is_streamed);
    job_destroy(job);
}

static void assert_array_refused(
    const char *buffers, const char *args, enum err code, const char *part) {
    struct plan_limits limits = generous_limits();
    assert_refused(array_job(buffers, args), &limits, code, part);
}

TEST(plan_refuses_an_array_whose_instances_would_write_over_each_other) {
    assert_array_refused(EACH_X ", " EACH_Y ", z: {bytes: 12}", "{f32: 2}, x, z, {u32: 3}",
        ERR_BAD_ARGUMENT, "buffer 'z' is shared by all instances");
}

TEST(plan_keeps_the_parts_of_a_resident_side_by_side_and_reads_whole_ones_back) {
    struct job *job = test_job(
        "id: j\ncount: 3\nbuffers: {x: {bytes: 16}, t: {bytes: 16, each: true, resident: r, "
        "init: {fill: 1}, writes: [{instance: 1, offset: 4, data: {u8: [9]}}]}}\n"
        "steps: [{program: saxpy, args: [{f32: 2}, x, t, {u32: 4}], elements: 4}]\n"
        "outputs: [{buffer: t, offset: 8, bytes: 4}]\n");
    const struct plan *plan = plan_valid(job);
    uint64_t offset;
    assert_int_equal(plan->buffers[1].group, GROUP_NONE);
    assert_int_equal(plan->buffers[1].stride, 16);
    assert_int_equal(plan->h2d_bytes, 1);
    assert_int_equal(plan->d2h_bytes, 3 * 4);
    const struct output_extent whole = extent_output(plan, 0, 2);
    assert_int_equal(whole.offset, 0);
    assert_int_equal(whole.bytes, 32);
    assert_int_equal(extent_output_bytes(plan, 2), PLAN_ALIGNMENT);
    job->plan = plan;
    job->array = job; /* as its slice is */
    job->slice = (struct array_slice){.first = 1, .count = 2};
    assert_int_equal(extent_write(job, &plan->writes[0], &offset).size, 1);
    assert_int_equal(offset, 4);
    job->slice.first = 2;
    assert_int_equal(extent_write(job, &plan->writes[0], &offset).size, 0);
    job_destroy(job);
}

TEST(plan_refuses_residents_of_an_array_that_no_slice_could_keep) {
    assert_array_refused(EACH_X ", y: {each: true, bytes: 12, resident: r}", ARGS, ERR_BAD_ARGUMENT,
        "have a multiple of 16");
    assert_array_refused("x: {bytes: 12, resident: r, init: {fill: 0}}, " EACH_Y, ARGS,
        ERR_BAD_ARGUMENT, "which an array can only read");
}

TEST(plan_checks_the_arguments_of_each_instance) {
    assert_array_refused(EACH_X ", " EACH_Y, "{f32: 2}, x, y, {each: {u32: [3, 1, 4]}}",
        ERR_BAD_ARGUMENT, "argument 'n' is 4");
    struct job *job = array_job(EACH_X ", " EACH_Y, "{f32: 2}, x, y, {each: {u32: [3, 0, 2]}}");
    (void)plan_valid(job);
    job_destroy(job);
}

TEST(plan_bounds_the_bytes_of_one_instance_and_the_outputs_of_all) {
    struct plan_limits limits = generous_limits();
    limits.job_bytes_max = 600;
    assert_refused(array_job(EACH_X ", " EACH_Y ", z: {each: true, bytes: 500}", ARGS), &limits,
        ERR_TOO_LARGE, "buffers up to 'z' (500 bytes)");
    limits = generous_limits();
    limits.array_bytes_max = 35;
    assert_refused(array_job(EACH_X ", " EACH_Y, ARGS), &limits, ERR_RESULT_TOO_LARGE,
        "outputs up to 'y' take more than the 35 bytes");
    limits = generous_limits();
    limits.result_bytes_max = 2048 + 110;
    assert_refused(array_job(EACH_X ", " EACH_Y, ARGS), &limits, ERR_RESULT_TOO_LARGE,
        "the outputs, and what else");
}

/* With a limit of as many bytes as it names, the job runs; with one less it is refused. */
TEST(plan_says_how_many_bytes_a_result_may_need) {
    struct plan_limits limits = generous_limits();
    struct error err;
    const struct plan *plan = NULL;
    limits.result_bytes_max = 2000;
    struct job *job = array_job(EACH_X ", " EACH_Y, ARGS);
    assert_int_equal(plan_job(job, registry, &limits, &plan, &err), ERR_RESULT_TOO_LARGE);
    const char *number = strstr(err.message, "up to ");
    assert_non_null(number);
    uint64_t needed = strtoull(number + strlen("up to "), NULL, 10);
    assert_non_null(strstr(err.message, "the 2000 bytes of limits.result_bytes"));
    limits.result_bytes_max = needed - 1;
    assert_int_equal(plan_job(job, registry, &limits, &plan, &err), ERR_RESULT_TOO_LARGE);
    limits.result_bytes_max = needed;
    assert_int_equal(plan_job(job, registry, &limits, &plan, &err), ERR_OK);
    job_destroy(job);
}

static bool is_spooled(struct plan_limits limits, struct job *job) {
    struct error err;
    const struct plan *plan = NULL;
    assert_int_equal(plan_job(job, registry, &limits, &plan, &err), ERR_OK);
    bool ret = plan->outputs[0].is_spooled;
    job_destroy(job);
    return ret;
}

TEST(plan_spools_outputs_of_arrays_that_go_to_the_blob_store) {
    struct plan_limits limits = generous_limits();
    limits.blob_bytes_max = 1; /* it does not bound what is spooled */
    assert_false(is_spooled(limits, array_job(EACH_X ", " EACH_Y, ARGS)));
    limits.inline_bytes_max = 35;
    assert_true(is_spooled(limits, array_job(EACH_X ", " EACH_Y, ARGS)));
    limits.inline_bytes_max = 36;
    assert_false(is_spooled(limits, array_job(EACH_X ", " EACH_Y, ARGS)));
}

static bool is_streamed(const char *buffers, const char *step, const char *outputs) {
    struct job *job = saxpy_job(buffers, step, outputs);
    bool ret = plan_valid(job)->is_streamed;
    job_destroy(job);
    return ret;
}

TEST(plan_streams_what_one_launch_touches_once) {
    assert_true(is_streamed(NULL, NULL, NULL));
    assert_true(is_streamed(NULL, NULL, "[{buffer: x}, {buffer: y, offset: 4}]"));
    assert_true(is_streamed("{x: {bytes: 0}, y: {bytes: 12, fill: 3}}", NULL, "[{buffer: x}]"));
    assert_false(is_streamed(NULL,
        "{program: saxpy, args: [{f32: 2}, x, y, {u32: 3}], elements: 3, iterations: 2}", NULL));
    assert_false(
        is_streamed(NULL, "{program: saxpy, args: [{f32: 2}, y, y, {u32: 3}], elements: 3}", NULL));
    assert_false(
        is_streamed(NULL, "{program: reduce_sum, args: [x, y, {u32: 3}], elements: 3}", NULL));
    assert_true(is_streamed("{x: {bytes: 524288}, y: {bytes: 524288}}", NULL, NULL));
    assert_false(is_streamed("{x: {bytes: 524288}, y: {bytes: 524292}}", NULL, NULL));
    assert_false(is_streamed("{x: {bytes: 12, resident: r}, y: {bytes: 12}}", NULL, NULL));
}

TEST(plan_gives_empty_buffers_no_place) {
    struct job *job =
        saxpy_job("{x: {bytes: 0}, y: {data: {f32: [1]}}}", NULL, "[{buffer: x}, {buffer: y}]");
    const struct plan *plan = plan_valid(job);
    assert_int_equal(plan->buffers[0].group, GROUP_NONE);
    assert_false(plan->outputs[0].is_unpacked);
    job_destroy(job);
}

TEST(plan_reads_a_small_part_of_a_large_buffer_alone) {
    struct job *job = saxpy_job("{x: {data: {f32: [1]}}, y: {bytes: 1048576}}", NULL,
        "[{buffer: y, offset: 1024, bytes: 16}]");
    const struct plan *plan = plan_valid(job);
    assert_int_equal(plan->buffers[1].group, GROUP_SCRATCH);
    assert_true(plan->outputs[0].is_unpacked);
    assert_int_equal(plan->d2h_bytes, 16);
    job_destroy(job);
}

TEST(plan_sends_writes_into_a_filled_buffer_alone_and_merges_those_into_data) {
    struct job *job =
        saxpy_job("{x: {data: {f32: [1, 2]}, writes: [{offset: 4, data: {f32: [9]}}]},"
                  " y: {bytes: 12, fill: 7, writes: [{offset: 0, data: {f32: [3]}}]}}",
            NULL, NULL);
    const struct plan *plan = plan_valid(job);
    assert_int_equal(plan->write_count, 1);
    assert_int_equal(plan->writes[0].buffer, 1);
    assert_int_equal(plan->fill_count, 1);
    assert_int_equal(plan->fills[0].value, 7);
    assert_int_equal(plan->h2d_bytes, 8 + 4 + 4);
    job_destroy(job);
}

TEST(plan_turns_elements_into_blocks) {
    struct job *job =
        saxpy_job(NULL, "{program: saxpy, args: [{f32: 2}, x, y, {u32: 3}], elements: 257}", NULL);
    const struct plan *plan = plan_valid(job);
    assert_int_equal(plan->launches[0].grid[0], 2);
    assert_int_equal(plan->launches[0].grid[1], 1);
    assert_int_equal(plan->launches[0].block[0], 256);
    job_destroy(job);
}

TEST(plan_counts_launches_of_repeat_and_iterations) {
    struct job *job = test_job("id: j\nrepeat: 3\nbuffers: {x: {bytes: 4}, y: {bytes: 4}}\n"
                               "steps: [{program: saxpy, args: [{f32: 2}, x, y, {u32: 1}], "
                               "elements: 1, iterations: 5}]\noutputs: []\n");
    const struct plan *plan = plan_valid(job);
    assert_int_equal(plan->kernel_launches, 15);
    assert_int_equal(plan->param_bytes, 15 * (4 + 8 + 8 + 4));
    job_destroy(job);
}

TEST(plan_refuses_unknown_programs_and_entries) {
    assert_step_refused("{program: nope, args: [], grid: [1]}", ERR_UNKNOWN_PROGRAM, "'nope'");
    assert_step_refused(
        "{program: saxpy, entry: nope, args: [], grid: [1]}", ERR_UNKNOWN_ENTRY, "'nope'");
    assert_step_refused("{program: \"saxpy@sha256:"
                        "0000000000000000000000000000000000000000000000000000000000000000\", "
                        "args: [{f32: 2}, x, y, {u32: 3}], grid: [1]}",
        ERR_UNKNOWN_PROGRAM, "sha256:0000");
}

static void assert_fix(const char *step, const char *part) {
    struct plan_limits limits = generous_limits();
    struct job *job = saxpy_job(NULL, step, NULL);
    struct error err = {0};
    const struct plan *plan = NULL;
    assert_int_not_equal(plan_job(job, registry, &limits, &plan, &err), ERR_OK);
    if (strstr(err.fix, part) == NULL) fail_msg("the fix of %s is: %s", step, err.fix);
    job_destroy(job);
}

TEST(plan_offers_the_name_that_a_mistyped_one_was_meant_to_be) {
    assert_fix("{program: saxpyy, args: [], grid: [1]}", "did you mean 'saxpy'?");
    assert_fix("{program: axpy, args: [], grid: [1]}", "did you mean 'saxpy'?");
    assert_fix("{program: saxpy, entry: saxpi, args: [], grid: [1]}", "did you mean 'saxpy'?");
    assert_fix("{program: nope, args: [], grid: [1]}", "install it in programs.dir");
}

TEST(plan_refuses_arguments_that_the_manifest_does_not_declare) {
    assert_step_refused(
        "{program: saxpy, args: [{f32: 2}, x, y], grid: [1]}", ERR_BAD_ARGUMENT, "takes 4");
    assert_step_refused("{program: saxpy, args: [{f32: 2}, x, y, {i32: 3}], grid: [1]}",
        ERR_BAD_ARGUMENT, "'n' takes u32");
    assert_step_refused("{program: saxpy, args: [{f32: 2}, x, {f32: 1}, {u32: 3}], grid: [1]}",
        ERR_BAD_ARGUMENT, "'y' takes a buffer");
}

TEST(plan_refuses_buffers_of_another_type_or_of_broken_elements) {
    struct plan_limits limits = generous_limits();
    assert_refused(
        saxpy_job("{x: {data: {f32: [1]}, datatype: INT32}, y: {data: {f32: [1]}}}", NULL, NULL),
        &limits, ERR_BAD_ARGUMENT, "INT32");
    assert_refused(saxpy_job("{x: {bytes: 6}, y: {data: {f32: [1]}}}", NULL, NULL), &limits,
        ERR_BAD_ARGUMENT, "6 bytes");
}

TEST(plan_refuses_to_write_a_static) {
    struct plan_limits limits = generous_limits();
    assert_refused(saxpy_job("{x: {bytes: 4}, y: {bytes: 4, static: \"sha256:"
                             "0000000000000000000000000000000000000000000000000000000000000000\"}}",
                       NULL, NULL),
        &limits, ERR_BAD_ARGUMENT, "static");
}

TEST(plan_refuses_launches_beyond_the_device) {
    assert_step_refused(
        "{program: saxpy, args: [{f32: 2}, x, y, {u32: 3}], grid: [1], block: [2048]}",
        ERR_BAD_LAUNCH, "1024");
    assert_step_refused(
        "{program: saxpy, args: [{f32: 2}, x, y, {u32: 3}], grid: [1], block: [64, 32]}",
        ERR_BAD_LAUNCH, "2048 threads");
    assert_step_refused("{program: saxpy, args: [{f32: 2}, x, y, {u32: 3}], grid: [1, 70000]}",
        ERR_BAD_LAUNCH, "65535");
    assert_step_refused(
        "{program: saxpy, args: [{f32: 2}, x, y, {u32: 3}], grid: [1], shared_bytes: 999999}",
        ERR_BAD_LAUNCH, "232448");
}

/* logreg_adam takes from 16384 to 114688 bytes. */
static void assert_shared_bytes(const char *more, uint32_t of_device, uint32_t expected) {
    char yaml[1024];
    snprintf(yaml, sizeof yaml,
        "id: j\nbuffers: {x: {static: 'sha256:%064d', bytes: 4}, w: {bytes: 8}, m: {bytes: 24}}\n"
        "steps: [{program: logreg_adam, args: [x, x, w, m, {f32: 1}, {f32: 1}, {u32: 1}, {u32: 1},"
        " {u32: 1}], grid: [1]%s}]\noutputs: []\n",
        0, more);
    struct plan_limits limits = generous_limits();
    limits.device.shared_bytes_max = of_device;
    struct job *job = test_job(yaml);
    if (expected == 0) {
        assert_refused(job, &limits, ERR_BAD_LAUNCH, "the device allows");
        return;
    }
    struct error err = {0};
    const struct plan *plan = NULL;
    assert_int_equal(plan_job(job, registry, &limits, &plan, &err), ERR_OK);
    assert_int_equal(plan->launches[0].shared_bytes, expected);
    job_destroy(job);
}

TEST(an_entry_with_a_range_gets_as_much_shared_memory_as_the_device_has) {
    assert_shared_bytes("", 232448, 114688);
    assert_shared_bytes("", 114688, 114688);
    assert_shared_bytes("", 65536, 65536);
    assert_shared_bytes("", 16384, 16384);
    assert_shared_bytes("", 16383, 0);
    assert_shared_bytes(", shared_bytes: 20000", 65536, 20000);
    assert_shared_bytes(", shared_bytes: 70000", 65536, 0);
}

TEST(plan_refuses_cooperative_launches_where_the_device_has_none) {
    struct plan_limits limits = generous_limits();
    limits.device.cooperative = false;
    assert_refused(
        saxpy_job(NULL,
            "{program: saxpy, args: [{f32: 2}, x, y, {u32: 3}], grid: [1], cooperative: true}",
            NULL),
        &limits, ERR_UNSUPPORTED, "cooperatively");
}

TEST(plan_refuses_results_that_could_not_be_carried_back) {
    struct plan_limits limits = generous_limits();
    assert_refused(saxpy_job("{x: {bytes: 4}, y: {bytes: 2000000}}", NULL, NULL), &limits,
        ERR_RESULT_TOO_LARGE, "1000000");
}

TEST(plan_counts_outputs_over_the_inline_maximum_as_names) {
    static const char buffers[] = "{x: {bytes: 4}, y: {bytes: 2000000}}";
    struct plan_limits limits = generous_limits();
    limits.inline_bytes_max = 1999999;
    limits.blob_bytes_max = 2000000;
    struct error err = {0};
    const struct plan *plan = NULL;
    struct job *job = saxpy_job(buffers, NULL, NULL);
    assert_int_equal(plan_job(job, registry, &limits, &plan, &err), ERR_OK);
    job_destroy(job);
    limits.blob_bytes_max = 1999999; /* the blob's own limit */
    assert_refused(saxpy_job(buffers, NULL, NULL), &limits, ERR_RESULT_TOO_LARGE, "1999999");
    limits.blob_bytes_max = limits.inline_bytes_max = 2000000; /* not over: it is in the result */
    assert_refused(saxpy_job(buffers, NULL, NULL), &limits, ERR_RESULT_TOO_LARGE, "1000000");
}

TEST(plan_refuses_outputs_that_take_more_host_memory_than_a_job_may) {
    struct plan_limits limits = generous_limits();
    limits.inline_bytes_max = 1;
    limits.blob_bytes_max = 1ull << 40;
    limits.job_bytes_max = 3000000;
    assert_refused(saxpy_job("{x: {bytes: 4}, y: {bytes: 2000000}}", NULL,
                       "[{buffer: y, as: a}, {buffer: y, as: b}]"),
        &limits, ERR_RESULT_TOO_LARGE, "3000000");
}

TEST(plan_refuses_buffers_whose_sum_is_over_the_limit_without_wrapping) {
    struct plan_limits limits = generous_limits();
    assert_refused(saxpy_job("{x: {bytes: 1099511627776}, y: {bytes: 4}}", NULL, NULL), &limits,
        ERR_TOO_LARGE, "1099511627776");
    limits.job_bytes_max = UINT64_MAX;
    struct job *job = saxpy_job("{x: {bytes: 1099511627776}, y: {bytes: 4}}", NULL, NULL);
    ((struct job_buffer *)(uintptr_t)job->buffers)[0].bytes = UINT64_MAX - 3;
    assert_refused(job, &limits, ERR_TOO_LARGE, "18446744073709551612");
}

TEST(plan_gives_residents_no_place_and_sends_start_value_and_writes_alone) {
    struct job *job = saxpy_job("{x: {bytes: 12, resident: a, init: {fill: 0}},"
                                " y: {bytes: 12, resident: b, init: {data: {f32: [4, 5, 6]}},"
                                " writes: [{offset: 4, data: {f32: [7]}}]}}",
        NULL, "[{buffer: x}, {buffer: y, offset: 4, bytes: 4}]");
    const struct plan *plan = plan_valid(job);
    assert_int_equal(plan->resident_count, 2);
    for (int group = 0; group < GROUP_COUNT; group++) assert_int_equal(plan->group_bytes[group], 0);
    assert_int_equal(plan->fill_count, 1);
    assert_true(plan->fills[0].is_init);
    assert_int_equal(plan->write_count, 2);
    assert_true(plan->writes[0].is_init);
    assert_false(plan->writes[1].is_init);
    assert_int_equal(plan->writes[1].offset, 4);
    assert_int_equal(plan->h2d_bytes, 4); /* the start value comes on top where it is used */
    assert_true(plan->outputs[0].is_unpacked && plan->outputs[1].is_unpacked);
    assert_int_equal(plan->d2h_bytes, 16);
    job_destroy(job);
}

TEST(plan_knows_which_residents_a_job_updates) {
    struct job *job =
        saxpy_job("{x: {bytes: 12, resident: read}, y: {bytes: 12, resident: written},"
                  " z: {bytes: 4, resident: unused},"
                  " w: {bytes: 4, resident: w, writes: [{offset: 0, data: {u8: [1]}}]}}",
            NULL, "[]");
    const struct plan *plan = plan_valid(job);
    for (size_t i = 0; i < job->buffer_count; i++) {
        bool is_update = slice_is_text(job->buffers[i].resident, "written") ||
                         slice_is_text(job->buffers[i].resident, "w");
        assert_int_equal(plan->buffers[i].is_update, is_update);
    }
    job_destroy(job);
}

TEST(plan_refuses_residents_without_key_order_and_twice_in_a_job) {
    struct plan_limits limits = generous_limits();
    assert_refused(
        saxpy_job("{x: {bytes: 12, resident: a}, y: {bytes: 12, resident: a}}", NULL, "[]"),
        &limits, ERR_BAD_ARGUMENT, "same resident");
    limits.has_key_order = false;
    assert_refused(saxpy_job("{x: {bytes: 12, resident: a}, y: {bytes: 12}}", NULL, "[]"), &limits,
        ERR_UNSUPPORTED, "order");
}

static int load_programs(void **state) {
    registry = test_registry();
    return 0;
}

static int unload_programs(void **state) {
    registry_destroy(registry);
    return 0;
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        T(plan_puts_each_buffer_into_the_group_of_its_traffic),
        T(plan_starts_buffers_of_a_group_at_multiples_of_256),
        T(plan_of_an_array_counts_all_instances_and_lays_none_out),
        T(plan_refuses_an_array_whose_instances_would_write_over_each_other),
        T(plan_keeps_the_parts_of_a_resident_side_by_side_and_reads_whole_ones_back),
        T(plan_refuses_residents_of_an_array_that_no_slice_could_keep),
        T(plan_checks_the_arguments_of_each_instance),
        T(plan_bounds_the_bytes_of_one_instance_and_the_outputs_of_all),
        T(plan_says_how_many_bytes_a_result_may_need),
        T(plan_spools_outputs_of_arrays_that_go_to_the_blob_store),
        T(plan_streams_what_one_launch_touches_once),
        T(plan_gives_empty_buffers_no_place),
        T(plan_reads_a_small_part_of_a_large_buffer_alone),
        T(plan_sends_writes_into_a_filled_buffer_alone_and_merges_those_into_data),
        T(plan_turns_elements_into_blocks),
        T(plan_counts_launches_of_repeat_and_iterations),
        T(plan_refuses_unknown_programs_and_entries),
        T(plan_offers_the_name_that_a_mistyped_one_was_meant_to_be),
        T(plan_refuses_arguments_that_the_manifest_does_not_declare),
        T(plan_refuses_buffers_of_another_type_or_of_broken_elements),
        T(plan_refuses_to_write_a_static),
        T(plan_refuses_launches_beyond_the_device),
        T(an_entry_with_a_range_gets_as_much_shared_memory_as_the_device_has),
        T(plan_refuses_cooperative_launches_where_the_device_has_none),
        T(plan_refuses_results_that_could_not_be_carried_back),
        T(plan_counts_outputs_over_the_inline_maximum_as_names),
        T(plan_refuses_outputs_that_take_more_host_memory_than_a_job_may),
        T(plan_refuses_buffers_whose_sum_is_over_the_limit_without_wrapping),
        T(plan_gives_residents_no_place_and_sends_start_value_and_writes_alone),
        T(plan_knows_which_residents_a_job_updates),
        T(plan_refuses_residents_without_key_order_and_twice_in_a_job),
    };
    return cmocka_run_group_tests(tests, load_programs, unload_programs);
}
