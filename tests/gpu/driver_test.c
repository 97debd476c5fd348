/* How results of the driver become errors, and what opening one says when it cannot. */
#include "gpu/driver.h"

#include <dlfcn.h>
#include <string.h>

#include "testing.h"

static const struct gpu_driver *open_cpu(void) {
    const struct gpu_cpu_options cpu = {.device_count = 1, .memory_bytes = 1 << 20};
    const struct gpu_driver *driver;
    struct error err;
    assert_int_equal(ERR_OK, gpu_driver_open(GPU_DRIVER_CPU, &cpu, &driver, &err));
    return driver;
}

TEST(success_is_no_error) {
    struct error err;
    assert_int_equal(ERR_OK, gpu_check(open_cpu(), CUDA_SUCCESS, "init(0)", &err));
}

TEST(an_error_names_the_call_as_cuda_does) {
    struct error err;
    enum err code =
        gpu_check(open_cpu(), CUDA_ERROR_OUT_OF_MEMORY, "memory_alloc(&block, size)", &err);
    assert_int_equal(ERR_DEVICE_MEMORY, code);
    assert_int_equal(CUDA_ERROR_OUT_OF_MEMORY, err.native);
    assert_string_equal(
        "cuMemAlloc(&block, size): CUDA_ERROR_OUT_OF_MEMORY (out of memory)", err.message);
    assert_true(strlen(err.fix) > 0);
}

TEST(a_call_without_arguments_and_a_result_without_name_are_shown_as_they_are) {
    struct error err;
    assert_int_equal(ERR_DRIVER, gpu_check(open_cpu(), (CUresult)987, "something", &err));
    assert_string_equal("something: unknown result (no text)", err.message);
}

TEST(results_have_their_kinds) {
    static const struct {
        int result;
        enum err code;
    } kinds[] = {
        {2, ERR_DEVICE_MEMORY},
        {700, ERR_GPU_ILLEGAL_ADDRESS},
        {702, ERR_GPU_HANG},
        {710, ERR_GPU_ASSERT},
        {214, ERR_GPU_FAULT},
        {220, ERR_GPU_FAULT},
        {226, ERR_GPU_FAULT},
        {714, ERR_GPU_FAULT},
        {715, ERR_GPU_FAULT},
        {716, ERR_GPU_FAULT},
        {717, ERR_GPU_FAULT},
        {718, ERR_GPU_FAULT},
        {719, ERR_GPU_FAULT},
        {721, ERR_GPU_FAULT},
        {810, ERR_GPU_FAULT},
        {911, ERR_GPU_FAULT},
        {200, ERR_MODULE_REJECTED},
        {209, ERR_MODULE_REJECTED},
        {218, ERR_MODULE_REJECTED},
        {221, ERR_MODULE_REJECTED},
        {222, ERR_MODULE_REJECTED},
        {500, ERR_MODULE_REJECTED},
        {1, ERR_DRIVER},
        {400, ERR_DRIVER},
        {600, ERR_DRIVER},
        {701, ERR_DRIVER},
    };
    const struct gpu_driver *driver = open_cpu();
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct error err;
        CUresult result = (CUresult)kinds[i].result;
        assert_int_equal(kinds[i].code, gpu_check(driver, result, "launch()", &err));
    }
}

TEST(every_entry_of_the_cpu_driver_is_there) {
    const struct gpu_driver *driver = open_cpu();
    assert_string_equal("cpu", driver->name);
#define X(field, function, version) assert_non_null(driver->field);
    GPU_DRIVER_LIST(X)
#undef X
}

TEST(a_fault_script_that_is_wrong_is_a_configuration_error) {
    const struct gpu_cpu_options cpu = {
        .device_count = 1, .memory_bytes = 1 << 20, .faults = "cuMemAlloc:explode@1"};
    const struct gpu_driver *driver = NULL;
    struct error err;
    assert_int_equal(ERR_CONFIG, gpu_driver_open(GPU_DRIVER_CPU, &cpu, &driver, &err));
    assert_null(driver);
    assert_int_equal(ERR_CONFIG, gpu_cpu_faults_check(cpu.faults, &err));
    assert_int_equal(ERR_OK, gpu_cpu_faults_check("cuMemAlloc:out_of_memory@1", &err));
}

TEST(without_a_cuda_library_the_error_says_what_to_install) {
    const struct gpu_driver *driver = NULL;
    struct error err;
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library != NULL) skip();
    assert_int_equal(ERR_NO_DEVICE, gpu_driver_open(GPU_DRIVER_CUDA, NULL, &driver, &err));
    assert_null(driver);
    assert_non_null(strstr(err.message, "libcuda.so.1"));
    assert_non_null(strstr(err.fix, "driver: cpu"));
}

RUN_TESTS(T(success_is_no_error), T(an_error_names_the_call_as_cuda_does),
    T(a_call_without_arguments_and_a_result_without_name_are_shown_as_they_are),
    T(results_have_their_kinds), T(every_entry_of_the_cpu_driver_is_there),
    T(a_fault_script_that_is_wrong_is_a_configuration_error),
    T(without_a_cuda_library_the_error_says_what_to_install))
