/* Device and pinned memory of the CPU driver, and the mistakes that it finds. */
#include <stdlib.h>
#include <string.h>

#include "mishaps.h"

static uint64_t in_use(void) {
    return cpu_driver_counters().device_bytes_live;
}

/* Writes one word where it should not, as a kernel does. */
static void store(CUstream stream, CUdeviceptr to, uint32_t index) {
    uint32_t value = 7;
    CUfunction function = harness_probe("probe_store");
    assert_int_equal(
        CUDA_SUCCESS, harness_launch(function, 1, 1, 0, stream, (void *[]){&to, &index, &value}));
}

TEST(fresh_memory_is_poisoned_not_zero) {
    open_with(NULL);
    const uint8_t *memory = host_pointer(harness_memory(BYTES));
    const uint8_t *pinned = harness_pinned(BYTES);
    for (int i = 0; i < BYTES; i++) {
        assert_int_equal(0xcb, memory[i]);
        assert_int_equal(0xcb, pinned[i]);
    }
    harness_close();
}

TEST(memory_beyond_the_limit_is_out_of_memory_until_some_is_freed) {
    open_with(NULL);
    CUdeviceptr all = harness_memory(HARNESS_MEMORY_BYTES), one;
    GIVES(CUDA_ERROR_OUT_OF_MEMORY, memory_alloc(&one, 1));
    WORKS(memory_free(all));
    WORKS(memory_alloc(&one, 1));
    harness_close();
}

TEST(bytes_in_use_are_counted_in_units_of_512) {
    open_with(NULL);
    CUdeviceptr a = harness_memory(1), b = harness_memory(513);
    assert_int_equal(0, a % 512);
    assert_int_equal(3 * 512, in_use());
    assert_int_equal(2, cpu_driver_counters().allocations_live);
    WORKS(memory_free(a));
    assert_int_equal(2 * 512, in_use());
    WORKS(memory_free(b));
    assert_int_equal(0, in_use());
    assert_int_equal(0, cpu_driver_counters().allocations_live);
    harness_close();
}

TEST(devices_have_their_own_memory) {
    const struct gpu_cpu_options cpu = {.device_count = 2, .memory_bytes = 1 << 20};
    harness_open(&cpu);
    CUdeviceptr first = harness_memory(1 << 20);
    CUcontext second;
    CUstream stream;
    WORKS(primary_context_retain(&second, 1));
    WORKS(context_set_current(second));
    CUdeviceptr memory = harness_memory(1 << 20);
    WORKS(stream_create(&stream, CU_STREAM_NON_BLOCKING));
    WORKS(fill(memory, 0, 1, stream));
    GIVES(CUDA_ERROR_INVALID_VALUE, fill(first, 0, 1, stream));
    GIVES(CUDA_ERROR_INVALID_VALUE, memory_free(first));
    WORKS(stream_synchronize(stream));
    harness_close();
}

TEST(a_range_must_lie_in_one_allocation) {
    open_with(NULL);
    CUstream stream = harness_stream();
    CUdeviceptr memory = harness_memory(BYTES);
    uint8_t *pinned = harness_pinned(BYTES);
    WORKS(copy_to_device(memory, pinned, BYTES, stream));
    GIVES(CUDA_ERROR_INVALID_VALUE, copy_to_device(memory, pinned, BYTES + 1, stream));
    GIVES(CUDA_ERROR_INVALID_VALUE, copy_to_device(memory + 1, pinned, BYTES, stream));
    GIVES(CUDA_ERROR_INVALID_VALUE, copy_to_host(pinned + 1, memory, BYTES, stream));
    GIVES(CUDA_ERROR_INVALID_VALUE, fill(memory + BYTES, 0, 1, stream));
    GIVES(CUDA_ERROR_INVALID_VALUE, fill(memory, 0, SIZE_MAX, stream));
    GIVES(CUDA_ERROR_INVALID_VALUE, fill((CUdeviceptr)(uintptr_t)pinned, 0, 1, stream));
    GIVES(CUDA_ERROR_INVALID_VALUE,
        copy_to_device(memory, host_pointer(memory + 8), 8, stream)); /* no host memory */
    WORKS(stream_synchronize(stream));
    harness_close();
}

