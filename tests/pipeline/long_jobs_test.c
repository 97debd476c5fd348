/* Proves: a long job runs rounds until it says that it is done, or its rounds or its time are over;
 * what it computes depends on none of that, nor on how many rounds a visit has; it gives way to
 * others, is left whole when the worker stops, and leaves nothing on the device. */
#include <stdio.h>
#include <stdlib.h>

#include "cpu_driver/cpu_driver.h"
#include "support/device_checks.h"
#include "support/run.h"
#include "testing.h"

enum { INSTANCES = 300 };

static void use_mix(struct run *run) {
    run_set_text(&run->settings.programs.dir, MIX_FOLDER);
}

/* What the kernel `draw` leaves in its state after so many rounds. */
static void draw(uint32_t rounds, uint32_t ret[2]) {
    ret[0] = rounds;
    ret[1] = 0;
    for (uint32_t i = 0; i < rounds; i++) ret[1] = ret[1] * 1664525u + 1013904223u;
}

static void add_draw(struct run *run, const char *id, const char *entry, uint32_t last,
    const char *repeat_and_more) {
    char yaml[512];
    snprintf(yaml, sizeof yaml,
        "id: %s\nbuffers: {state: {bytes: 8}, done: {bytes: 4}}\n"
        "steps: [{program: mix, entry: %s, args: [state, done, {u32: %u}], grid: [1]}]\n"
        "outputs: [{buffer: state}]\n%s\n",
        id, entry, last, repeat_and_more);
    run_add_job(run, yaml);
}

static void assert_drawn(struct run *run, const char *id, uint32_t rounds, const char *ended) {
    uint32_t expected[2];
    msgpack_unpacked unpacked;
    msgpack_object result = run_unpack_result(run, id, &unpacked);
    const msgpack_object *found = msgpack_get(&result, "rounds"),
                         *how = msgpack_get(&result, "ended");
    assert_non_null(found);
    assert_non_null(how);
    assert_int_equal(found->via.u64, rounds);
    assert_int_equal(how->via.str.size, strlen(ended));
    assert_memory_equal(how->via.str.ptr, ended, strlen(ended));
    msgpack_unpacked_destroy(&unpacked);
    draw(rounds, expected);
    run_assert_output(run, id, 0, expected, sizeof expected);
}

TEST(a_job_that_says_that_it_is_done_ends_after_that_round) {
    struct run *run = *state;
    use_mix(run);
    add_draw(run, "first", "draw", 1, "repeat: 5000\nuntil: {buffer: done}");
    add_draw(run, "later", "draw_alone", 2777, "repeat: 5000\nuntil: {buffer: done}");
    add_draw(run, "last", "draw", 5000, "repeat: 5000\nuntil: {buffer: done}");
    run_execute_ok(run);
    assert_drawn(run, "first", 1, "until");
    assert_drawn(run, "later", 2777, "until");
    assert_drawn(run, "last", 5000, "until");
    device_assert_nothing_left();
}

TEST(a_job_that_is_never_done_ends_with_its_rounds) {
    struct run *run = *state;
    use_mix(run);
    add_draw(run, "flags", "draw", 0, "repeat: 4321\nuntil: {buffer: done}");
    add_draw(run, "none", "draw", 0, "repeat: 4321\ntime_ms: 3600000");
    run_execute_ok(run);
    assert_drawn(run, "flags", 4321, "repeat");
    assert_drawn(run, "none", 4321, "repeat");
    assert_int_equal(run_telemetry(run, "none", "kernel_launches"), 4321);
    device_assert_nothing_left();
}

TEST(a_job_without_its_keys_has_the_same_outputs_and_says_nothing_of_rounds) {
    struct run *run = *state;
    uint32_t expected[2];
    msgpack_unpacked unpacked;
    use_mix(run);
    add_draw(run, "plain", "draw", 0, "repeat: 4321");
    run_execute_ok(run);
    draw(4321, expected);
    run_assert_output(run, "plain", 0, expected, sizeof expected);
    msgpack_object result = run_unpack_result(run, "plain", &unpacked);
    assert_null(msgpack_get(&result, "rounds"));
    assert_null(msgpack_get(&result, "ended"));
    msgpack_unpacked_destroy(&unpacked);
}

