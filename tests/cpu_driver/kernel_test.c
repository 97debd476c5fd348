/* Modules and kernels of the CPU driver: how threads of a block wait, and who holds a module. */
#include <string.h>

#include "mishaps.h"

TEST(threads_that_return_early_are_not_waited_for) {
    enum { BLOCK = 64, BLOCKS = 3, N = BLOCK * BLOCKS };
    open_with(NULL);
    CUstream stream = harness_stream();
    uint32_t left[N];
    CUdeviceptr memory = harness_memory(sizeof left);
    CUfunction leave = harness_probe("probe_leave");
    assert_int_equal(
        CUDA_SUCCESS, harness_launch(leave, BLOCKS, BLOCK, 0, stream, (void *[]){&memory}));
    WORKS(copy_to_host(left, memory, sizeof left, stream));
    WORKS(stream_synchronize(stream));
    for (uint32_t i = 0; i < N; i++) assert_int_equal(i % BLOCK, left[i]);
    harness_close();
}

TEST(the_largest_block_meets_at_every_barrier) {
    enum { BLOCK = 1024 };
    open_with(NULL);
    CUstream stream = harness_stream();
    uint32_t values[BLOCK], rounds = 50;
    CUdeviceptr memory = harness_memory(sizeof values);
    CUfunction rotate = harness_probe("probe_rotate");
    for (uint32_t i = 0; i < BLOCK; i++) values[i] = i;
    WORKS(copy_to_device(memory, values, sizeof values, stream));
    for (int launch = 0; launch < 2; launch++) /* the second on fibers of the first */
        assert_int_equal(CUDA_SUCCESS,
            harness_launch(rotate, 1, BLOCK, sizeof values, stream, (void *[]){&memory, &rounds}));
    WORKS(copy_to_host(values, memory, sizeof values, stream));
    WORKS(stream_synchronize(stream));
    for (uint32_t i = 0; i < BLOCK; i++) assert_int_equal((i + 2 * rounds) % BLOCK, values[i]);
    harness_close();
}

TEST(shared_memory_is_poisoned_before_each_block) {
    enum { BLOCKS = 4 };
    open_with(NULL);
    CUstream stream = harness_stream();
    uint32_t seen[BLOCKS];
    CUdeviceptr memory = harness_memory(sizeof seen);
    CUfunction shared = harness_probe("probe_shared");
    assert_int_equal(
        CUDA_SUCCESS, harness_launch(shared, BLOCKS, 1, 64, stream, (void *[]){&memory}));
    WORKS(copy_to_host(seen, memory, sizeof seen, stream));
    WORKS(stream_synchronize(stream));
    for (int i = 0; i < BLOCKS; i++) assert_int_equal(0xcbcbcbcb, seen[i]);
    harness_close();
}

TEST(blocks_of_an_ordinary_launch_that_wait_for_each_other_lose_the_context) {
    open_with(NULL);
    CUstream stream = harness_stream();
    CUdeviceptr memory = harness_memory(BYTES);
    uint32_t rounds = 1;
    CUfunction rotate = harness_probe("probe_rotate_grid");
    assert_int_equal(CUDA_SUCCESS,
        harness_launch(rotate, 2, 1, 0, stream, (void *[]){&memory, &memory, &rounds}));
    GIVES(CUDA_ERROR_LAUNCH_FAILED, stream_synchronize(stream));
}

TEST(a_module_unloaded_under_a_launch_is_closed_after_it) {
    open_with(NULL);
    CUstream stream = harness_stream();
    CUmodule module = harness_program("saxpy");
    CUfunction saxpy;
    CUdeviceptr x = harness_memory(BYTES), y = harness_memory(BYTES);
    float a = 1;
    uint32_t n = 4;
    void *args[] = {&a, &x, &y, &n};
    WORKS(module_function(&saxpy, module, "saxpy"));
    harness_close_gate(stream);
    assert_int_equal(CUDA_SUCCESS, harness_launch(saxpy, 1, 64, 0, stream, args));
    WORKS(module_unload(module));
    assert_int_equal(1, cpu_driver_counters().freed_in_use);
    assert_int_equal(CUDA_ERROR_INVALID_HANDLE, harness_launch(saxpy, 1, 64, 0, stream, args));
    harness_open_gate();
    WORKS(stream_synchronize(stream));
    GIVES(CUDA_ERROR_INVALID_HANDLE, module_unload(module));
}