TEST(copies_of_nothing_move_nothing) {
    open_with(NULL);
    CUstream stream = harness_stream();
    WORKS(copy_to_device(0, NULL, 0, stream));
    WORKS(fill(0, 0, 0, stream));
    WORKS(stream_synchronize(stream));
    assert_int_equal(0, cpu_driver_counters().bytes_to_device);
    harness_close();
}

TEST(copies_are_counted_by_what_they_moved) {
    open_with(NULL);
    CUstream stream = harness_stream();
    CUdeviceptr memory = harness_memory(BYTES);
    uint8_t *pinned = harness_pinned(BYTES), pageable[16] = {0};
    WORKS(copy_to_device(memory, pinned, 1000, stream));
    WORKS(copy_to_device(memory, pageable, sizeof pageable, stream));
    WORKS(copy_to_host(pinned, memory, 300, stream));
    WORKS(fill(memory, 0, 77, stream));
    WORKS(stream_synchronize(stream));
    struct cpu_driver_counters counters = cpu_driver_counters();
    assert_int_equal(1016, counters.bytes_to_device);
    assert_int_equal(300, counters.bytes_to_host);
    assert_int_equal(77, counters.bytes_filled);
    assert_int_equal(1, counters.copies_pageable);
    assert_int_equal(2, counters.calls[CPU_copy_to_device]);
    harness_close();
}

TEST(a_kernel_that_writes_behind_its_buffer_loses_the_context) {
    open_with(NULL);
    CUstream stream = harness_stream();
    CUdeviceptr memory = harness_memory(BYTES);
    store(stream, memory, BYTES / sizeof(uint32_t));
    GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, stream_synchronize(stream));
    assert_int_equal(1, cpu_driver_counters().guards_broken);
}

TEST(a_write_before_an_allocation_is_found_when_it_is_freed) {
    open_with(NULL);
    CUdeviceptr memory = harness_memory(BYTES);
    uint8_t *data = host_pointer(memory);
    data[-1] = 0;
    WORKS(memory_free(memory));
    assert_int_equal(1, cpu_driver_counters().guards_broken);
    GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, memory_alloc(&memory, BYTES));
}

TEST(a_write_past_pinned_memory_is_found_by_a_check) {
    open_with(NULL);
    uint8_t *pinned = harness_pinned(100);
    pinned[100] = 0;
    cpu_driver_check_memory();
    assert_int_equal(1, cpu_driver_counters().guards_broken);
    cpu_driver_check_memory();
    assert_int_equal(1, cpu_driver_counters().guards_broken); /* each damage counts once */
}

TEST(a_write_after_the_free_is_found_by_a_check) {
    open_with(NULL);
    CUdeviceptr memory = harness_memory(BYTES);
    WORKS(memory_free(memory));
    uint8_t *data = host_pointer(memory);
    assert_int_equal(0xdb, data[0]);
    data[10] = 1;
    cpu_driver_check_memory();
    assert_int_equal(1, cpu_driver_counters().writes_after_free);
}

TEST(a_free_of_memory_that_queued_work_names_is_an_illegal_address) {
    open_with(NULL);
    CUstream stream = harness_stream();
    CUdeviceptr memory = harness_memory(BYTES);
    harness_close_gate(stream);
    WORKS(fill(memory, 0, BYTES, stream));
    WORKS(memory_free(memory));
    assert_int_equal(1, cpu_driver_counters().freed_in_use);
    harness_open_gate();
    GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, stream_synchronize(stream));
}

