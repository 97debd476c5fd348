/* What the worker relies on, of either driver: GPU_WORKER_TEST_DRIVER=cpu or cuda. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "gpu/driver_harness.h"

enum { BYTES = 4096 };

static int set_up(void **state) {
    const struct gpu_cpu_options cpu = {.device_count = 2, .memory_bytes = HARNESS_MEMORY_BYTES};
    harness_open(&cpu);
    return 0;
}

static int tear_down(void **state) {
    harness_close();
    return 0;
}

/* A pinned block of BYTES, all `value`. */
static uint8_t *pinned_of(uint8_t value) {
    uint8_t *block = harness_pinned(BYTES);
    memset(block, value, BYTES);
    return block;
}

static bool is_all(const uint8_t *block, uint8_t value) {
    return block[0] == value && memcmp(block, block + 1, BYTES - 1) == 0;
}

/* Time for whatever does not wait as it should to show it: work on a stream of its own, many times.
 */
static void let_others_run(void) {
    CUstream stream = harness_stream();
    CUdeviceptr memory = harness_memory(BYTES);
    for (int i = 0; i < 100; i++) {
        WORKS(fill(memory, 0, BYTES, stream));
        WORKS(stream_synchronize(stream));
    }
}

TEST(allocations_are_aligned_and_apart) {
    CUdeviceptr a = harness_memory(1), b = harness_memory(1);
    assert_int_equal(0, a % 256);
    assert_int_equal(0, b % 256);
    assert_true(a + 256 <= b || b + 256 <= a);
    WORKS(memory_free(a));
    WORKS(memory_free(b));
}

TEST(an_allocation_of_no_bytes_is_refused) {
    CUdeviceptr memory;
    GIVES(CUDA_ERROR_INVALID_VALUE, memory_alloc(&memory, 0));
}

TEST(a_second_free_of_the_same_memory_is_refused) {
    CUdeviceptr memory = harness_memory(BYTES);
    WORKS(memory_free(memory));
    GIVES(CUDA_ERROR_INVALID_VALUE, memory_free(memory));
}

TEST(too_large_an_allocation_is_out_of_memory_and_leaves_the_context_well) {
    CUdeviceptr memory;
    GIVES(CUDA_ERROR_OUT_OF_MEMORY, memory_alloc(&memory, (size_t)1 << 50));
    WORKS(memory_free(harness_memory(BYTES)));
}

TEST(bytes_come_back_from_the_device_as_they_were_sent) {
    CUstream stream = harness_stream();
    CUdeviceptr memory = harness_memory(BYTES);
    uint8_t *up = harness_pinned(BYTES), *down = pinned_of(0);
    for (int i = 0; i < BYTES; i++) up[i] = (uint8_t)(i * 7);
    WORKS(copy_to_device(memory, up, BYTES, stream));
    WORKS(copy_to_host(down, memory + 100, 1000, stream));
    WORKS(stream_synchronize(stream));
    assert_memory_equal(up + 100, down, 1000);
    assert_int_equal(0, down[1000]);
}

/* A page of the process, mapped as the files of blobs are. */
static uint8_t *mapped_page(void) {
    FILE *file = tmpfile();
    assert_non_null(file);
    for (int i = 0; i < BYTES; i++) assert_int_equal(fputc(i % 251, file), i % 251);
    assert_int_equal(fflush(file), 0);
    void *page = mmap(NULL, BYTES, PROT_READ, MAP_SHARED | MAP_POPULATE, fileno(file), 0);
    assert_ptr_not_equal(page, MAP_FAILED);
    fclose(file);
    return page;
}

TEST(a_file_that_is_mapped_to_be_read_can_be_registered_and_copied) {
    CUstream stream = harness_stream();
    CUdeviceptr memory = harness_memory(BYTES);
    uint8_t *page = mapped_page(), *down = pinned_of(0);
    const unsigned flags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_READ_ONLY;
    CUresult result = driver->host_register(page, BYTES, flags);
    if (result == CUDA_ERROR_NOT_SUPPORTED) skip();
    assert_int_equal(result, CUDA_SUCCESS);
    WORKS(copy_to_device(memory, page, BYTES, stream));
    WORKS(copy_to_host(down, memory, BYTES, stream));
    WORKS(stream_synchronize(stream));
    WORKS(host_unregister(page));
    assert_memory_equal(page, down, BYTES);
    munmap(page, BYTES);
}

