/* The fault script: what it accepts, and what becomes of the calls that it strikes. */
#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "mishaps.h"

TEST(good_scripts_are_accepted) {
    static const char *const good[] = {"", " ; ,", "cuMemAlloc:out_of_memory@3",
        "cuLaunchKernel:hang@2;cuMemAlloc:null@1, cuMemcpyHtoDAsync:slow=50ms@p0.01 ,seed=7",
        "cuMemsetD8Async:slow=3us@*", "cuEventRecord:slow=1s@p1",
        "cuCtxSetCurrent:not_supported@1"};
    struct error err;
    assert_int_equal(ERR_OK, cpu_driver_check_faults(NULL, &err));
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_int_equal(ERR_OK, cpu_driver_check_faults(good[i], &err));
}

TEST(bad_scripts_are_refused_with_position_and_reason) {
    static const struct {
        const char *script, *where, *what;
    } bad[] = {
        {"cuMemAlloc", "column 1:", "no FUNCTION"},
        {"cuMemAlloc:out_of_memory", "column 1:", "no FUNCTION"},
        {"cuMemAlloc:null@1;cuMemFroo:null@1", "column 19:", "unknown function"},
        {"cuMemAlloc:null@1,  cuMemAlloc:explode@1", "column 21:", "unknown effect"},
        {"cuMemAlloc:out_of_memory@0", "column 1:", "from 1"},
        {"cuMemAlloc:out_of_memory@-1", "column 1:", "from 1"},
        {"cuMemAlloc:out_of_memory@99999999999999999999", "column 1:", "from 1"},
        {"cuMemAlloc:out_of_memory@p1.5", "column 1:", "0.0 to 1.0"},
        {"cuMemAlloc:out_of_memory@pnan", "column 1:", "0.0 to 1.0"},
        {"cuMemAlloc:out_of_memory@p", "column 1:", "0.0 to 1.0"},
        {"cuMemAlloc:out_of_memory=5ms@1", "column 1:", "duration"},
        {"cuMemAlloc:slow@1", "column 1:", "duration"},
        {"cuMemAlloc:slow=5@1", "column 1:", "us, ms or s"},
        {"cuMemAlloc:slow=ms@1", "column 1:", "us, ms or s"},
        {"cuMemFree:null@1", "column 1:", "could be null"},
        {"seed=x", "column 1:", "seed is a number"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct error err;
        assert_int_equal(ERR_CONFIG, cpu_driver_check_faults(bad[i].script, &err));
        assert_non_null(strstr(err.message, bad[i].where));
        assert_non_null(strstr(err.message, bad[i].what));
        assert_true(strlen(err.fix) > 0);
    }
}

TEST(a_script_of_too_many_items_is_refused) {
    char script[33 * 32] = "";
    for (int i = 0; i < 33; i++) strcat(script, "cuMemAlloc:null@1;");
    struct error err;
    assert_int_equal(ERR_CONFIG, cpu_driver_check_faults(script, &err));
    assert_non_null(strstr(err.message, "too many"));
}

TEST(a_fault_strikes_the_call_that_it_names_and_no_other) {
    open_with("cuMemAlloc:out_of_memory@2");
    CUdeviceptr memory;
    WORKS(memory_alloc(&memory, BYTES));
    GIVES(CUDA_ERROR_OUT_OF_MEMORY, memory_alloc(&memory, BYTES));
    assert_int_equal(0, memory);
    WORKS(memory_alloc(&memory, BYTES));
    assert_int_equal(2, cpu_driver_counters().allocations_live);
    assert_int_equal(1, cpu_driver_counters().faults);
    assert_int_equal(3, cpu_driver_counters().calls[CPU_memory_alloc]);
    harness_close();
}

/* Proves: null handles from the driver. */
TEST(a_call_can_succeed_with_nothing) {
    open_with("cuMemAlloc:null@1;cuMemHostAlloc:null@1;cuStreamCreate:null@1;cuEventCreate:null@1");
    CUdeviceptr memory = 1;
    void *pinned = &memory;
    CUstream stream = (CUstream)&memory;
    CUevent event = (CUevent)&memory;
    WORKS(memory_alloc(&memory, BYTES));
    WORKS(host_alloc(&pinned, BYTES, 0));
    WORKS(stream_create(&stream, CU_STREAM_NON_BLOCKING));
    WORKS(event_create(&event, 0));
    assert_int_equal(0, memory);
    assert_null(pinned);
    assert_null(stream);
    assert_null(event);
    assert_int_equal(0, cpu_driver_counters().allocations_live);
    harness_close();
}

static uint64_t strikes_of(const char *script) {
    open_with(script);
    for (int i = 0; i < 1000; i++) {
        CUevent event;
        if (driver->event_create(&event, 0) == CUDA_SUCCESS) WORKS(event_destroy(event));
    }
    uint64_t strikes = cpu_driver_counters().faults;
    harness_close();
    return strikes;
}

TEST(a_probability_strikes_about_as_often_and_a_seed_repeats_it) {
    uint64_t strikes = strikes_of("cuEventCreate:not_supported@p0.2;seed=7");
    assert_in_range(strikes, 100, 300);
    assert_int_equal(strikes, strikes_of("cuEventCreate:not_supported@p0.2;seed=7"));
    assert_int_equal(0, strikes_of("cuEventCreate:not_supported@p0"));
    assert_int_equal(1000, strikes_of("cuEventCreate:not_supported@*"));
}

TEST(an_illegal_address_is_not_the_launch_s_answer_but_everybody_s_after_it) {
    open_with("cuLaunchKernel:illegal_address@2");
    CUstream stream = harness_stream(), other = harness_stream();
    CUevent event = harness_event(), unrelated = harness_event();
    CUdeviceptr memory = harness_memory(BYTES);
    uint32_t value = 1, n = 0;
    void *args[] = {&memory, &value, &n};
    CUfunction add = harness_probe("probe_add");
    harness_close_gate(stream); /* a launch, the first */
    assert_int_equal(CUDA_SUCCESS, harness_launch(add, 1, 1, 0, stream, args));
    WORKS(event_record(event, stream));
    GIVES(CUDA_ERROR_NOT_READY, event_query(event));
    harness_open_gate();
    const CUresult lost = CUDA_ERROR_ILLEGAL_ADDRESS;
    GIVES(lost, event_synchronize(event));
    GIVES(lost, event_query(event));
    GIVES(lost, event_query(unrelated));
    GIVES(lost, stream_synchronize(other));
    GIVES(lost, memory_alloc(&memory, BYTES));
    GIVES(lost, memory_free(memory));
    assert_int_equal(lost, harness_launch(add, 1, 1, 0, other, args));
    assert_int_equal(1, cpu_driver_counters().launches); /* the gate alone */
    CUcontext context;
    WORKS(primary_context_release(0));
    GIVES(lost, primary_context_retain(&context, 0));
}

static void loses_the_context_with(const char *script, CUresult result) {
    open_with(script);
    CUstream stream = harness_stream();
    CUdeviceptr memory = harness_memory(BYTES);
    WORKS(fill(memory, 0, BYTES, stream));
    GIVES(result, stream_synchronize(stream));
    GIVES(result, memory_alloc(&memory, BYTES));
    cpu_driver_reset();
}

TEST(every_lasting_error_lasts) {
    loses_the_context_with("cuMemsetD8Async:illegal_address@1", CUDA_ERROR_ILLEGAL_ADDRESS);
    loses_the_context_with("cuMemsetD8Async:assert@1", CUDA_ERROR_ASSERT);
    loses_the_context_with("cuMemsetD8Async:launch_failed@*", CUDA_ERROR_LAUNCH_FAILED);
    loses_the_context_with("cuMemsetD8Async:launch_timeout@1", CUDA_ERROR_LAUNCH_TIMEOUT);
    loses_the_context_with("cuMemsetD8Async:ecc_uncorrectable@1", CUDA_ERROR_ECC_UNCORRECTABLE);
}

TEST(an_error_of_the_work_strikes_inside_calls_that_enqueue_nothing) {
    open_with("cuMemAlloc:illegal_address@1");
    CUdeviceptr memory;
    GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, memory_alloc(&memory, BYTES));
    GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, memory_free(memory));
}

