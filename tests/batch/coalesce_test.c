/* Coalesced launches: which jobs share one, and where the rows of their arguments stand. */
#include "batch/coalesce.h"

#include <stdio.h>
#include <stdlib.h>

#include "planned.h"

enum { CELL = 8 };

/* y += k over n elements, in that grid. */
static struct batch_item *add(const char *more, const char *grid) {
    char yaml[512];
    snprintf(yaml, sizeof yaml,
        "id: j\n%sbuffers: {x: {data: {u32: [1, 2]}}, y: {data: {u32: [3, 4]}}}\n"
        "steps: [{program: mix, entry: add_u32, args: [y, x, {u32: 7}, {u32: 2}], %s}]\n"
        "outputs: [{buffer: y}]\n",
        more, grid);
    return planned_add(yaml);
}

static struct batch_item *add_narrow(void) {
    return add("", "grid: [1]");
}

static struct batch_item *add_wide(void) {
    return add("", "grid: [4]");
}

static struct batch_item *add_step(const char *step) {
    char yaml[512];
    snprintf(yaml, sizeof yaml,
        "id: j\nbuffers: {y: {bytes: 64}, s: {bytes: 64}, w: {bytes: 4}}\n"
        "steps: [{program: mix, %s}]\noutputs: [{buffer: y}]\n",
        step);
    return planned_add(yaml);
}

/* The lengths of the runs, such as "3 1". */
static void assert_runs(const char *expected) {
    char text[64] = "";
    coalesce_lay_out(&planned->batch);
    for (size_t i = 0; i < planned->batch.count;) {
        struct coalesced_run run = coalesced_run_at(&planned->batch, i);
        assert_int_equal(run.first, i);
        snprintf(
            text + strlen(text), sizeof text - strlen(text), "%s%zu", i > 0 ? " " : "", run.count);
        i += run.count;
    }
    assert_string_equal(text, expected);
}

TEST(neighbours_of_one_signature_share_launches) {
    for (size_t i = 0; i < 3; i++) (void)add_narrow();
    assert_runs("3");
}

TEST(jobs_of_one_signature_that_are_no_neighbours_do_not) {
    (void)add_narrow();
    (void)add_narrow();
    (void)add_wide();
    (void)add_narrow();
    (void)add_wide();
    (void)add_wide();
    assert_runs("2 1 1 2");
}

TEST(what_was_together_in_the_batch_before_is_forgotten) {
    (void)add_narrow();
    (void)add_narrow();
    assert_runs("2");
    planned->items[1].job->timing = true;
    assert_runs("1 1");
    assert_int_equal(planned->batch.table_bytes, 0);
}

TEST(a_timed_job_or_one_that_only_reads_is_launched_alone) {
    for (size_t i = 0; i < 5; i++) (void)add_narrow();
    planned->items[0].job->is_applied = true;
    planned->items[3].job->timing = true;
    assert_runs("1 2 1 1");
}

TEST(a_job_with_a_step_that_has_no_batched_kernel_is_launched_alone) {
    for (size_t i = 0; i < 3; i++) (void)add_narrow();
    planned->items[1].job->kernels[0].kernel = &planned->kernels[1];
    assert_runs("1 1 1");
}

TEST(a_grid_of_more_than_one_dimension_is_launched_alone) {
    (void)add("", "grid: [1, 2]");
    (void)add("", "grid: [1, 2]");
    (void)add("", "grid: [1, 1, 2]");
    (void)add("", "grid: [1, 1, 2]");
    assert_runs("1 1 1 1");
}

TEST(cooperative_launches_are_not_shared) {
    for (size_t i = 0; i < 2; i++)
        (void)add_step("entry: turn, args: [y, s, w, {u32: 16}], grid: [1]");
    assert_runs("1 1");
}

TEST(words_are_shared_through_a_buffer_and_not_by_value) {
    for (size_t i = 0; i < 2; i++)
        (void)add_step("entry: words_in_buffer, args: [y, {u32: 2}, {words: [1, 2, 3, 4]}], "
                       "grid: [1]");
    for (size_t i = 0; i < 2; i++)
        (void)add_step("entry: words_by_value, args: [y, {u32: 2}, {words: [1, 2, 3, 4]}], "
                       "grid: [1]");
    assert_runs("2 1 1");
}