TEST(memory_is_registered_once_and_unregistered_once) {
    /* Of no file: those of some file systems cannot be registered to be written. */
    void *page = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(page, MAP_FAILED);
    WORKS(host_register(page, BYTES, CU_MEMHOSTREGISTER_PORTABLE));
    GIVES(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
        host_register(page, BYTES, CU_MEMHOSTREGISTER_PORTABLE));
    WORKS(host_unregister(page));
    GIVES(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, host_unregister(page));
    WORKS(host_register(page, BYTES, CU_MEMHOSTREGISTER_PORTABLE));
    WORKS(host_unregister(page));
    munmap(page, BYTES);
}

TEST(memory_that_is_not_pinned_can_be_copied_too) {
    CUstream stream = harness_stream();
    CUdeviceptr memory = harness_memory(BYTES);
    uint8_t up[64] = {1, 2, 3}, down[64] = {0};
    WORKS(copy_to_device(memory, up, sizeof up, stream));
    WORKS(copy_to_host(down, memory, sizeof down, stream));
    WORKS(stream_synchronize(stream));
    assert_memory_equal(up, down, sizeof up);
}

TEST(kernels_work_in_mapped_host_memory) {
    CUstream stream = harness_stream();
    uint32_t *memory;
    CUdeviceptr mapped = 0;
    uint32_t value = 5, n = 3;
    WORKS(
        host_alloc((void **)&memory, BYTES, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
    WORKS(host_device_pointer(&mapped, memory, 0));
    for (uint32_t i = 0; i < 4; i++) memory[i] = i;
    void *args[] = {&mapped, &value, &n};
    assert_int_equal(
        CUDA_SUCCESS, harness_launch(harness_probe("probe_add"), 1, 64, 0, stream, args));
    WORKS(stream_synchronize(stream));
    const uint32_t expected[] = {5, 6, 7, 3};
    assert_memory_equal(expected, memory, sizeof expected);
    WORKS(host_free(memory));
}

TEST(a_fill_sets_its_range_and_nothing_else) {
    CUstream stream = harness_stream();
    CUdeviceptr memory = harness_memory(BYTES);
    uint8_t *down = pinned_of(0);
    WORKS(fill(memory, 1, BYTES, stream));
    WORKS(fill(memory + 3, 2, 5, stream));
    WORKS(copy_to_host(down, memory, BYTES, stream));
    WORKS(stream_synchronize(stream));
    const uint8_t expected[10] = {1, 1, 1, 2, 2, 2, 2, 2, 1, 1};
    assert_memory_equal(expected, down, sizeof expected);
    assert_int_equal(1, down[BYTES - 1]);
}

TEST(work_on_a_stream_waits_for_the_work_before_it) {
    CUstream stream = harness_stream();
    CUdeviceptr memory = harness_memory(BYTES);
    uint8_t *up = pinned_of(5), *down = pinned_of(0);
    CUevent done = harness_event();
    harness_close_gate(stream);
    WORKS(copy_to_device(memory, up, BYTES, stream));
    WORKS(copy_to_host(down, memory, BYTES, stream));
    WORKS(event_record(done, stream));
    GIVES(CUDA_ERROR_NOT_READY, event_query(done));
    let_others_run();
    GIVES(CUDA_ERROR_NOT_READY, event_query(done));
    assert_true(is_all(down, 0));
    harness_open_gate();
    WORKS(event_synchronize(done));
    WORKS(event_query(done));
    assert_true(is_all(down, 5));
}

TEST(an_event_is_complete_though_its_stream_has_more_to_do) {
    CUstream stream = harness_stream();
    CUevent event = harness_event();
    WORKS(event_record(event, stream));
    harness_close_gate(stream);
    WORKS(event_synchronize(event));
    WORKS(event_query(event));
    harness_open_gate();
    WORKS(stream_synchronize(stream));
}

TEST(streams_do_not_wait_for_each_other_unasked) {
    CUstream gated = harness_stream(), free_stream = harness_stream();
    CUevent last = harness_event();
    CUdeviceptr memory = harness_memory(BYTES);
    harness_close_gate(gated);
    WORKS(event_record(last, gated));
    WORKS(fill(memory, 0, BYTES, free_stream));
    WORKS(stream_synchronize(free_stream));
    GIVES(CUDA_ERROR_NOT_READY, event_query(last));
    harness_open_gate();
    WORKS(stream_synchronize(gated));
}

TEST(a_stream_waits_for_an_event_of_another) {
    CUstream producer = harness_stream(), consumer = harness_stream();
    CUevent produced = harness_event(), consumed = harness_event();
    CUdeviceptr memory = harness_memory(BYTES);
    uint8_t *down = pinned_of(0);
    harness_close_gate(producer);
    WORKS(fill(memory, 9, BYTES, producer));
    WORKS(event_record(produced, producer));
    WORKS(stream_wait_event(consumer, produced, 0));
    WORKS(copy_to_host(down, memory, BYTES, consumer));
    WORKS(event_record(consumed, consumer));
    GIVES(CUDA_ERROR_NOT_READY, event_query(consumed));
    let_others_run();
    GIVES(CUDA_ERROR_NOT_READY, event_query(consumed));
    assert_true(is_all(down, 0));
    harness_open_gate();
    WORKS(event_synchronize(consumed));
    assert_true(is_all(down, 9));
}

TEST(a_wait_means_the_recording_that_was_there_when_it_was_enqueued) {
    CUstream first = harness_stream(), second = harness_stream(), waiter = harness_stream();
    CUevent event = harness_event(), passed = harness_event();
    WORKS(event_record(event, first));
    WORKS(stream_wait_event(waiter, event, 0));
    WORKS(event_record(passed, waiter));
    harness_close_gate(second);
    WORKS(event_record(event, second)); /* does not hold the waiter back any more */
    WORKS(event_synchronize(passed));
    GIVES(CUDA_ERROR_NOT_READY, event_query(event));
    harness_open_gate();
    WORKS(event_synchronize(event));
}

TEST(an_event_that_was_never_recorded_is_complete) {
    CUstream stream = harness_stream();
    CUevent event = harness_event();
    WORKS(event_query(event));
    WORKS(event_synchronize(event));
    WORKS(stream_wait_event(stream, event, 0));
    WORKS(stream_synchronize(stream));
}

TEST(timing_events_measure_from_one_to_the_other) {
    CUstream stream = harness_stream();
    CUevent start, end;
    CUdeviceptr memory = harness_memory(BYTES);
    float ms = -1;
    WORKS(event_create(&start, CU_EVENT_DEFAULT));
    WORKS(event_create(&end, CU_EVENT_DEFAULT));
    GIVES(CUDA_ERROR_INVALID_HANDLE, event_elapsed(&ms, start, end)); /* never recorded */
    harness_close_gate(stream);
    WORKS(event_record(start, stream));
    WORKS(fill(memory, 0, BYTES, stream));
    WORKS(event_record(end, stream));
    GIVES(CUDA_ERROR_NOT_READY, event_elapsed(&ms, start, end));
    harness_open_gate();
    WORKS(event_synchronize(end));
    WORKS(event_elapsed(&ms, start, end));
    assert_true(ms >= 0 && ms < 60000);
    assert_int_equal(CUDA_SUCCESS, driver->event_elapsed(&ms, end, start));
    assert_true(ms <= 0);
}

TEST(events_without_timing_refuse_to_measure) {
    CUstream stream = harness_stream();
    CUevent start = harness_event(), end = harness_event();
    float ms;
    WORKS(event_record(start, stream));
    WORKS(event_record(end, stream));
    WORKS(stream_synchronize(stream));
    GIVES(CUDA_ERROR_INVALID_HANDLE, event_elapsed(&ms, start, end));
}

TEST(a_destroyed_stream_still_finishes_its_work) {
    CUstream stream = harness_stream();
    CUevent done = harness_event();
    CUdeviceptr memory = harness_memory(BYTES);
    uint8_t *down = pinned_of(0);
    WORKS(fill(memory, 3, BYTES, stream));
    harness_close_gate(stream);
    WORKS(copy_to_host(down, memory, BYTES, stream));
    WORKS(event_record(done, stream));
    WORKS(stream_destroy(stream));
    assert_true(is_all(down, 0));
    harness_open_gate();
    WORKS(event_synchronize(done));
    assert_true(is_all(down, 3));
}

static void *call_without_context(void *ret) {
    CUdeviceptr memory;
    *(CUresult *)ret = driver->memory_alloc(&memory, BYTES);
    return NULL;
}

static void *call_with_context(void *ret) {
    CUcontext context;
    CUdeviceptr memory;
    WORKS(primary_context_retain(&context, 0));
    WORKS(context_set_current(context));
    *(CUresult *)ret = driver->memory_alloc(&memory, BYTES);
    WORKS(memory_free(memory));
    WORKS(primary_context_release(0));
    return NULL;
}

/* Proves: bound threads. */
TEST(a_thread_calls_nothing_before_it_has_bound_a_context) {
    pthread_t thread;
    CUresult result = CUDA_SUCCESS;
    pthread_create(&thread, NULL, call_without_context, &result);
    pthread_join(thread, NULL);
    assert_int_equal(CUDA_ERROR_INVALID_CONTEXT, result);
    pthread_create(&thread, NULL, call_with_context, &result);
    pthread_join(thread, NULL);
    assert_int_equal(CUDA_SUCCESS, result);
}

/* Proves: the cache of modules. */
TEST(an_image_that_is_none_is_rejected_with_a_log) {
    char log[1024] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)sizeof log};
    CUmodule module;
    struct error err;
    const char *image = ".version 6.0\n.target sm_70\n.address_size 64\nnonsense;\n";
    enum err code = GPU_TRY(driver, module_load(&module, image, 2, options, values), &err);
    assert_int_equal(ERR_MODULE_REJECTED, code);
    assert_true(strlen(log) > 0);
}

