/* Streams and events of the CPU driver beyond what both drivers do alike: lateness and hazards. */
#include <pthread.h>
#include <string.h>

#include "mishaps.h"

TEST(the_default_stream_is_refused) {
    open_with(NULL);
    CUdeviceptr memory = harness_memory(BYTES);
    CUevent event = harness_event();
    const CUstream none = NULL;
    GIVES(CUDA_ERROR_INVALID_HANDLE, fill(memory, 0, BYTES, none));
    GIVES(CUDA_ERROR_INVALID_HANDLE, event_record(event, none));
    GIVES(CUDA_ERROR_INVALID_HANDLE, stream_wait_event(none, event, 0));
    GIVES(CUDA_ERROR_INVALID_HANDLE, stream_synchronize(none));
    harness_close();
}

TEST(handles_that_were_destroyed_or_never_given_are_refused) {
    open_with(NULL);
    CUstream stream = harness_stream(), other = harness_stream();
    CUevent event = harness_event();
    WORKS(stream_destroy(stream));
    WORKS(event_destroy(event));
    GIVES(CUDA_ERROR_INVALID_HANDLE, stream_destroy(stream));
    GIVES(CUDA_ERROR_INVALID_HANDLE, event_destroy(event));
    GIVES(CUDA_ERROR_INVALID_HANDLE, event_query(event));
    GIVES(CUDA_ERROR_INVALID_HANDLE, event_query(NULL));
    GIVES(CUDA_ERROR_INVALID_HANDLE, event_query((CUevent)other)); /* a stream is no event */
    CUevent fresh = harness_event(), fresher = harness_event();
    WORKS(event_query(fresh));
    WORKS(event_query(fresher));
    GIVES(CUDA_ERROR_INVALID_HANDLE, event_query(event)); /* though its place is taken again */
    GIVES(CUDA_ERROR_INVALID_HANDLE, event_record(fresh, stream));
    harness_close();
}

TEST(a_recording_that_was_replaced_does_not_move_the_event_when_it_is_passed) {
    open_with(NULL);
    CUstream gated = harness_stream(), stream = harness_stream();
    CUevent start, event;
    float before, after;
    WORKS(event_create(&start, CU_EVENT_DEFAULT));
    WORKS(event_create(&event, CU_EVENT_DEFAULT));
    harness_close_gate(gated);
    WORKS(event_record(event, gated));
    WORKS(event_record(start, stream));
    WORKS(event_record(event, stream));
    WORKS(event_synchronize(event));
    WORKS(event_elapsed(&before, start, event));
    harness_open_gate();
    WORKS(stream_synchronize(gated));
    WORKS(event_elapsed(&after, start, event));
    assert_true(before == after);
    harness_close();
}

TEST(an_event_destroyed_before_it_was_passed_harms_nobody) {
    open_with(NULL);
    CUstream stream = harness_stream();
    CUevent event = harness_event();
    harness_close_gate(stream);
    WORKS(event_record(event, stream));
    WORKS(event_destroy(event));
    harness_open_gate();
    WORKS(stream_synchronize(stream));
    assert_int_equal(0, cpu_driver_counters().events_live);
    harness_close();
}

TEST(work_that_nobody_asks_for_is_done_all_the_same) {
    open_with(NULL);
    CUstream stream = harness_stream();
    CUdeviceptr memory = harness_memory(BYTES);
    WORKS(fill(memory, 0, BYTES, stream));
    while (cpu_driver_counters().bytes_filled == 0) {
    }
    harness_close();
}