TEST(a_job_whose_time_is_over_has_what_it_has_computed) {
    struct run *run = *state;
    uint32_t expected[2];
    msgpack_unpacked unpacked;
    use_mix(run);
    add_draw(run, "timed", "draw", 0, "repeat: 4294967295\nuntil: {buffer: done}\ntime_ms: 1000");
    run_execute_ok(run);
    msgpack_object result = run_unpack_result(run, "timed", &unpacked);
    uint32_t rounds = (uint32_t)msgpack_get(&result, "rounds")->via.u64;
    assert_memory_equal(msgpack_get(&result, "ended")->via.str.ptr, "time", 4);
    msgpack_unpacked_destroy(&unpacked);
    assert_true(rounds > 0);
    draw(rounds, expected);
    run_assert_output(run, "timed", 0, expected, sizeof expected);
}

/* Instance i is done after i % 97 rounds; those of 0 never are. */
static void add_array(struct run *run, const char *entry) {
    static char yaml[INSTANCES * 8 + 512];
    int used = snprintf(yaml, sizeof yaml,
        "id: array\ncount: %d\n"
        "buffers: {state: {bytes: 8, each: true}, done: {bytes: 4, each: true}}\n"
        "repeat: 200\nuntil: {buffer: done}\noutputs: [{buffer: state}]\n"
        "steps: [{program: mix, entry: %s, grid: [1], args: [state, done, {each: {u32: [",
        INSTANCES, entry);
    for (int i = 0; i < INSTANCES; i++)
        used +=
            snprintf(yaml + used, sizeof yaml - (size_t)used, "%s%d", i > 0 ? ", " : "", i % 97);
    snprintf(yaml + used, sizeof yaml - (size_t)used, "]}}]}]\n");
    run_add_job(run, yaml);
}

static void assert_array_drawn(struct run *run) {
    uint32_t expected[INSTANCES][2];
    msgpack_unpacked unpacked;
    msgpack_object result = run_unpack_result(run, "array", &unpacked);
    const msgpack_object *rounds = msgpack_get(&result, "rounds");
    const msgpack_object *ended = msgpack_get(&result, "ended");
    assert_int_equal(rounds->via.bin.size, INSTANCES * 4);
    assert_int_equal(ended->via.bin.size, INSTANCES);
    for (uint32_t i = 0; i < INSTANCES; i++) {
        uint32_t wanted = i % 97 > 0 ? i % 97 : 200, found;
        memcpy(&found, rounds->via.bin.ptr + 4 * i, sizeof found);
        assert_int_equal(found, wanted);
        assert_int_equal(ended->via.bin.ptr[i], i % 97 > 0 ? 1 : 2);
        draw(wanted, expected[i]);
    }
    msgpack_unpacked_destroy(&unpacked);
    run_assert_output(run, "array", 0, expected, sizeof expected);
    device_assert_nothing_left();
}

TEST(each_instance_of_an_array_ends_by_itself) {
    struct run *run = *state;
    use_mix(run);
    add_array(run, "draw");
    run_execute_ok(run);
    assert_array_drawn(run);
}

TEST(instances_that_share_no_launches_end_by_themselves_too) {
    struct run *run = *state;
    use_mix(run);
    add_array(run, "draw_alone");
    run_execute_ok(run);
    assert_array_drawn(run);
}

/* Outputs and upload take more than a slab. */
TEST(a_job_larger_than_a_slab_runs_in_rounds) {
    struct run *run = *state;
    use_mix(run);
    run->settings.lane_slab_bytes = 1 << 10;
    add_array(run, "draw");
    run_execute_ok(run);
    assert_array_drawn(run);
}