TEST(a_function_that_the_module_lacks_is_rejected) {
    CUfunction function;
    struct error err;
    enum err code =
        GPU_TRY(driver, module_function(&function, harness_program("saxpy"), "sa"), &err);
    assert_int_equal(ERR_MODULE_REJECTED, code);
    assert_int_equal(CUDA_ERROR_NOT_FOUND, err.native);
}

static void run_saxpy(float *y, uint32_t n) {
    CUstream stream = harness_stream();
    CUfunction saxpy;
    WORKS(module_function(&saxpy, harness_program("saxpy"), "saxpy"));
    CUdeviceptr dx = harness_memory(n * sizeof *y), dy = harness_memory(n * sizeof *y);
    float a = 2.0f;
    WORKS(copy_to_device(dx, y, n * sizeof *y, stream));
    WORKS(copy_to_device(dy, y, n * sizeof *y, stream));
    assert_int_equal(CUDA_SUCCESS,
        harness_launch(saxpy, (n + 255) / 256, 256, 0, stream, (void *[]){&a, &dx, &dy, &n}));
    WORKS(copy_to_host(y, dy, n * sizeof *y, stream));
    WORKS(stream_synchronize(stream));
}

TEST(a_kernel_runs_with_parameters_by_value) {
    enum { N = 1000 };
    static float y[N];
    for (int i = 0; i < N; i++) y[i] = (float)i;
    run_saxpy(y, N);
    for (int i = 0; i < N; i++) assert_true(y[i] == 3.0f * (float)i);
}