TEST(streams_and_events_are_counted_and_come_and_go) {
    open_with(NULL);
    CUstream streams[256], one_more;
    for (int i = 0; i < 256; i++) streams[i] = harness_stream();
    assert_int_equal(256, cpu_driver_counters().streams_live);
    GIVES(CUDA_ERROR_OUT_OF_MEMORY, stream_create(&one_more, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < 256; i++) WORKS(stream_destroy(streams[i]));
    for (int i = 0; i < 600; i++) {
        CUstream stream = harness_stream();
        CUevent event = harness_event();
        WORKS(event_record(event, stream));
        WORKS(event_synchronize(event));
        WORKS(event_destroy(event));
        WORKS(stream_destroy(stream));
    }
    assert_int_equal(0, cpu_driver_counters().streams_live);
    assert_int_equal(0, cpu_driver_counters().events_live);
    harness_close();
}

/* Two streams on one allocation: how many hazards, with an event in between or not. The second one
 * uses it from `from` on. Without an event the first has to wait: the bytes are not to race in
 * truth. */
static uint64_t hazards_of_two_streams(
    bool with_event, bool first_writes, bool second_writes, size_t from) {
    open_with(NULL);
    CUstream first = harness_stream(), second = harness_stream();
    CUevent event = harness_event();
    CUdeviceptr memory = harness_memory(BYTES);
    uint8_t *one = harness_pinned(BYTES), *two = harness_pinned(BYTES);
    const size_t half = BYTES / 2;
    harness_close_gate(first);
    if (first_writes) WORKS(copy_to_device(memory, one, half, first));
    else WORKS(copy_to_host(one, memory, half, first));
    if (with_event) {
        WORKS(event_record(event, first));
        WORKS(stream_wait_event(second, event, 0));
    }
    if (second_writes) WORKS(fill(memory + from, 0, half, second));
    else WORKS(copy_to_host(two, memory + from, half, second));
    if (!with_event) WORKS(stream_synchronize(second));
    harness_open_gate();
    WORKS(stream_synchronize(first));
    WORKS(stream_synchronize(second));
    uint64_t hazards = cpu_driver_counters().hazards;
    harness_close_after_mistakes();
    return hazards;
}

TEST(unordered_use_of_the_same_bytes_is_a_hazard_where_somebody_writes) {
    assert_int_equal(1, hazards_of_two_streams(false, true, true, BYTES / 2 - 1));
    assert_int_equal(1, hazards_of_two_streams(false, true, false, BYTES / 2 - 1));
    assert_int_equal(1, hazards_of_two_streams(false, false, true, 0));
    assert_int_equal(0, hazards_of_two_streams(false, false, false, 0));
}

TEST(other_bytes_of_an_allocation_are_none) {
    assert_int_equal(0, hazards_of_two_streams(false, true, true, BYTES / 2));
    assert_int_equal(0, hazards_of_two_streams(false, false, true, BYTES / 2));
}

TEST(an_event_in_between_makes_it_none) {
    assert_int_equal(0, hazards_of_two_streams(true, true, true, 0));
    assert_int_equal(0, hazards_of_two_streams(true, true, false, 0));
    assert_int_equal(0, hazards_of_two_streams(true, false, true, 0));
}

TEST(order_is_handed_on_from_stream_to_stream) {
    open_with(NULL);
    CUstream first = harness_stream(), second = harness_stream(), third = harness_stream();
    CUevent after_first = harness_event(), after_second = harness_event();
    CUdeviceptr memory = harness_memory(BYTES);
    harness_close_gate(first);
    WORKS(fill(memory, 0, BYTES, first));
    WORKS(event_record(after_first, first));
    WORKS(stream_wait_event(second, after_first, 0));
    WORKS(event_record(after_second, second));
    WORKS(stream_wait_event(third, after_second, 0));
    WORKS(fill(memory, 1, BYTES, third));
    harness_open_gate();
    WORKS(stream_synchronize(third));
    harness_close(); /* and no hazard */
}

TEST(a_host_that_waited_has_put_streams_in_order) {
    open_with(NULL);
    CUstream first = harness_stream(), second = harness_stream();
    CUdeviceptr memory = harness_memory(BYTES);
    WORKS(fill(memory, 0, BYTES, first));
    WORKS(stream_synchronize(first));
    WORKS(fill(memory, 1, BYTES, second));
    WORKS(stream_synchronize(second));
    harness_close();
}

TEST(a_kernel_and_a_copy_of_another_stream_are_a_hazard_but_two_kernels_are_not) {
    open_with(NULL);
    CUstream first = harness_stream(), second = harness_stream(), third = harness_stream();
    CUdeviceptr memory = harness_memory(BYTES);
    uint8_t *pinned = harness_pinned(BYTES);
    uint32_t value = 1, n = 0;
    void *args[] = {&memory, &value, &n};
    CUfunction add = harness_probe("probe_add");
    harness_close_gate(first);
    assert_int_equal(CUDA_SUCCESS, harness_launch(add, 1, 1, 0, first, args));
    assert_int_equal(CUDA_SUCCESS, harness_launch(add, 1, 1, 0, second, args));
    assert_int_equal(0, cpu_driver_counters().hazards);
    WORKS(copy_to_host(pinned, memory, BYTES, third));
    assert_int_equal(1, cpu_driver_counters().hazards);
    harness_open_gate();
    WORKS(stream_synchronize(first));
    WORKS(stream_synchronize(third));
}

enum { PINGS = 200 };

struct player {
    CUdeviceptr memory;
    uint32_t *pinned;
    CUcontext context;
};

/* Many small rounds of upload, kernel, readback: what a lane does. */
static void *play(void *argument) {
    struct player *player = argument;
    WORKS(context_set_current(player->context));
    CUstream stream = harness_stream();
    CUevent done = harness_event();
    CUfunction add = harness_probe("probe_add");
    for (uint32_t i = 0; i < PINGS; i++) {
        uint32_t value = 1, n = 64;
        for (uint32_t j = 0; j < n; j++) player->pinned[j] = i + j;
        WORKS(copy_to_device(player->memory, player->pinned, 256, stream));
        assert_int_equal(CUDA_SUCCESS,
            harness_launch(add, 1, 64, 0, stream, (void *[]){&player->memory, &value, &n}));
        WORKS(copy_to_host(player->pinned, player->memory, 256, stream));
        WORKS(event_record(done, stream));
        WORKS(event_synchronize(done));
        for (uint32_t j = 0; j < n; j++) assert_int_equal(i + j + 1, player->pinned[j]);
    }
    return NULL;
}

TEST(threads_with_a_stream_each_get_their_own_results) {
    enum { PLAYERS = 4 };
    open_with(NULL);
    pthread_t threads[PLAYERS];
    struct player players[PLAYERS];
    for (int i = 0; i < PLAYERS; i++) {
        players[i].memory = harness_memory(BYTES);
        players[i].pinned = harness_pinned(BYTES);
        WORKS(primary_context_retain(&players[i].context, 0));
        pthread_create(&threads[i], NULL, play, &players[i]);
    }
    for (int i = 0; i < PLAYERS; i++) pthread_join(threads[i], NULL);
    assert_int_equal(PLAYERS * PINGS, cpu_driver_counters().launches);
    harness_close();
}

RUN_CPU_TESTS(C(the_default_stream_is_refused),
    C(handles_that_were_destroyed_or_never_given_are_refused),
    C(a_recording_that_was_replaced_does_not_move_the_event_when_it_is_passed),
    C(an_event_destroyed_before_it_was_passed_harms_nobody),
    C(work_that_nobody_asks_for_is_done_all_the_same),
    C(streams_and_events_are_counted_and_come_and_go),
    C(unordered_use_of_the_same_bytes_is_a_hazard_where_somebody_writes),
    C(other_bytes_of_an_allocation_are_none), C(an_event_in_between_makes_it_none),
    C(order_is_handed_on_from_stream_to_stream), C(a_host_that_waited_has_put_streams_in_order),
    C(a_kernel_and_a_copy_of_another_stream_are_a_hazard_but_two_kernels_are_not),
    C(threads_with_a_stream_each_get_their_own_results))
