/* Proves: null handles from the driver; want of host memory; no use of the default stream;
 * cached streams and events; leases that are used once; waiting and polling; elapsed times that
 * make sense (of waiting, the polling: a lane keeps its lease, see batch/lane.h). */
#include "gpu/lease.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "gpu/cpu_device.h"
#include "gpu/event.h"
#include "gpu/scarce_memory.h"

static struct device device;
static struct lease_pool *pool;
static struct error err;

#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) != ERR_OK) fail_msg("%s", err.message);                                         \
    } while (0)

static void open_with(const char *faults) {
    cpu_device_open(&device, faults);
    OK(lease_pool_create(&device, &pool, &err));
}

static void close_and_find_nothing_left(void) {
    lease_pool_destroy(pool);
    assert_int_equal(0, cpu_driver_counters().streams_live);
    assert_int_equal(0, cpu_driver_counters().events_live);
    device_close(&device);
}

static uint64_t calls(enum cpu_entry entry) {
    return cpu_driver_counters().calls[entry];
}

TEST(a_lease_has_a_stream_and_timing_events_only_where_asked) {
    open_with(NULL);
    struct stream_lease plain, timed;
    OK(stream_lease_take(pool, false, &plain, &err));
    assert_non_null(plain.stream);
    assert_null(plain.timing.started);
    assert_int_equal(0, calls(CPU_event_create));
    OK(stream_lease_take(pool, true, &timed, &err));
    assert_non_null(timed.timing.started);
    assert_non_null(timed.timing.stopped);
    assert_ptr_not_equal(timed.timing.started, timed.timing.stopped);
    assert_ptr_not_equal(timed.stream, plain.stream);
    OK(stream_lease_release(pool, &plain, &err));
    OK(stream_lease_release(pool, &timed, &err));
    close_and_find_nothing_left();
}

TEST(a_release_returns_everything_and_the_next_lease_creates_nothing) {
    open_with(NULL);
    struct stream_lease lease;
    CUevent fence;
    for (int round = 0; round < 3; round++) {
        OK(stream_lease_take(pool, true, &lease, &err));
        OK(fence_take(pool, &fence, &err));
        struct lease_counts counts = lease_pool_counts(pool);
        assert_int_equal(0, counts.streams + counts.fences + counts.timing_events);
        OK(stream_lease_release(pool, &lease, &err));
        OK(fence_release(pool, &fence, &err));
        counts = lease_pool_counts(pool);
        assert_int_equal(1, counts.streams);
        assert_int_equal(1, counts.fences);
        assert_int_equal(2, counts.timing_events);
    }
    assert_int_equal(1, calls(CPU_stream_create));
    assert_int_equal(3, calls(CPU_event_create));
    close_and_find_nothing_left();
}

static unsigned stream_flags, event_flags[8], event_count;

static CUresult note_stream(CUstream *ret, unsigned flags) {
    stream_flags = flags;
    *ret = (CUstream)&stream_flags;
    return CUDA_SUCCESS;
}

static CUresult note_event(CUevent *ret, unsigned flags) {
    event_flags[event_count] = flags;
    *ret = (CUevent)&event_flags[event_count++];
    return CUDA_SUCCESS;
}

static CUresult destroy_stream(CUstream stream) {
    return CUDA_SUCCESS;
}

static CUresult destroy_event(CUevent event) {
    return CUDA_SUCCESS;
}

TEST(streams_do_not_block_fences_sleep_without_timing_and_timing_events_time) {
    const struct gpu_driver driver = {.stream_create = note_stream,
        .stream_destroy = destroy_stream,
        .event_create = note_event,
        .event_destroy = destroy_event};
    device = (struct device){.driver = &driver};
    event_count = 0;
    OK(lease_pool_create(&device, &pool, &err));
    struct stream_lease lease;
    CUevent fence;
    OK(fence_take(pool, &fence, &err));
    OK(stream_lease_take(pool, true, &lease, &err));
    assert_int_equal(CU_STREAM_NON_BLOCKING, stream_flags);
    assert_int_equal(CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC, event_flags[0]);
    assert_int_equal(CU_EVENT_DEFAULT, event_flags[1]);
    assert_int_equal(CU_EVENT_DEFAULT, event_flags[2]);
    lease_pool_destroy(pool);
}