TEST(parameters_are_copied_by_the_launch) {
    CUstream stream = harness_stream();
    CUdeviceptr memory = harness_memory(BYTES);
    CUfunction store = harness_probe("probe_store");
    uint32_t index = 3, value = 42, got = 0;
    harness_close_gate(stream);
    assert_int_equal(
        CUDA_SUCCESS, harness_launch(store, 1, 1, 0, stream, (void *[]){&memory, &index, &value}));
    index = 0;
    value = 0;
    harness_open_gate();
    WORKS(stream_synchronize(stream));
    WORKS(copy_to_host(&got, memory + 3 * sizeof got, sizeof got, stream));
    WORKS(stream_synchronize(stream));
    assert_int_equal(42, got);
}

TEST(threads_of_a_block_meet_at_barriers) {
    enum { BLOCK = 128, BLOCKS = 3, N = BLOCK * BLOCKS };
    CUstream stream = harness_stream();
    CUdeviceptr memory = harness_memory(N * sizeof(uint32_t));
    CUfunction rotate = harness_probe("probe_rotate");
    uint32_t values[N], rounds = 5;
    for (uint32_t i = 0; i < N; i++) values[i] = i;
    WORKS(copy_to_device(memory, values, sizeof values, stream));
    assert_int_equal(CUDA_SUCCESS, harness_launch(rotate, BLOCKS, BLOCK, BLOCK * sizeof(uint32_t),
                                       stream, (void *[]){&memory, &rounds}));
    WORKS(copy_to_host(values, memory, sizeof values, stream));
    WORKS(stream_synchronize(stream));
    for (uint32_t i = 0; i < N; i++)
        assert_int_equal(i / BLOCK * BLOCK + (i % BLOCK + rounds) % BLOCK, values[i]);
}

