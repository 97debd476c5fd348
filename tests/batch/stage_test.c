/* Where the bytes of buffers, writes, fills and words stand in the upload slab. */
#include "batch/stage.h"

#include <stdlib.h>

#include "planned.h"

/* --- a batch whose parts are far apart, so that nothing else may be touched --- */

static uint8_t *slab(void) {
    return (uint8_t *)planned->upload;
}

static void place(struct batch_item *item, uint64_t input, uint64_t inout, uint64_t writes) {
    item->base[GROUP_INPUT] = input;
    item->base[GROUP_INOUT] = inout;
    item->write_base = writes;
}

/* Compares a range and marks it as seen. */
static void assert_bytes(uint64_t at, const void *expected, size_t size) {
    assert_memory_equal(slab() + at, expected, size);
    memset(slab() + at, UNTOUCHED, size);
}

static void assert_filled(uint64_t at, uint8_t value, size_t size) {
    for (size_t i = 0; i < size; i++) assert_int_equal(slab()[at + i], value);
    memset(slab() + at, UNTOUCHED, size);
}

static void assert_nothing_else(void) {
    for (size_t i = 0; i < UPLOAD_BYTES; i++)
        if (slab()[i] != UNTOUCHED) fail_msg("byte %zu was written", i);
}

#define STEP                                                                                       \
    "steps: [{program: mix, entry: add_u32, args: [y, x, {u32: 1}, {u32: 2}], elements: 2}]\n"     \
    "outputs: [{buffer: y}]\n"
#define IN_AND_OUT "id: j\nbuffers: {x: {data: {u32: [1, 2]}}, y: {data: {u32: [3, 4]}}}\n" STEP

TEST(each_buffer_stands_in_its_group_with_zeroes_up_to_the_next_one) {
    place(planned_add(IN_AND_OUT), 1024, 4096, 0);
    assert_int_equal(stage_batch(&planned->batch, &(struct error){0}), ERR_OK);
    assert_bytes(1024, (const uint32_t[]){1, 2}, 8);
    assert_filled(1024 + 8, 0, PLAN_ALIGNMENT - 8);
    assert_bytes(4096, (const uint32_t[]){3, 4}, 8);
    assert_filled(4096 + 8, 0, PLAN_ALIGNMENT - 8);
    assert_nothing_else();
}

TEST(a_buffer_that_ends_at_the_next_one_has_no_zeroes_behind_it) {
    struct batch_item *item = planned_add(IN_AND_OUT);
    static const uint8_t full[PLAN_ALIGNMENT] = {[0] = 7, [PLAN_ALIGNMENT - 1] = 9};
    struct job_buffer *x = (struct job_buffer *)(uintptr_t)&item->job->buffers[0];
    x->bytes = sizeof full;
    x->data = slice_of(full, sizeof full);
    place(item, 1024, 4096, 0);
    assert_int_equal(stage_batch(&planned->batch, &(struct error){0}), ERR_OK);
    assert_bytes(1024, full, sizeof full);
    assert_filled(4096, 3, 1);
    assert_int_equal(slab()[1024 + PLAN_ALIGNMENT], UNTOUCHED);
}

TEST(several_buffers_of_a_group_stand_behind_each_other) {
    place(planned_add("id: j\nbuffers: {x: {data: {u32: [1, 2]}}, z: {data: {u32: [5, 6]}}, "
                      "y: {bytes: 8}}\n"
                      "steps: [{program: mix, entry: add_u32, args: [y, x, {u32: 1}, {u32: 2}], "
                      "elements: 2}, {program: mix, entry: add_u32, args: [y, z, {u32: 1}, "
                      "{u32: 2}], elements: 2}]\noutputs: [{buffer: y}]\n"),
        1024, 4096, 0);
    assert_int_equal(stage_batch(&planned->batch, &(struct error){0}), ERR_OK);
    assert_bytes(1024, (const uint32_t[]){1, 2}, 8);
    assert_bytes(1024 + PLAN_ALIGNMENT, (const uint32_t[]){5, 6}, 8);
    assert_filled(1024 + 8, 0, PLAN_ALIGNMENT - 8);
    assert_filled(1024 + PLAN_ALIGNMENT + 8, 0, PLAN_ALIGNMENT - 8);
    assert_nothing_else(); /* y is cleared on the device */
}