TEST(at_most_128_of_a_kind_are_cached_and_the_rest_is_destroyed) {
    enum { COUNT = 130 };
    open_with(NULL);
    CUevent fences[COUNT];
    for (int i = 0; i < COUNT; i++) OK(fence_take(pool, &fences[i], &err));
    for (int i = 0; i < COUNT; i++) OK(fence_release(pool, &fences[i], &err));
    assert_int_equal(128, lease_pool_counts(pool).fences);
    assert_int_equal(128, cpu_driver_counters().events_live);
    close_and_find_nothing_left();
}

TEST(a_lease_released_twice_is_an_error_and_returns_nothing) {
    open_with(NULL);
    struct stream_lease lease;
    CUevent fence;
    struct timing_pair pair;
    OK(stream_lease_take(pool, true, &lease, &err));
    OK(stream_lease_release(pool, &lease, &err));
    assert_int_equal(ERR_INTERNAL, stream_lease_release(pool, &lease, &err));
    assert_string_equal("a stream was given back twice", err.message);
    OK(fence_take(pool, &fence, &err));
    OK(fence_release(pool, &fence, &err));
    assert_int_equal(ERR_INTERNAL, fence_release(pool, &fence, &err));
    OK(timing_pair_take(pool, &pair, &err));
    OK(timing_pair_release(pool, &pair, &err));
    assert_int_equal(ERR_INTERNAL, timing_pair_release(pool, &pair, &err));
    struct lease_counts counts = lease_pool_counts(pool);
    assert_int_equal(1, counts.streams);
    assert_int_equal(1, counts.fences);
    assert_int_equal(2, counts.timing_events);
    close_and_find_nothing_left();
}

TEST(a_lease_used_after_its_release_is_an_error_before_any_call) {
    open_with(NULL);
    struct stream_lease lease;
    uint64_t ns;
    OK(stream_lease_take(pool, true, &lease, &err));
    OK(stream_lease_release(pool, &lease, &err));
    assert_int_equal(ERR_INTERNAL, event_record(&device, lease.timing.started, lease.stream, &err));
    assert_int_equal(ERR_INTERNAL, stream_wait(&device, lease.stream, &err));
    assert_int_equal(ERR_INTERNAL,
        event_elapsed_ns(&device, lease.timing.started, lease.timing.stopped, &ns, &err));
    assert_int_equal(0, calls(CPU_event_record));
    assert_int_equal(0, calls(CPU_stream_synchronize));
    assert_int_equal(0, calls(CPU_event_elapsed));
    close_and_find_nothing_left();
}

TEST(null_streams_and_events_reach_no_driver) {
    open_with(NULL);
    struct stream_lease lease;
    bool is_done;
    uint64_t ns;
    OK(stream_lease_take(pool, true, &lease, &err));
    CUevent event = lease.timing.started;
    assert_int_equal(ERR_INTERNAL, event_record(&device, NULL, lease.stream, &err));
    assert_int_equal(ERR_INTERNAL, event_record(&device, event, NULL, &err));
    assert_int_equal(ERR_INTERNAL, event_poll(&device, NULL, &is_done, &err));
    assert_int_equal(ERR_INTERNAL, event_wait(&device, NULL, &err));
    assert_int_equal(ERR_INTERNAL, event_elapsed_ns(&device, NULL, event, &ns, &err));
    assert_int_equal(ERR_INTERNAL, event_elapsed_ns(&device, event, NULL, &ns, &err));
    assert_int_equal(ERR_INTERNAL, stream_wait_event(&device, NULL, event, &err));
    assert_int_equal(ERR_INTERNAL, stream_wait_event(&device, lease.stream, NULL, &err));
    assert_int_equal(ERR_INTERNAL, stream_wait(&device, NULL, &err));
    assert_true(strlen(err.message) > 0);
    static const enum cpu_entry entries[] = {CPU_event_record, CPU_event_query,
        CPU_event_synchronize, CPU_event_elapsed, CPU_stream_wait_event, CPU_stream_synchronize};
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++)
        assert_int_equal(0, calls(entries[i]));
    OK(stream_lease_release(pool, &lease, &err));
    close_and_find_nothing_left();
}