TEST(only_runs_of_several_jobs_have_a_table_and_each_starts_at_a_multiple_of_256) {
    (void)add_wide();
    for (size_t i = 0; i < 2; i++) (void)add_narrow();
    for (size_t i = 0; i < 2; i++) (void)add_wide();
    assert_runs("1 2 2");
    assert_int_equal(coalesced_run_at(&planned->batch, 1).table, 0);
    assert_int_equal(coalesced_run_at(&planned->batch, 3).table, 256);
    assert_int_equal(planned->batch.table_bytes, 512);
}

TEST(a_table_takes_the_next_256_bytes_when_its_rows_fill_the_last_ones) {
    for (size_t i = 0; i < PLANNED_MAX; i++) (void)add_narrow(); /* 8 rows of 32 bytes */
    assert_runs("8");
    assert_int_equal(planned->batch.table_bytes, 256);
    for (size_t i = 0; i < PLANNED_MAX; i++) job_destroy(planned->items[i].job);
    planned->batch.count = 0;
    for (size_t i = 0; i < 5; i++) /* 5 rows of 56 bytes */
        (void)add_step("entry: scalars, args: [y, {u32: 1}, {i32: 2}, {u64: 3}, {i64: 4}, "
                       "{f32: 1}, {f64: 2}], grid: [1]");
    assert_runs("5");
    assert_int_equal(planned->batch.table_bytes, 512);
}

/* --- rows --- */

static uint64_t cell(CUdeviceptr rows, size_t row, size_t count, size_t index) {
    return planned->upload[(rows - planned->batch.origin) / CELL + row * count + index];
}

TEST(a_row_has_the_addresses_and_values_of_its_jobs_arguments) {
    for (size_t i = 0; i < 3; i++) {
        struct batch_item *item = add_narrow();
        item->base[GROUP_INPUT] = 1024 * (i + 1);
        item->base[GROUP_INOUT] = 8192 + 1024 * i;
    }
    planned->items[0].job->kernels[0].kernel = &planned->kernels[1];
    assert_runs("1 2");
    coalesce_stage(&planned->batch);
    struct coalesced_run run = coalesced_run_at(&planned->batch, 1);
    CUdeviceptr rows = coalesced_rows(&planned->batch, &run, 0);
    assert_int_equal(rows, planned->batch.origin);
    for (size_t row = 0; row < 2; row++) {
        assert_int_equal(cell(rows, row, 4, 0), planned->batch.origin + 8192 + 1024 * (row + 1));
        assert_int_equal(cell(rows, row, 4, 1), planned->batch.origin + 1024 * (row + 2));
        assert_int_equal(cell(rows, row, 4, 2), 7);
        assert_int_equal(cell(rows, row, 4, 3), 2);
    }
    for (size_t i = 64; i < UPLOAD_BYTES; i++)
        assert_int_equal(((uint8_t *)planned->upload)[i], UNTOUCHED);
}

TEST(a_row_has_the_address_of_words_and_the_bits_of_numbers) {
    for (size_t i = 0; i < 2; i++)
        (void)add_step("entry: words_in_buffer, args: [y, {u32: 2}, {words: [1, 2, 3, 4]}], "
                       "grid: [1]");
    for (size_t i = 0; i < 2; i++) {
        planned->items[i].base[GROUP_INPUT] = 512 + 512 * i;
        (void)add_step("entry: scalars, args: [y, {u32: 1}, {i32: -2}, {u64: 3}, {i64: -4}, "
                       "{f32: 1}, {f64: 2}], grid: [1]");
    }
    assert_runs("2 2");
    coalesce_stage(&planned->batch);
    struct coalesced_run run = coalesced_run_at(&planned->batch, 0);
    CUdeviceptr rows = coalesced_rows(&planned->batch, &run, 0);
    for (size_t row = 0; row < 2; row++)
        assert_int_equal(cell(rows, row, 3, 2),
            planned->batch.origin + 512 + 512 * row +
                planned->items[row].job->plan->launches[0].param_block_offset);
    run = coalesced_run_at(&planned->batch, 2);
    rows = coalesced_rows(&planned->batch, &run, 0);
    for (size_t row = 0; row < 2; row++) {
        assert_int_equal((uint32_t)cell(rows, row, 7, 1), 1);
        assert_int_equal((int32_t)cell(rows, row, 7, 2), -2);
        assert_int_equal(cell(rows, row, 7, 3), 3);
        assert_true((int64_t)cell(rows, row, 7, 4) == -4);
        assert_int_equal((uint32_t)cell(rows, row, 7, 5), 0x3f800000);
        assert_true(cell(rows, row, 7, 6) == 0x4000000000000000);
    }
}

