/* Proves: profiler ranges and traces. */
#include <dlfcn.h>
#include <stdlib.h>

#include "support/run.h"
#include "testing.h"

static int (*pushes)(const char *name);
static int (*open_ranges)(void), (*mistakes)(void);

static int open_fake(void **state) {
    void *fake = dlopen(FAKE_NVTX, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(fake);
    pushes = (__typeof__(pushes))dlsym(fake, "fake_nvtx_pushes");
    open_ranges = (__typeof__(open_ranges))dlsym(fake, "fake_nvtx_open");
    mistakes = (__typeof__(mistakes))dlsym(fake, "fake_nvtx_mistakes");
    return 0;
}

static void set_library(struct run *run, const char *library) {
    free(run->settings.profile.nvtx_library);
    run->settings.profile.nvtx_library = strdup(library);
}

TEST(profile_is_off_unless_a_library_is_named) {
    struct run *run = *state;
    run_add_saxpy(run, 1);
    run_execute_ok(run);
    assert_int_equal(pushes("decode"), 0);
}

TEST(profile_marks_every_stage_and_closes_every_range) {
    struct run *run = *state;
    set_library(run, FAKE_NVTX);
    for (int k = 0; k < 100; k++) run_add_saxpy(run, k);
    run_add_bytes(run, "\xdf\xff\xff\xff\xff", 5);
    run_execute_ok(run);
    assert_int_equal(pushes("decode"), 101);
    assert_int_equal(pushes("publish"), 101); /* the last is a dead letter alone */
    assert_true(pushes("stage") > 0);
    assert_int_equal(pushes("enqueue"), pushes("stage"));
    assert_int_equal(pushes("wait"), pushes("stage"));
    assert_int_equal(open_ranges(), 0);
    assert_int_equal(mistakes(), 0);
}

TEST(profile_closes_its_ranges_when_the_gpu_is_lost) {
    struct run *run = *state;
    set_library(run, FAKE_NVTX);
    free(run->settings.cpu_driver.faults);
    run->settings.cpu_driver.faults = strdup("cuLaunchKernel:illegal_address@3");
    for (int k = 0; k < 100; k++) run_add_saxpy(run, k);
    assert_int_equal(run_execute(run), ERR_GPU_ILLEGAL_ADDRESS);
    assert_int_equal(open_ranges(), 0);
    assert_int_equal(mistakes(), 0);
}

TEST(profile_says_which_library_it_cannot_use) {
    struct run *run = *state;
    set_library(run, "/dev/null/libnvToolsExt.so.1");
    run_add_saxpy(run, 1);
    assert_int_equal(run_execute(run), ERR_CONFIG);
    assert_non_null(strstr(run->err.message, "/dev/null/libnvToolsExt.so.1"));
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        FLOW(profile_is_off_unless_a_library_is_named),
        FLOW(profile_marks_every_stage_and_closes_every_range),
        FLOW(profile_closes_its_ranges_when_the_gpu_is_lost),
        FLOW(profile_says_which_library_it_cannot_use),
    };
    return cmocka_run_group_tests(tests, open_fake, NULL);
}