TEST(writes_stand_over_the_bytes_of_their_buffer_in_their_order) {
    place(planned_add("id: j\nbuffers: {x: {data: {u8: [1, 2, 3, 4, 5, 6, 7, 8]}, writes: "
                      "[{offset: 2, data: {u8: [20, 21, 22]}}, {offset: 4, data: {u8: [30]}}, "
                      "{offset: 7, data: {u8: [40]}}]}, y: {bytes: 8}}\n" STEP),
        512, 4096, 8192);
    assert_int_equal(stage_batch(&planned->batch, &(struct error){0}), ERR_OK);
    assert_bytes(512, (const uint8_t[]){1, 2, 20, 21, 30, 6, 7, 40}, 8);
    assert_filled(512 + 8, 0, PLAN_ALIGNMENT - 8);
    assert_nothing_else();
}

TEST(writes_into_what_the_device_fills_stand_in_the_staging_of_their_own) {
    struct batch_item *item = planned_add(
        "id: j\nbuffers: {x: {data: {u32: [1, 2]}}, y: {bytes: 600, fill: 5, writes: "
        "[{offset: 8, data: {u32: [70]}}, {offset: 300, data: {u32: [80, 81]}}]}}\n" STEP);
    const struct plan *plan = item->job->plan;
    place(item, 512, 4096, 8192);
    assert_int_equal(stage_batch(&planned->batch, &(struct error){0}), ERR_OK);
    assert_int_equal(plan->write_count, 2);
    assert_bytes(8192, (const uint32_t[]){70}, 4);
    assert_bytes(8192 + PLAN_ALIGNMENT, (const uint32_t[]){80, 81}, 8);
    assert_filled(512, 1, 1);
}

TEST(a_job_that_was_applied_before_stages_no_writes) {
    struct batch_item *item =
        planned_add("id: j\nbuffers: {x: {bytes: 8}, y: {bytes: 600, "
                    "fill: 5, writes: [{offset: 8, data: {u32: [70]}}]}}\n" STEP);
    place(item, 512, 4096, 8192);
    item->job->is_applied = true;
    assert_int_equal(stage_batch(&planned->batch, &(struct error){0}), ERR_OK);
    assert_nothing_else();
}

TEST(a_blob_stands_where_data_would) {
    struct batch_item *item =
        planned_add("id: j\nbuffers: {x: {bytes: 8, blob: "
                    "\"sha256:0000000000000000000000000000000000000000000000000000000000000000\"}, "
                    "y: {bytes: 8}}\n" STEP);
    item->job->blobs[0].bytes = slice_of_text("blobblob");
    place(item, 1024, 4096, 0);
    assert_int_equal(stage_batch(&planned->batch, &(struct error){0}), ERR_OK);
    assert_bytes(1024, "blobblob", 8);
    assert_filled(1024 + 8, 0, PLAN_ALIGNMENT - 8);
    assert_nothing_else();
}

#define WORDS(entry)                                                                               \
    "id: j\nbuffers: {y: {bytes: 8}}\nsteps: [{program: mix, entry: " entry                        \
    ", args: [y, {u32: 2}, {words: [1, 2, 3, 4278255360]}], elements: 2}]\n"                       \
    "outputs: [{buffer: y}]\n"

TEST(words_that_travel_in_a_buffer_stand_little_endian_where_the_plan_has_them) {
    struct batch_item *item = planned_add(WORDS("words_in_buffer"));
    place(item, 2048, 4096, 0);
    assert_int_equal(stage_batch(&planned->batch, &(struct error){0}), ERR_OK);
    assert_bytes(2048 + item->job->plan->launches[0].param_block_offset,
        (const uint8_t[]){1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0xff, 0, 0xff}, 16);
    assert_nothing_else();
}