TEST(a_module_unloaded_under_a_graph_is_a_mistake) {
    open_with(NULL);
    CUgraph graph;
    CUgraphNode node;
    CUmodule module = harness_program("saxpy");
    CUdeviceptr x = harness_memory(BYTES);
    float a = 1;
    uint32_t n = 4;
    CUDA_KERNEL_NODE_PARAMS params = {.gridDimX = 1,
        .gridDimY = 1,
        .gridDimZ = 1,
        .blockDimX = 64,
        .blockDimY = 1,
        .blockDimZ = 1,
        .kernelParams = (void *[]){&a, &x, &x, &n}};
    WORKS(module_function(&params.func, module, "saxpy"));
    WORKS(graph_create(&graph, 0));
    WORKS(graph_add_kernel(&node, graph, NULL, 0, &params));
    WORKS(module_unload(module));
    assert_int_equal(1, cpu_driver_counters().freed_in_use);
    WORKS(graph_destroy(graph));
    GIVES(CUDA_ERROR_INVALID_VALUE, graph_destroy(graph));
}

TEST(equal_images_are_modules_of_their_own) {
    open_with(NULL);
    CUmodule first = harness_program("saxpy"), second = harness_program("saxpy");
    CUfunction a, b, c;
    WORKS(module_function(&a, first, "saxpy"));
    WORKS(module_unload(second));
    second = harness_program("saxpy");
    WORKS(module_function(&b, second, "saxpy"));
    WORKS(module_function(&c, second, "saxpy"));
    assert_true(a != b);
    assert_true(b == c);
    assert_int_equal(2, cpu_driver_counters().modules_live);
    harness_close();
}

TEST(a_damaged_shared_object_is_rejected_with_the_loader_s_reason) {
    open_with(NULL);
    /* The header of a shared object whose only section header is the one that follows it. */
    struct {
        unsigned char header[64], section[64];
    } image = {.header = {0x7f, 'E', 'L', 'F', 2, 1, 1}};
    image.header[16] = 3;  /* shared object */
    image.header[40] = 64; /* section headers */
    image.header[58] = 64;
    image.header[60] = 1;
    char log[256] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)sizeof log};
    CUmodule module;
    GIVES(CUDA_ERROR_INVALID_IMAGE, module_load(&module, &image, 2, options, values));
    assert_true(strlen(log) > 0);
    assert_int_equal(strlen(log), (uintptr_t)values[1]);
    assert_null(module);
    harness_close();
}

TEST(a_launch_without_arguments_or_with_packed_ones_is_refused) {
    open_with(NULL);
    CUstream stream = harness_stream();
    CUfunction add = harness_probe("probe_add");
    void *extra[] = {CU_LAUNCH_PARAM_END};
    GIVES(CUDA_ERROR_INVALID_VALUE, launch(add, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
    GIVES(CUDA_ERROR_NOT_SUPPORTED, launch(add, 1, 1, 1, 1, 1, 1, 0, stream, NULL, extra));
    harness_close();
}

RUN_CPU_TESTS(C(threads_that_return_early_are_not_waited_for),
    C(the_largest_block_meets_at_every_barrier), C(shared_memory_is_poisoned_before_each_block),
    C(blocks_of_an_ordinary_launch_that_wait_for_each_other_lose_the_context),
    C(a_module_unloaded_under_a_launch_is_closed_after_it),
    C(a_module_unloaded_under_a_graph_is_a_mistake), C(equal_images_are_modules_of_their_own),
    C(a_damaged_shared_object_is_rejected_with_the_loader_s_reason),
    C(a_launch_without_arguments_or_with_packed_ones_is_refused))