TEST(recorded_events_can_be_polled_waited_for_and_measured) {
    open_with(NULL);
    struct stream_lease lease;
    CUevent fence;
    bool is_done = false;
    uint64_t ns = UINT64_MAX;
    OK(stream_lease_take(pool, true, &lease, &err));
    OK(fence_take(pool, &fence, &err));
    OK(event_record(&device, lease.timing.started, lease.stream, &err));
    OK(event_record(&device, lease.timing.stopped, lease.stream, &err));
    OK(stream_wait_event(&device, lease.stream, lease.timing.stopped, &err));
    OK(event_record(&device, fence, lease.stream, &err));
    while (!is_done) OK(event_poll(&device, fence, &is_done, &err));
    OK(event_wait(&device, fence, &err));
    OK(stream_wait(&device, lease.stream, &err));
    OK(event_elapsed_ns(&device, lease.timing.started, lease.timing.stopped, &ns, &err));
    assert_true(ns < UINT64_MAX);
    OK(stream_lease_release(pool, &lease, &err));
    OK(fence_release(pool, &fence, &err));
    close_and_find_nothing_left();
}

static CUresult answer_not_ready(CUevent event) {
    return CUDA_ERROR_NOT_READY;
}

static CUresult answer_launch_failed(CUevent event) {
    return CUDA_ERROR_LAUNCH_FAILED;
}

TEST(a_poll_tells_not_yet_from_failed) {
    cpu_device_open(&device, NULL);
    struct gpu_driver driver = *device.driver;
    struct device shown = device;
    shown.driver = &driver;
    CUevent event = (CUevent)&driver;
    bool is_done = true;
    driver.event_query = answer_not_ready;
    OK(event_poll(&shown, event, &is_done, &err));
    assert_false(is_done);
    driver.event_query = answer_launch_failed;
    assert_int_equal(ERR_GPU_FAULT, event_poll(&shown, event, &is_done, &err));
    assert_false(is_done);
    device_close(&device);
}

static float measured_ms;

static CUresult answer_measured(float *ret, CUevent started, CUevent stopped) {
    *ret = measured_ms;
    return CUDA_SUCCESS;
}

TEST(elapsed_time_is_in_ns_and_refused_where_it_makes_no_sense) {
    const struct gpu_driver driver = {.event_elapsed = answer_measured};
    const struct device shown = {.driver = &driver};
    CUevent event = (CUevent)&measured_ms;
    uint64_t ns = 7;
    static const float refused[] = {NAN, INFINITY, -INFINITY, -0.001f, 1e13f, 3e38f};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        measured_ms = refused[i];
        assert_int_equal(ERR_DRIVER, event_elapsed_ns(&shown, event, event, &ns, &err));
        assert_int_equal(7, ns);
    }
    static const struct {
        float ms;
        uint64_t ns;
    } taken[] = {{0.0f, 0}, {0.5f, 500000}, {1500.0f, 1500000000}, {1e12f, 999999995904000000}};
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++) {
        measured_ms = taken[i].ms;
        OK(event_elapsed_ns(&shown, event, event, &ns, &err));
        assert_true(ns == taken[i].ns);
    }
}

TEST(a_second_timing_event_that_cannot_be_had_returns_the_first_and_the_stream) {
    open_with("cuEventCreate:out_of_memory@2");
    struct stream_lease lease;
    assert_int_equal(ERR_DEVICE_MEMORY, stream_lease_take(pool, true, &lease, &err));
    assert_null(lease.stream);
    struct lease_counts counts = lease_pool_counts(pool);
    assert_int_equal(1, counts.streams);
    assert_int_equal(1, counts.timing_events);
    OK(stream_lease_take(pool, true, &lease, &err));
    assert_int_equal(1, calls(CPU_stream_create));
    assert_int_equal(3, calls(CPU_event_create)); /* the first, the refused, one more */
    OK(stream_lease_release(pool, &lease, &err));
    close_and_find_nothing_left();
}

TEST(a_stream_that_cannot_be_had_takes_no_event) {
    open_with("cuStreamCreate:out_of_memory@1");
    struct stream_lease lease;
    assert_int_equal(ERR_DEVICE_MEMORY, stream_lease_take(pool, true, &lease, &err));
    assert_int_equal(0, calls(CPU_event_create));
    close_and_find_nothing_left();
}