TEST(words_by_value_are_not_staged) {
    place(planned_add(WORDS("words_by_value")), 2048, 4096, 0);
    assert_int_equal(stage_batch(&planned->batch, &(struct error){0}), ERR_OK);
    assert_nothing_else();
}

TEST(each_job_of_a_batch_stands_at_places_of_its_own) {
    place(planned_add(IN_AND_OUT), 1024, 4096, 0);
    place(
        planned_add("id: k\nbuffers: {x: {data: {u32: [7, 8]}}, y: {data: {u32: [9, 10]}}}\n" STEP),
        2048, 8192, 0);
    planned->items[1].job->kernels[0].kernel = &planned->kernels[1];
    assert_int_equal(stage_batch(&planned->batch, &(struct error){0}), ERR_OK);
    assert_bytes(1024, (const uint32_t[]){1, 2}, 8);
    assert_bytes(4096, (const uint32_t[]){3, 4}, 8);
    assert_bytes(2048, (const uint32_t[]){7, 8}, 8);
    assert_bytes(8192, (const uint32_t[]){9, 10}, 8);
    const uint64_t places[] = {1024, 4096, 2048, 8192};
    for (size_t i = 0; i < 4; i++) assert_filled(places[i] + 8, 0, PLAN_ALIGNMENT - 8);
    assert_nothing_else();
}

TEST(a_mapped_batch_is_cleared_filled_and_written_by_the_host) {
    struct batch_item *first =
        planned_add("id: j\nbuffers: {x: {data: {u32: [1, 2]}}, y: {bytes: "
                    "12, fill: 5, writes: [{offset: 3, data: {u8: [9]}}]}}\n" STEP);
    struct batch_item *second =
        planned_add("id: k\nbuffers: {x: {bytes: 8, fill: 6}, y: {bytes: 8}}\n" STEP);
    place(first, 1024, 0, 12288);
    first->base[GROUP_OUTPUT] = 4096;
    second->base[GROUP_OUTPUT] = 4096 + PLAN_ALIGNMENT;
    second->base[GROUP_SCRATCH] = 4096 + 2 * PLAN_ALIGNMENT;
    planned->batch.start[GROUP_OUTPUT] = 4096;
    planned->batch.start[GROUP_COUNT] = 4096 + 3 * PLAN_ALIGNMENT;
    planned->batch.is_mapped = true;
    assert_int_equal(stage_batch(&planned->batch, &(struct error){0}), ERR_OK);
    assert_bytes(1024, (const uint32_t[]){1, 2}, 8);
    assert_filled(1024 + 8, 0, PLAN_ALIGNMENT - 8);
    assert_bytes(4096, (const uint8_t[]){5, 5, 5, 9, 5, 5, 5, 5, 5, 5, 5, 5}, 12);
    assert_filled(4096 + 12, 0, 2 * PLAN_ALIGNMENT - 12);
    assert_filled(4096 + 2 * PLAN_ALIGNMENT, 6, 8);
    assert_filled(4096 + 2 * PLAN_ALIGNMENT + 8, 0, PLAN_ALIGNMENT - 8);
    assert_nothing_else(); /* nor the staging of writes */
}

RUN_TESTS(PLANNED(each_buffer_stands_in_its_group_with_zeroes_up_to_the_next_one),
    PLANNED(a_buffer_that_ends_at_the_next_one_has_no_zeroes_behind_it),
    PLANNED(several_buffers_of_a_group_stand_behind_each_other),
    PLANNED(writes_stand_over_the_bytes_of_their_buffer_in_their_order),
    PLANNED(writes_into_what_the_device_fills_stand_in_the_staging_of_their_own),
    PLANNED(a_job_that_was_applied_before_stages_no_writes),
    PLANNED(a_blob_stands_where_data_would),
    PLANNED(words_that_travel_in_a_buffer_stand_little_endian_where_the_plan_has_them),
    PLANNED(words_by_value_are_not_staged),
    PLANNED(each_job_of_a_batch_stands_at_places_of_its_own),
    PLANNED(a_mapped_batch_is_cleared_filled_and_written_by_the_host))