TEST(a_free_of_pinned_memory_that_queued_work_names_is_found) {
    open_with(NULL);
    CUstream stream = harness_stream();
    CUdeviceptr memory = harness_memory(BYTES);
    void *pinned = harness_pinned(BYTES);
    harness_close_gate(stream);
    WORKS(copy_to_host(pinned, memory, BYTES, stream));
    WORKS(host_free(pinned));
    assert_int_equal(1, cpu_driver_counters().freed_in_use);
    harness_open_gate();
    GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, stream_synchronize(stream));
}

TEST(a_launch_with_a_pointer_to_freed_memory_is_an_illegal_address) {
    open_with(NULL);
    CUstream stream = harness_stream();
    CUdeviceptr memory = harness_memory(BYTES);
    WORKS(memory_free(memory));
    store(stream, memory, 0);
    GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, stream_synchronize(stream));
}

TEST(freed_memory_is_looked_at_again_when_newer_takes_its_place) {
    open_with(NULL);
    CUdeviceptr memory = harness_memory(BYTES);
    WORKS(memory_free(memory));
    uint8_t *data = host_pointer(memory);
    data[BYTES - 1] = 1;
    for (int i = 0; i < 8; i++) WORKS(memory_free(harness_memory(16 << 20)));
    assert_int_equal(1, cpu_driver_counters().writes_after_free);
}

TEST(only_pinned_memory_has_an_address_for_kernels) {
    open_with(NULL);
    uint8_t *pinned = harness_pinned(BYTES), *other = malloc(BYTES);
    CUdeviceptr address;
    WORKS(host_device_pointer(&address, pinned + 8, 0));
    assert_ptr_equal(pinned + 8, host_pointer(address));
    GIVES(CUDA_ERROR_INVALID_VALUE, host_device_pointer(&address, pinned, 1));
    GIVES(CUDA_ERROR_INVALID_VALUE, host_device_pointer(&address, pinned + BYTES, 0));
    GIVES(CUDA_ERROR_INVALID_VALUE, host_device_pointer(&address, other, 0));
    assert_int_equal(0, address);
    free(other);
    harness_close();
}

TEST(the_last_release_of_a_context_frees_everything_in_it) {
    open_with(NULL);
    CUstream stream = harness_stream();
    CUdeviceptr memory = harness_memory(BYTES);
    harness_event();
    harness_pinned(BYTES);
    harness_probe("probe_add");
    WORKS(fill(memory, 0, BYTES, stream));
    WORKS(primary_context_release(0));
    struct cpu_driver_counters counters = cpu_driver_counters();
    assert_int_equal(BYTES, counters.bytes_filled); /* what was queued came first */
    assert_int_equal(0, counters.device_bytes_live);
    assert_int_equal(0, counters.pinned_bytes_live);
    assert_int_equal(0, counters.streams_live);
    assert_int_equal(0, counters.events_live);
    assert_int_equal(0, counters.modules_live);
    GIVES(CUDA_ERROR_INVALID_CONTEXT, memory_alloc(&memory, 1));
}

RUN_CPU_TESTS(C(fresh_memory_is_poisoned_not_zero),
    C(memory_beyond_the_limit_is_out_of_memory_until_some_is_freed),
    C(bytes_in_use_are_counted_in_units_of_512), C(devices_have_their_own_memory),
    C(a_range_must_lie_in_one_allocation), C(copies_of_nothing_move_nothing),
    C(copies_are_counted_by_what_they_moved),
    C(a_kernel_that_writes_behind_its_buffer_loses_the_context),
    C(a_write_before_an_allocation_is_found_when_it_is_freed),
    C(a_write_past_pinned_memory_is_found_by_a_check),
    C(a_write_after_the_free_is_found_by_a_check),
    C(a_free_of_memory_that_queued_work_names_is_an_illegal_address),
    C(a_free_of_pinned_memory_that_queued_work_names_is_found),
    C(a_launch_with_a_pointer_to_freed_memory_is_an_illegal_address),
    C(freed_memory_is_looked_at_again_when_newer_takes_its_place),
    C(only_pinned_memory_has_an_address_for_kernels),
    C(the_last_release_of_a_context_frees_everything_in_it))
