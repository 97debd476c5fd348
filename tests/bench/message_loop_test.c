/* Proves: the message loop reads the messages of bench_job_add() and no others, and its results
 * have what the worker's have. */
#include "bench/message_loop.h"

#include <stdlib.h>

#include "base/wire.h"
#include "bench/job.h"
#include "testing.h"

enum { BUFFER_BYTES = 64, ROOM = BUFFER_BYTES + MESSAGE_LOOP_RESULT_BYTES };

static struct slice message_of(const char *entry) {
    struct slice message;
    struct error err;
    assert_int_equal(ERR_OK, bench_job_add(entry, BUFFER_BYTES, 0, &message, &err));
    return message;
}

static void drop(struct slice message) {
    free((void *)(uintptr_t)message.data);
}

/* The map has these keys and no other, in this order. */
static void assert_keys(const struct wire_value *map, const char *const *keys, size_t count) {
    assert_int_equal(WIRE_MAP, map->type);
    assert_int_equal(count, map->count);
    const struct wire_value *key = map + 1;
    for (size_t i = 0; i < count; i++) {
        assert_true(slice_is_text(wire_slice(key), keys[i]));
        key = wire_next(wire_next(key));
    }
}

TEST(message_loop_finds_the_inputs_of_a_job) {
    const struct slice message = message_of("add_coalesced");
    const float one = 1;
    struct message_loop_job job;
    assert_true(message_loop_read(message, BUFFER_BYTES, &job));
    assert_true(slice_is_text(job.id, "bench"));
    assert_int_equal(BUFFER_BYTES, job.x.size);
    assert_int_equal(BUFFER_BYTES, job.y.size);
    assert_memory_equal(&one, job.x.data, sizeof one);
    drop(message);
}

TEST(message_loop_refuses_a_message_that_is_cut_anywhere) {
    const struct slice message = message_of("add_coalesced");
    struct message_loop_job job;
    for (size_t size = 0; size < message.size; size++) {
        uint8_t *cut = malloc(size + 1); /* a read behind its end is seen */
        assert_non_null(cut);
        memcpy(cut, message.data, size);
        assert_false(message_loop_read(slice_of(cut, size), BUFFER_BYTES, &job));
        free(cut);
    }
    drop(message);
}

TEST(message_loop_refuses_a_job_with_another_entry_or_size) {
    const struct slice message = message_of("add_coalesced"), other = message_of("add");
    struct message_loop_job job;
    assert_false(message_loop_read(other, BUFFER_BYTES, &job));
    assert_false(message_loop_read(message, 2 * BUFFER_BYTES, &job));
    drop(message);
    drop(other);
}

TEST(message_loop_encodes_a_result_with_the_keys_of_the_workers) {
    static const char *const keys[] = {
        "v", "id", "status", "outputs", "telemetry", "source", "worker"};
    static const char *const output_keys[] = {"name", "data"};
    const float z[BUFFER_BYTES / sizeof(float)] = {2};
    struct message_loop_job job = {.id = slice_of_text("some-id")};
    struct wire_values values;
    struct error err;
    uint8_t room[ROOM];
    size_t size = message_loop_write(&job, slice_of(z, sizeof z), 7, room, sizeof room);
    assert_int_equal(ERR_OK, wire_read(slice_of(room, size), SIZE_MAX, &values, &err));
    assert_keys(values.items, keys, sizeof keys / sizeof keys[0]);
    const struct wire_value *outputs = values.items;
    while (outputs->type != WIRE_ARRAY) outputs++;
    assert_keys(outputs + 1, output_keys, 2);
    assert_memory_equal(z, outputs[5].bytes, sizeof z);
    wire_values_fini(&values);
}

TEST(message_loop_says_when_a_result_has_no_room) {
    const float z[BUFFER_BYTES / sizeof(float)] = {2};
    const struct message_loop_job job = {.id = slice_of_text("some-id")};
    uint8_t room[BUFFER_BYTES];
    assert_int_equal(0, message_loop_write(&job, slice_of(z, sizeof z), 7, room, sizeof room));
}

TEST(message_loop_tells_a_wrong_sum) {
    const float x[] = {1, 2}, y[] = {3, 4}, sum[] = {4, 6}, wrong[] = {4, 7};
    const struct message_loop_job job = {.x = slice_of(x, sizeof x), .y = slice_of(y, sizeof y)};
    assert_true(message_loop_is_right(&job, slice_of(sum, sizeof sum)));
    assert_false(message_loop_is_right(&job, slice_of(wrong, sizeof wrong)));
}

RUN_TESTS(T(message_loop_finds_the_inputs_of_a_job),
    T(message_loop_refuses_a_message_that_is_cut_anywhere),
    T(message_loop_refuses_a_job_with_another_entry_or_size),
    T(message_loop_encodes_a_result_with_the_keys_of_the_workers),
    T(message_loop_says_when_a_result_has_no_room), T(message_loop_tells_a_wrong_sum))