TEST(null_handles_reported_as_success_are_errors) {
    open_with("cuStreamCreate:null@1;cuEventCreate:null@1;cuEventCreate:null@3");
    struct stream_lease lease;
    CUevent fence;
    struct timing_pair pair;
    assert_int_equal(ERR_DRIVER, stream_lease_take(pool, false, &lease, &err));
    assert_null(lease.stream);
    assert_string_equal("the driver reported success with a null stream", err.message);
    assert_int_equal(ERR_DRIVER, fence_take(pool, &fence, &err));
    assert_null(fence);
    assert_int_equal(ERR_DRIVER, timing_pair_take(pool, &pair, &err));
    assert_int_equal(1, lease_pool_counts(pool).timing_events);
    assert_int_equal(0, lease_pool_counts(pool).streams + lease_pool_counts(pool).fences);
    close_and_find_nothing_left();
}

TEST(rings_that_cannot_be_had_are_a_typed_error_and_leak_nothing) {
    cpu_device_open(&device, NULL);
    pool = NULL;
    for (int i = 0; i < 3; i++) {
        rings_left = i;
        enum err code = lease_pool_create(&device, &pool, &err);
        rings_left = INT_MAX;
        assert_int_equal(ERR_NO_MEMORY, code);
        assert_null(pool);
    }
    device_close(&device);
}

enum { THREADS = 16, ROUNDS = 200 };

static atomic_uint mistakes;

/* The CPU driver's handles differ in their low bits; a stream that somebody has is marked here. */
static atomic_bool owned[1 << 16];

static void *borrow_and_return(void *context) {
    struct error mine;
    struct stream_lease lease;
    CUevent fence;
    bool failed = device_bind(&device, &mine) != ERR_OK;
    for (int i = 0; i < ROUNDS && !failed; i++) {
        failed = stream_lease_take(pool, i % 2 == 0, &lease, &mine) != ERR_OK ||
                 fence_take(pool, &fence, &mine) != ERR_OK;
        if (failed) break;
        atomic_bool *mark = &owned[(uintptr_t)lease.stream & 0xffff];
        failed = atomic_exchange(mark, true);
        failed |= event_record(&device, fence, lease.stream, &mine) != ERR_OK ||
                  event_wait(&device, fence, &mine) != ERR_OK;
        atomic_store(mark, false);
        failed |= stream_lease_release(pool, &lease, &mine) != ERR_OK ||
                  fence_release(pool, &fence, &mine) != ERR_OK;
    }
    if (failed) atomic_fetch_add(&mistakes, 1);
    return NULL;
}

TEST(many_threads_share_streams_and_events_and_leave_none) {
    open_with(NULL);
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(0, pthread_create(&threads[i], NULL, borrow_and_return, NULL));
    for (size_t i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    assert_int_equal(0, atomic_load(&mistakes));
    struct lease_counts counts = lease_pool_counts(pool);
    assert_int_equal(counts.streams, cpu_driver_counters().streams_live);
    assert_int_equal(counts.fences + counts.timing_events, cpu_driver_counters().events_live);
    close_and_find_nothing_left();
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        D(a_lease_has_a_stream_and_timing_events_only_where_asked),
        D(a_release_returns_everything_and_the_next_lease_creates_nothing),
        D(streams_do_not_block_fences_sleep_without_timing_and_timing_events_time),
        D(at_most_128_of_a_kind_are_cached_and_the_rest_is_destroyed),
        D(a_lease_released_twice_is_an_error_and_returns_nothing),
        D(a_lease_used_after_its_release_is_an_error_before_any_call),
        D(null_streams_and_events_reach_no_driver),
        D(recorded_events_can_be_polled_waited_for_and_measured),
        D(a_poll_tells_not_yet_from_failed),
        D(elapsed_time_is_in_ns_and_refused_where_it_makes_no_sense),
        D(a_second_timing_event_that_cannot_be_had_returns_the_first_and_the_stream),
        D(a_stream_that_cannot_be_had_takes_no_event),
        D(null_handles_reported_as_success_are_errors),
        D(rings_that_cannot_be_had_are_a_typed_error_and_leak_nothing),
        D(many_threads_share_streams_and_events_and_leave_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