TEST(a_job_for_which_the_device_has_no_room_is_an_error_and_the_next_one_runs) {
    struct run *run = *state;
    use_mix(run);
    run->settings.cpu_driver.memory_bytes = 16 << 20;
    run->settings.lanes = 1;
    run_add_job(run,
        "id: large\nbuffers: {state: {bytes: 33554432}, done: {bytes: 4}}\n"
        "steps: [{program: mix, entry: draw, args: [state, done, {u32: 3}], grid: [1]}]\n"
        "outputs: []\nrepeat: 5\nuntil: {buffer: done}\n");
    add_draw(run, "small", "draw", 3, "repeat: 5\nuntil: {buffer: done}");
    run_execute_ok(run);
    run_assert_error(run, "large", "device_memory");
    assert_drawn(run, "small", 3, "until");
    device_assert_nothing_left();
}

/* --- progress --- */

static uint64_t uint_in(const msgpack_object *map, const char *key) {
    const msgpack_object *value = msgpack_get(map, key);
    assert_non_null(value);
    return value->via.u64;
}

/* What the message shows is what the kernel has drawn by then. */
static uint64_t assert_shown(const struct memory_message *message, const char *id) {
    uint32_t expected[2];
    msgpack_unpacked unpacked;
    msgpack_unpacked_init(&unpacked);
    assert_int_equal(msgpack_unpack_next(&unpacked, (const char *)message->payload.data,
                         message->payload.size, NULL),
        MSGPACK_UNPACK_SUCCESS);
    const msgpack_object *map = &unpacked.data;
    const msgpack_object *name = msgpack_get(map, "id");
    assert_memory_equal(name->via.str.ptr, id, name->via.str.size);
    assert_int_equal(uint_in(map, "v"), 1);
    assert_int_equal(uint_in(map, "attempt"), 1);
    assert_int_equal(uint_in(map, "live"), 1);
    assert_int_equal(uint_in(msgpack_get(map, "source"), "offset"), 0);
    uint64_t rounds = uint_in(map, "rounds");
    draw((uint32_t)rounds, expected);
    const msgpack_object *output = &msgpack_get(map, "outputs")->via.array.ptr[0];
    assert_int_equal(msgpack_get(output, "data")->via.bin.size, 4);
    assert_memory_equal(msgpack_get(output, "data")->via.bin.ptr, &expected[1], 4);
    msgpack_unpacked_destroy(&unpacked);
    return rounds;
}

static size_t shown_wanted;

static void stop_when_shown(struct run *run) {
    if (atomic_load(&run->progress.message_count) >= shown_wanted) run->stop = 1;
}

/* However long that takes; the job is left to others then. */
static void stop_once_shown(struct run *run, size_t count) {
    shown_wanted = count;
    run->stop_after = SIZE_MAX;
    run->on_poll = stop_when_shown;
    assert_int_equal(run_execute(run), ERR_OK);
}

TEST(a_job_shows_how_far_it_is) {
    struct run *run = *state;
    use_mix(run);
    add_draw(run, "shown", "draw", 0,
        "repeat: 4294967295\n"
        "progress: {every_ms: 100, outputs: [{buffer: state, offset: 4}]}");
    stop_once_shown(run, 3);
    size_t count = run->progress.message_count;
    assert_true(count >= 3);
    uint64_t before = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t rounds = assert_shown(&run->progress.messages[i], "shown");
        assert_true(rounds > before);
        before = rounds;
    }
    device_assert_nothing_left();
}

TEST(the_instances_of_an_array_show_themselves_side_by_side) {
    struct run *run = *state;
    use_mix(run);
    run_add_job(run,
        "id: array\ncount: 3\n"
        "buffers: {state: {bytes: 8, each: true}, done: {bytes: 4, each: true}}\n"
        "steps: [{program: mix, entry: draw, args: [state, done, {each: {u32: [1, 2, 0]}}], grid: "
        "[1]}]\n"
        "repeat: 4294967295\nuntil: {buffer: done}\noutputs: []\n"
        "progress: {every_ms: 100, outputs: [{buffer: done}]}\n");
    stop_once_shown(run, 1);
    const struct memory_message *message = &run->progress.messages[0];
    msgpack_unpacked unpacked;
    msgpack_unpacked_init(&unpacked);
    assert_int_equal(msgpack_unpack_next(&unpacked, (const char *)message->payload.data,
                         message->payload.size, NULL),
        MSGPACK_UNPACK_SUCCESS);
    assert_int_equal(uint_in(&unpacked.data, "live"), 1);
    const uint32_t expected[] = {1, 2, 0};
    const msgpack_object *output = &msgpack_get(&unpacked.data, "outputs")->via.array.ptr[0];
    assert_int_equal(msgpack_get(output, "data")->via.bin.size, sizeof expected);
    assert_memory_equal(msgpack_get(output, "data")->via.bin.ptr, expected, sizeof expected);
    msgpack_unpacked_destroy(&unpacked);
}