TEST(one_device_s_loss_is_not_the_other_s) {
    const struct gpu_cpu_options cpu = {.device_count = 2,
        .memory_bytes = HARNESS_MEMORY_BYTES,
        .faults = "cuMemsetD8Async:illegal_address@1"};
    harness_open(&cpu);
    CUstream stream = harness_stream();
    CUcontext second;
    CUdeviceptr memory = harness_memory(BYTES);
    WORKS(primary_context_retain(&second, 1));
    WORKS(fill(memory, 0, BYTES, stream));
    GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, stream_synchronize(stream));
    WORKS(context_set_current(second));
    WORKS(memory_alloc(&memory, BYTES));
}

TEST(a_hung_launch_never_completes_while_other_streams_go_on) {
    open_with("cuMemsetD8Async:hang@1");
    CUstream hung = harness_stream(), other = harness_stream(), behind = harness_stream();
    CUevent event = harness_event(), done = harness_event(), late = harness_event();
    CUdeviceptr memory = harness_memory(BYTES), others = harness_memory(BYTES);
    WORKS(fill(memory, 0, BYTES, hung));
    WORKS(event_record(event, hung));
    WORKS(stream_wait_event(behind, event, 0));
    WORKS(event_record(late, behind));
    WORKS(fill(others, 0, BYTES, other));
    WORKS(event_record(done, other));
    WORKS(event_synchronize(done));
    for (int i = 0; i < 100; i++) {
        GIVES(CUDA_ERROR_NOT_READY, event_query(event));
        GIVES(CUDA_ERROR_NOT_READY, event_query(late));
    }
    harness_close();
}