TEST(the_rows_of_a_step_stand_behind_those_of_the_step_before) {
    for (size_t i = 0; i < 2; i++)
        (void)planned_add("id: j\nbuffers: {y: {bytes: 64}}\nsteps: [{program: mix, entry: "
                          "reverse_blocks, args: [y, {u32: 16}], grid: [1]}, {program: mix, "
                          "entry: reverse_blocks, args: [y, {u32: 8}], grid: [1]}]\n"
                          "outputs: [{buffer: y}]\n");
    assert_runs("2");
    coalesce_stage(&planned->batch);
    struct coalesced_run run = coalesced_run_at(&planned->batch, 0);
    CUdeviceptr first = coalesced_rows(&planned->batch, &run, 0),
                second = coalesced_rows(&planned->batch, &run, 1);
    assert_int_equal(second, first + 2 * 2 * CELL);
    for (size_t row = 0; row < 2; row++) {
        assert_int_equal(cell(first, row, 2, 1), 16);
        assert_int_equal(cell(second, row, 2, 1), 8);
    }
}

/* --- how many at once --- */

TEST(as_many_jobs_go_at_once_as_their_widest_step_leaves_multiprocessors) {
    const struct job *narrow = add_narrow()->job, *wide = add_wide()->job;
    assert_int_equal(coalesce_jobs_at_once(narrow, 10), 10);
    assert_int_equal(coalesce_jobs_at_once(wide, 10), 2);
    assert_int_equal(coalesce_jobs_at_once(wide, 4), 1);
    assert_int_equal(coalesce_jobs_at_once(wide, 3), 1);
    const struct job *both =
        planned_add("id: j\nbuffers: {y: {bytes: 64}}\nsteps: [{program: mix, entry: "
                    "reverse_blocks, args: [y, {u32: 16}], grid: [5]}, {program: mix, "
                    "entry: reverse_blocks, args: [y, {u32: 8}], grid: [2]}]\n"
                    "outputs: [{buffer: y}]\n")
            ->job;
    assert_int_equal(coalesce_jobs_at_once(both, 20), 4);
}

TEST(one_job_goes_at_once_where_launches_cannot_be_shared) {
    struct job *job = add_narrow()->job;
    job->timing = true;
    assert_int_equal(coalesce_jobs_at_once(job, 100), 1);
}

RUN_TESTS(PLANNED(neighbours_of_one_signature_share_launches),
    PLANNED(jobs_of_one_signature_that_are_no_neighbours_do_not),
    PLANNED(what_was_together_in_the_batch_before_is_forgotten),
    PLANNED(a_timed_job_or_one_that_only_reads_is_launched_alone),
    PLANNED(a_job_with_a_step_that_has_no_batched_kernel_is_launched_alone),
    PLANNED(a_grid_of_more_than_one_dimension_is_launched_alone),
    PLANNED(cooperative_launches_are_not_shared),
    PLANNED(words_are_shared_through_a_buffer_and_not_by_value),
    PLANNED(only_runs_of_several_jobs_have_a_table_and_each_starts_at_a_multiple_of_256),
    PLANNED(a_table_takes_the_next_256_bytes_when_its_rows_fill_the_last_ones),
    PLANNED(a_row_has_the_addresses_and_values_of_its_jobs_arguments),
    PLANNED(a_row_has_the_address_of_words_and_the_bits_of_numbers),
    PLANNED(the_rows_of_a_step_stand_behind_those_of_the_step_before),
    PLANNED(as_many_jobs_go_at_once_as_their_widest_step_leaves_multiprocessors),
    PLANNED(one_job_goes_at_once_where_launches_cannot_be_shared))