/* Proves: checks before any work of the GPU. */
TEST(a_launch_outside_the_limits_is_refused_and_leaves_the_context_well) {
    CUstream stream = harness_stream();
    CUdeviceptr memory = harness_memory(BYTES);
    CUfunction store = harness_probe("probe_store");
    uint32_t zero = 0;
    void *args[] = {&memory, &zero, &zero};
    const struct {
        unsigned grid[3], block[3], shared_bytes;
    } wrong[] = {
        {{0, 1, 1}, {1, 1, 1}, 0},
        {{1, 1, 1}, {0, 1, 1}, 0},
        {{1, 65536, 1}, {1, 1, 1}, 0},
        {{1, 1, 65536}, {1, 1, 1}, 0},
        {{1, 1, 1}, {1025, 1, 1}, 0},
        {{1, 1, 1}, {1, 1, 65}, 0},
        {{1, 1, 1}, {64, 32, 1}, 0},
        {{1, 1, 1}, {1, 1, 1}, 48 * 1024 + 1},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        GIVES(CUDA_ERROR_INVALID_VALUE,
            launch(store, wrong[i].grid[0], wrong[i].grid[1], wrong[i].grid[2], wrong[i].block[0],
                wrong[i].block[1], wrong[i].block[2], wrong[i].shared_bytes, stream, args, NULL));
    assert_int_equal(CUDA_SUCCESS, harness_launch(store, 1, 1, 0, stream, args));
    WORKS(stream_synchronize(stream));
}

TEST(more_shared_memory_is_there_for_who_asks_before) {
    CUstream stream = harness_stream();
    CUdeviceptr memory = harness_memory(BYTES);
    CUfunction shared = harness_probe("probe_shared");
    const CUfunction_attribute attribute = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    int most = 0, set = 0;
    WORKS(device_attribute(&most, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 0));
    GIVES(CUDA_ERROR_INVALID_VALUE, function_set_attribute(shared, attribute, most + 1));
    WORKS(function_set_attribute(shared, attribute, most));
    WORKS(function_attribute(&set, attribute, shared));
    assert_int_equal(most, set);
    assert_int_equal(
        CUDA_SUCCESS, harness_launch(shared, 1, 1, (unsigned)most, stream, (void *[]){&memory}));
    WORKS(stream_synchronize(stream));
}

/* Proves: cooperative launches. */
TEST(a_cooperative_launch_must_fit_at_once) {
    CUstream stream = harness_stream();
    CUdeviceptr memory = harness_memory(BYTES);
    CUfunction add = harness_probe("probe_add");
    uint32_t value = 1, n = 1;
    void *args[] = {&memory, &value, &n};
    int blocks = 0, multiprocessors = 0;
    WORKS(function_occupancy(&blocks, add, 256, 0));
    WORKS(device_attribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    unsigned most = (unsigned)(blocks * multiprocessors);
    assert_true(most > 0);
    WORKS(launch_cooperative(add, most, 1, 1, 256, 1, 1, 0, stream, args));
    GIVES(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
        launch_cooperative(add, most + 1, 1, 1, 256, 1, 1, 0, stream, args));
    WORKS(stream_synchronize(stream));
}

/* Proves: cooperative launches. */
TEST(blocks_of_a_cooperative_grid_wait_for_each_other) {
    enum { BLOCKS = 40 };
    CUstream stream = harness_stream();
    CUdeviceptr memory = harness_memory(BYTES), word = harness_memory(sizeof(uint32_t));
    CUfunction rotate = harness_probe("probe_rotate_grid");
    uint32_t values[BLOCKS], rounds = 7;
    void *args[] = {&memory, &word, &rounds};
    for (uint32_t i = 0; i < BLOCKS; i++) values[i] = i;
    WORKS(fill(word, 0, sizeof(uint32_t), stream));
    WORKS(copy_to_device(memory, values, sizeof values, stream));
    for (int launch = 0; launch < 2; launch++) /* the barrier's word is as good as new */
        WORKS(launch_cooperative(rotate, BLOCKS, 1, 1, 1, 1, 1, 0, stream, args));
    WORKS(copy_to_host(values, memory, sizeof values, stream));
    WORKS(stream_synchronize(stream));
    for (uint32_t i = 0; i < BLOCKS; i++) assert_int_equal((i + 2 * rounds) % BLOCKS, values[i]);
}

TEST(a_device_tells_its_name_and_limits) {
    char name[64] = "";
    int count = 0, version = 0, warp = 0, threads = 0;
    WORKS(device_count(&count));
    WORKS(driver_version(&version));
    WORKS(device_name(name, sizeof name, 0));
    WORKS(device_attribute(&warp, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0));
    WORKS(device_attribute(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0));
    assert_true(count >= 1);
    assert_true(version >= 11030);
    assert_true(strlen(name) > 0);
    assert_int_equal(32, warp);
    assert_int_equal(1024, threads);
    CUdevice device;
    GIVES(CUDA_ERROR_INVALID_DEVICE, device_get(&device, count));
}

#define C(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        C(allocations_are_aligned_and_apart),
        C(an_allocation_of_no_bytes_is_refused),
        C(a_second_free_of_the_same_memory_is_refused),
        C(too_large_an_allocation_is_out_of_memory_and_leaves_the_context_well),
        C(bytes_come_back_from_the_device_as_they_were_sent),
        C(a_file_that_is_mapped_to_be_read_can_be_registered_and_copied),
        C(memory_is_registered_once_and_unregistered_once),
        C(memory_that_is_not_pinned_can_be_copied_too),
        C(kernels_work_in_mapped_host_memory),
        C(a_fill_sets_its_range_and_nothing_else),
        C(work_on_a_stream_waits_for_the_work_before_it),
        C(an_event_is_complete_though_its_stream_has_more_to_do),
        C(streams_do_not_wait_for_each_other_unasked),
        C(a_stream_waits_for_an_event_of_another),
        C(a_wait_means_the_recording_that_was_there_when_it_was_enqueued),
        C(an_event_that_was_never_recorded_is_complete),
        C(timing_events_measure_from_one_to_the_other),
        C(events_without_timing_refuse_to_measure),
        C(a_destroyed_stream_still_finishes_its_work),
        C(a_thread_calls_nothing_before_it_has_bound_a_context),
        C(an_image_that_is_none_is_rejected_with_a_log),
        C(a_function_that_the_module_lacks_is_rejected),
        C(a_kernel_runs_with_parameters_by_value),
        C(parameters_are_copied_by_the_launch),
        C(threads_of_a_block_meet_at_barriers),
        C(a_launch_outside_the_limits_is_refused_and_leaves_the_context_well),
        C(more_shared_memory_is_there_for_who_asks_before),
        C(a_cooperative_launch_must_fit_at_once),
        C(blocks_of_a_cooperative_grid_wait_for_each_other),
        C(a_device_tells_its_name_and_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