struct waiter {
    CUcontext context;
    CUstream stream;
    CUresult result;
};

static void *wait_for_stream(void *argument) {
    struct waiter *waiter = argument;
    WORKS(context_set_current(waiter->context));
    waiter->result = driver->stream_synchronize(waiter->stream);
    return NULL;
}

TEST(who_waits_for_a_hung_stream_is_let_go_by_a_reset) {
    open_with("cuMemsetD8Async:hang@1");
    struct waiter waiter = {.stream = harness_stream()};
    CUdeviceptr memory = harness_memory(BYTES);
    WORKS(primary_context_retain(&waiter.context, 0));
    WORKS(fill(memory, 0, BYTES, waiter.stream));
    pthread_t thread;
    pthread_create(&thread, NULL, wait_for_stream, &waiter);
    while (cpu_driver_counters().calls[CPU_stream_synchronize] == 0) {
    }
    cpu_driver_reset();
    pthread_join(thread, NULL);
    assert_int_equal(CUDA_ERROR_DEINITIALIZED, waiter.result);
}

TEST(a_hung_stream_is_let_go_by_another_stream_s_error) {
    open_with("cuMemsetD8Async:hang@1;cuMemsetD8Async:illegal_address@2");
    struct waiter waiter = {.stream = harness_stream()};
    CUstream other = harness_stream();
    CUdeviceptr memory = harness_memory(BYTES), others = harness_memory(BYTES);
    WORKS(primary_context_retain(&waiter.context, 0));
    WORKS(fill(memory, 0, BYTES, waiter.stream));
    pthread_t thread;
    pthread_create(&thread, NULL, wait_for_stream, &waiter);
    WORKS(fill(others, 0, BYTES, other));
    pthread_join(thread, NULL);
    assert_int_equal(CUDA_ERROR_ILLEGAL_ADDRESS, waiter.result);
}

TEST(a_slow_copy_takes_its_time_on_the_stream) {
    open_with("cuMemcpyHtoDAsync:slow=30ms@1");
    CUstream stream = harness_stream();
    CUdeviceptr memory = harness_memory(BYTES);
    void *pinned = harness_pinned(BYTES);
    uint64_t start = clock_ns();
    WORKS(copy_to_device(memory, pinned, BYTES, stream));
    WORKS(stream_synchronize(stream));
    assert_true(clock_ns() - start >= 30000000);
    harness_close();
}

TEST(a_slow_call_takes_its_time_and_works) {
    open_with("cuMemAlloc:slow=10ms@1");
    uint64_t start = clock_ns();
    harness_memory(BYTES);
    assert_true(clock_ns() - start >= 10000000);
    harness_close();
}

TEST(a_configuration_without_devices_or_with_too_many_is_refused) {
    struct error err;
    assert_int_equal(ERR_CONFIG, cpu_driver_configure(0, BYTES, NULL, &err));
    assert_int_equal(ERR_CONFIG, cpu_driver_configure(17, BYTES, NULL, &err));
    struct gpu_driver table;
    int count;
    cpu_driver_table(&table);
    assert_int_equal(CUDA_ERROR_NOT_INITIALIZED, table.device_count(&count));
    assert_int_equal(CUDA_ERROR_NO_DEVICE, table.init(0));
}

RUN_CPU_TESTS(C(good_scripts_are_accepted), C(bad_scripts_are_refused_with_position_and_reason),
    C(a_script_of_too_many_items_is_refused),
    C(a_fault_strikes_the_call_that_it_names_and_no_other), C(a_call_can_succeed_with_nothing),
    C(a_probability_strikes_about_as_often_and_a_seed_repeats_it),
    C(an_illegal_address_is_not_the_launch_s_answer_but_everybody_s_after_it),
    C(every_lasting_error_lasts), C(an_error_of_the_work_strikes_inside_calls_that_enqueue_nothing),
    C(one_device_s_loss_is_not_the_other_s),
    C(a_hung_launch_never_completes_while_other_streams_go_on),
    C(who_waits_for_a_hung_stream_is_let_go_by_a_reset),
    C(a_hung_stream_is_let_go_by_another_stream_s_error),
    C(a_slow_copy_takes_its_time_on_the_stream), C(a_slow_call_takes_its_time_and_works),
    C(a_configuration_without_devices_or_with_too_many_is_refused))
