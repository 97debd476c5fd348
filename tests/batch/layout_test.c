/* What a job takes in a batch, and the addresses that its kernels get. */
#include "batch/layout.h"

#include <stdlib.h>

#include "planned.h"

#define STEP                                                                                       \
    "steps: [{program: mix, entry: add_u32, args: [y, x, {u32: 1}, {u32: 2}], elements: 2}]\n"     \
    "outputs: [{buffer: y}]\n"

TEST(a_job_takes_its_groups_its_rows_and_a_start_at_a_multiple_of_256) {
    const struct batch_item *item =
        planned_add("id: j\nbuffers: {x: {data: {u32: [1, 2]}}, y: {bytes: 300}}\n" STEP);
    assert_int_equal(batch_job_bytes(item->job->plan), 256 + 512 + 4 * 8 + 256);
}

TEST(a_job_takes_the_staging_of_its_unpacked_writes_and_outputs) {
    const struct batch_item *item = planned_add(
        "id: j\nbuffers: {x: {bytes: 8, fill: 3, writes: [{offset: 0, data: {u8: [1]}}]}, "
        "y: {bytes: 1000000}}\n"
        "steps: [{program: mix, entry: add_u32, args: [y, x, {u32: 1}, {u32: 2}], elements: 2}]\n"
        "outputs: [{buffer: y, bytes: 4}]\n");
    const struct plan *plan = item->job->plan;
    assert_true(plan->write_staging_bytes > 0);
    assert_true(plan->output_staging_bytes > 0);
    assert_int_equal(batch_job_bytes(plan),
        256 + 1000192 + 4 * 8 + 256 + plan->write_staging_bytes + plan->output_staging_bytes);
}

TEST(a_buffer_has_its_offset_in_its_jobs_part_of_its_group) {
    struct batch_item *item =
        planned_add("id: j\nbuffers: {x: {data: {u32: [1, 2]}}, z: {bytes: 4}, y: {bytes: 300}, "
                    "e: {bytes: 0}}\n" STEP);
    item->base[GROUP_INPUT] = 0x100;
    item->base[GROUP_OUTPUT] = 0x900;
    item->base[GROUP_SCRATCH] = 0x4000;
    const struct plan_buffer *buffers = item->job->plan->buffers;
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(batch_address(&planned->batch, item, i),
            0x10000 + item->base[buffers[i].group] + buffers[i].offset);
    assert_int_equal(batch_address(&planned->batch, item, 0), 0x10100);
    assert_int_equal(batch_address(&planned->batch, item, 2), 0x10900);
    assert_int_equal(batch_address(&planned->batch, item, 3), 0);
}

TEST(a_guarded_buffer_stands_behind_the_guard_in_a_block_of_its_own) {
    struct batch_item *item =
        planned_add("id: j\nbuffers: {x: {bytes: 8}, y: {bytes: 300}, e: {bytes: 0}}\n" STEP);
    struct pool_block blocks[3] = {{.address = 0x50000}, {.address = 0x60000}};
    planned->batch.guarded = blocks;
    assert_int_equal(batch_address(&planned->batch, item, 0), 0x50000 + GUARD_BYTES);
    assert_int_equal(batch_address(&planned->batch, item, 1), 0x60000 + GUARD_BYTES);
    assert_int_equal(batch_guarded_address(&planned->batch, 1), 0x60000 + GUARD_BYTES);
    assert_int_equal(batch_address(&planned->batch, item, 2), 0);
}

TEST(words_stand_where_the_plan_has_them_in_the_jobs_inputs) {
    struct batch_item *item = planned_add(
        "id: j\nbuffers: {x: {data: {u32: [1]}}, y: {bytes: 8}}\n"
        "steps: [{program: mix, entry: add_u32, args: [y, x, {u32: 1}, {u32: 1}], elements: 1}, "
        "{program: mix, entry: words_in_buffer, args: [y, {u32: 2}, {words: [1, 2, 3, 4]}], "
        "elements: 2}]\noutputs: [{buffer: y}]\n");
    item->base[GROUP_INPUT] = 0x700;
    assert_int_equal(
        batch_param_block_address(&planned->batch, item, &item->job->plan->launches[1]),
        0x10000 + 0x800);
}

RUN_TESTS(PLANNED(a_job_takes_its_groups_its_rows_and_a_start_at_a_multiple_of_256),
    PLANNED(a_job_takes_the_staging_of_its_unpacked_writes_and_outputs),
    PLANNED(a_buffer_has_its_offset_in_its_jobs_part_of_its_group),
    PLANNED(a_guarded_buffer_stands_behind_the_guard_in_a_block_of_its_own),
    PLANNED(words_stand_where_the_plan_has_them_in_the_jobs_inputs))
