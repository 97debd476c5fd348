/* What is said of images that a driver rejects, and what kernels may have. */
#include "gpu/image.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "testing.h"

static const struct gpu_driver *driver;
static const char *log_text; /* that the driver writes of the next image */

static CUresult reject(
    CUmodule *ret, const void *image, unsigned count, CUjit_option *options, void **values) {
    assert_true(count == 2 && options[0] == CU_JIT_ERROR_LOG_BUFFER);
    snprintf(values[0], (size_t)(uintptr_t)values[1], "%s", log_text);
    return CUDA_ERROR_INVALID_PTX;
}

/* The error of an image of which the driver writes that. */
static struct error load(const char *log) {
    const struct image image = {.bytes = slice_of_text("bad")};
    struct error err;
    CUmodule module;
    log_text = log;
    struct gpu_driver rejecting = *driver;
    rejecting.module_load = reject;
    const struct device device = {.driver = &rejecting};
    assert_int_equal(image_load(&device, &image, &module, &err), ERR_MODULE_REJECTED);
    return err;
}

TEST(the_log_of_the_compiler_follows_the_error) {
    struct error err = load("line 3: no such type");
    assert_non_null(strstr(err.message, "(a PTX JIT compilation failed); line 3: no such type"));
    err = load("");
    assert_null(strstr(err.message, ";"));
}

TEST(a_long_log_keeps_its_end_and_is_text) {
    char log[3000], mended[sizeof(((struct error *)NULL)->message)];
    for (size_t first = 0; first < 3; first++) {
        size_t size = first;
        memset(log, 'x', size);
        for (; size < 2000; size += 2) memcpy(log + size, "\xc3\xa9", 2);
        strcpy(log + size, first % 2 == 0 ? "the end" : "the very end");
        struct error err = load(log);
        strcpy(mended, err.message);
        text_mend(mended);
        assert_string_equal(err.message, mended);
        assert_string_equal(err.message + strlen(err.message) - 3, "end");
        assert_true(strlen(err.message) > sizeof err.message - 8);
    }
}

static char alone, batched; /* two kernels */

static CUresult find(CUfunction *ret, CUmodule module, const char *name) {
    *ret = (CUfunction)(void *)(strcmp(name, "batched") == 0 ? &batched : &alone);
    return CUDA_SUCCESS;
}

static CUresult describe(int *ret, CUfunction_attribute attribute, CUfunction function) {
    bool is_batched = (void *)function == &batched;
    bool is_threads = attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK;
    *ret = is_threads ? (is_batched ? 640 : 1024) : (is_batched ? 512 : 0);
    return CUDA_SUCCESS;
}

static CUresult allow(CUfunction function, CUfunction_attribute attribute, int value) {
    return CUDA_SUCCESS;
}

TEST(a_block_is_no_larger_than_the_batched_kernel_can_have_it) {
    struct gpu_driver describing = *driver;
    describing.module_function = find;
    describing.function_attribute = describe;
    describing.function_set_attribute = allow;
    describing.function_param = NULL;
    const struct device device = {.driver = &describing};
    struct entry entry = {.symbol = (char *)"alone", .batched = (char *)"batched"};
    const struct program program = {.entry_count = 1, .entries = &entry};
    struct kernel kernel = {.function = NULL};
    struct error err;
    assert_int_equal(image_read_kernels(&device, NULL, &program, &kernel, &err), ERR_OK);
    assert_int_equal(kernel.block_threads_max, 640);
    assert_int_equal(kernel.static_shared_bytes, 512);
}

static int open_driver(void **state) {
    const struct gpu_cpu_options cpu = {.device_count = 1, .memory_bytes = 1 << 20};
    struct error err;
    return gpu_driver_open(GPU_DRIVER_CPU, &cpu, &driver, &err) != ERR_OK;
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {T(the_log_of_the_compiler_follows_the_error),
        T(a_long_log_keeps_its_end_and_is_text),
        T(a_block_is_no_larger_than_the_batched_kernel_can_have_it)};
    return cmocka_run_group_tests(tests, open_driver, NULL);
}