/* --- beside others --- */

static bool others_are_answered(struct run *run) {
    return run_finished_count(run) == 20;
}

static void stop_when_others_are_answered(struct run *run) {
    if (others_are_answered(run)) run->stop = 1;
}

/* One lane: the others pass between its chunks, and at the stop it is left, whole, to the next
 * owner of its message. */
TEST(a_job_gives_way_to_others_and_is_handed_back_at_a_stop) {
    struct run *run = *state;
    use_mix(run);
    run->settings.lanes = 1;
    add_draw(run, "endless", "draw", 0, "repeat: 4294967295\nuntil: {buffer: done}");
    for (int i = 0; i < 20; i++) {
        char id[32];
        snprintf(id, sizeof id, "quick-%d", i);
        add_draw(run, id, "draw", 0, "repeat: 3");
    }
    run->stop_after = SIZE_MAX;
    run->on_poll = stop_when_others_are_answered;
    assert_int_equal(run_execute(run), ERR_OK);
    assert_null(memory_find(&run->broker, ROUTE_RESULT, "endless"));
    assert_int_equal(run->broker.finished[0], 0);
    assert_int_equal(memory_count(&run->broker, ROUTE_DEAD_LETTER), 0);
    device_assert_nothing_left();
}

/* --- what is refused --- */

TEST(a_job_whose_flags_another_step_writes_is_refused) {
    struct run *run = *state;
    use_mix(run);
    run_add_job(run,
        "id: two\nbuffers: {state: {bytes: 8}, done: {bytes: 4}}\n"
        "steps: [{program: mix, entry: draw, args: [state, done, {u32: 1}], grid: [1]},\n"
        "  {program: mix, entry: draw, args: [state, done, {u32: 1}], grid: [1]}]\n"
        "outputs: []\nrepeat: 5\nuntil: {buffer: done}\n");
    run_add_job(run,
        "id: iterated\nbuffers: {state: {bytes: 8}, done: {bytes: 4}}\n"
        "steps: [{program: mix, entry: draw, args: [state, done, {u32: 1}], grid: [1], iterations: "
        "2}]\noutputs: []\nrepeat: 5\nuntil: {buffer: done}\n");
    run_execute_ok(run);
    run_assert_error(run, "two", "bad_argument");
    run_assert_error(run, "iterated", "bad_argument");
}

TEST(a_worker_that_separates_tenants_refuses_it) {
    struct run *run = *state;
    use_mix(run);
    run->settings.batch.isolation = ISOLATE_KEY;
    add_draw(run, "long", "draw", 1, "repeat: 5\nuntil: {buffer: done}");
    run_execute_ok(run);
    run_assert_error(run, "long", "unsupported");
}

RUN_TESTS(FLOW(a_job_that_says_that_it_is_done_ends_after_that_round),
    FLOW(a_job_that_is_never_done_ends_with_its_rounds),
    FLOW(a_job_without_its_keys_has_the_same_outputs_and_says_nothing_of_rounds),
    FLOW(a_job_whose_time_is_over_has_what_it_has_computed),
    FLOW(each_instance_of_an_array_ends_by_itself),
    FLOW(instances_that_share_no_launches_end_by_themselves_too),
    FLOW(a_job_larger_than_a_slab_runs_in_rounds),
    FLOW(a_job_for_which_the_device_has_no_room_is_an_error_and_the_next_one_runs),
    FLOW(a_job_shows_how_far_it_is), FLOW(the_instances_of_an_array_show_themselves_side_by_side),
    FLOW(a_job_gives_way_to_others_and_is_handed_back_at_a_stop),
    FLOW(a_job_whose_flags_another_step_writes_is_refused),
    FLOW(a_worker_that_separates_tenants_refuses_it))
